"""``python -m tests.bench.startup``: what compiling costs a fresh process, imports included.

Each row is of one model: CPU seconds of a process that imports Unity and compiles the model's file,
cold (``wall``: the seconds that pass meanwhile, as several processes compile), with all but its
executable in the cache (``kernels``), with all of it in the cache (``cached``), and those of one
that loads the saved executable (``loaded``). Python's own start counts. The least of some runs is
shown, as other processes can only add to it; CPU seconds of all threads and children, as machines
have other things to do. ``blocks`` compiles residual blocks of doubling number: what each costs is
to stay the same.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import onnx

from unity.executable_cache import FOLDER

from .graph import Graph
from .machine import machine
from .untuned.models import UNTUNED
from .works import WORKS

RUNS = 3
BLOCKS = (125, 250, 500, 1000)
DEFAULT = ("resnet50", "mobilenetv2", "bert_base")
_COMPILE = """
import os, sys, time
start = time.perf_counter()
import unity
path, cache, saved = sys.argv[1:]
exe = unity.compile(path, cache=cache)
took, wall = sum(os.times()[:4]), time.perf_counter() - start
if saved:
    exe.save(saved)
print(took, wall)
"""
_LOAD = "import sys, time, unity; unity.load(sys.argv[1]); print(time.process_time(), 0)"

Build = Callable[[], onnx.ModelProto]
Row = dict[str, float]


def models() -> dict[str, Build]:
    """What makes each model, by name."""
    unknown = {f"{name} of unknown sizes": u for name, u in UNTUNED.items()}
    return {
        **{name: work.build for name, work in WORKS.items()},
        **{name: partial(work.model, known=False) for name, work in unknown.items()},
    }


def residual(blocks: int) -> onnx.ModelProto:
    """A residual perceptron: ``x = x + relu(x @ w) @ v``, all weights different."""
    g = Graph("residual", seed=blocks)
    x = g.input("x", ["n", 32])
    for k in range(blocks):
        y = g.op("Relu", g.op("MatMul", x, g.normal(f"w{k}", (32, 64), 0.1)))
        x = g.op("Add", x, g.op("MatMul", y, g.normal(f"v{k}", (64, 32), 0.1)))
    g.output(x, "y", ["n", 32])
    return g.model()


def measured(build: Build, runs: int = RUNS) -> Row:
    """CPU seconds of a model's fresh processes."""
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / "model.onnx", Path(folder) / "cache"
        saved = Path(folder) / "model.unity"
        onnx.save(build(), path)

        def compiled() -> float:
            return _child(_COMPILE, path, cache, "")[0]

        def with_kernels() -> float:
            shutil.rmtree(cache / FOLDER, ignore_errors=True)
            return compiled()

        cold, wall = _child(_COMPILE, path, cache, saved)
        return {
            "cold": cold,
            "wall": wall,
            "kernels": min(with_kernels() for _ in range(runs)),
            "cached": min(compiled() for _ in range(runs)),
            "loaded": min(_child(_LOAD, saved)[0] for _ in range(runs)),
        }


def _child(code: str, *args: object) -> tuple[float, float]:
    """CPU seconds of a process and its children, and the seconds that passed."""
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cpu, wall = map(float, done.stdout.split())
    return round(cpu, 2), round(wall, 2)


def per_block(counts: Sequence[int]) -> dict[int, Row]:
    """CPU milliseconds that a block costs, by how many there are."""
    found: dict[int, Row] = {}
    for count in counts:
        row = measured(partial(residual, count), 1)
        found[count] = {name: round(s / count * 1e3, 2) for name, s in row.items()}
    return found


def main() -> None:
    """Measure what the command line names."""
    known = models()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", choices=[[], *known, "blocks", "unknown"])
    options = parser.parse_args()
    print(machine())
    names: list[str] = []
    for name in options.models or [*DEFAULT, "unknown", "blocks"]:
        names += [n for n in known if n.endswith("unknown sizes")] if name == "unknown" else [name]
    for name in names:
        if name == "blocks":
            for count, row in per_block(BLOCKS).items():
                print(f"{count} blocks, ms each:", _line(row), flush=True)
        else:
            print(f"{name}, CPU s:", _line(measured(known[name])), flush=True)


def _line(row: Row) -> str:
    return "  ".join(f"{name} {value:g}" for name, value in row.items())


if __name__ == "__main__":
    main()
