"""``python -m tests.bench``: Unity against the installed runtimes, interleaved, on seeded models.

Prints minimum and median with ratios (above 1: Unity is faster), the compile times, cold and from
the cache, memory, and what a call costs; writes ``tests/bench/results.json`` and ``results.svg``,
or what ``--output`` names. Rows of works that were not measured this time are kept from the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

from .machine import machine
from .memory import RUNTIMES, measured
from .models import MODELS
from .overhead import call_overhead
from .peers import PEERS, STATIC
from .report import HEADINGS, lines, memory_lines, plot, section, summary, worst_lengths
from .works import WORKS

RESULTS = Path(__file__).with_name("results.json")
DYNAMIC = ("bert_base_dynamic", "gpt2_decode", "gpt2_session")
"""Models of unknown sizes, which are compared with themselves at fixed ones as well."""
ONLY_DYNAMIC = (
    "bert_2_layers",
    "gpt2_2_layers",
    "gpt2_2_layers_session",
    "gpt2_2_layers_prompt",
)
"""Small ones that are compared with nothing else, but at many sizes."""
PARTS = ("times", "compile", "memory")
BF16 = ("resnet50", "bert_base")
"""Models that are measured in bf16."""
Row = dict[str, Any]


def main() -> None:
    """Run what the command line names; everything by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="*", choices=[[], *WORKS], help="all if none is named")
    parser.add_argument("--peers", nargs="*", choices=[*PEERS, STATIC], help="those installed")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="JSON; the plot lies beside")
    options = parser.parse_args()
    output: Path = options.output
    if output.suffix != ".json" or not output.parent.is_dir():
        parser.error(f"--output {output}: expected a .json file in a folder that exists")
    earlier: Row = json.loads(output.read_text()) if output.exists() else {}
    if earlier.get("machine", machine()) != machine():
        parser.error(f"{output.name} is of {earlier['machine']}, this is {machine()}: --output")
    works = options.works or list(WORKS)
    names = options.peers or [*(p for p in PEERS if p != "tvm"), STATIC]
    rows: list[Row] = []
    if "times" in options.parts:
        print(HEADINGS)
    for threads in options.threads if "times" in options.parts else []:
        for peer in names:
            for row in paired(fitting(works, peer), peer, threads, options.seconds):
                rows.append(row)
                print(lines([row])[0], flush=True)
    print(section("against the best peer:", summary(rows)), end="")
    print(section("against itself at fixed sizes:", worst_lengths(rows)), end="")
    found: Row = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "rows": merged(earlier.get("rows", []), rows),
    }
    weighed = [w for w in works if w in MODELS and w not in ONLY_DYNAMIC]
    for part, of in (("compile", compile_times), ("memory", memory)):
        new = {w: of(w) for w in weighed if part in options.parts}
        found[part] = {**earlier.get(part, {}), **new}
    found["overhead_ns"] = earlier.get("overhead_ns", {})
    if "times" in options.parts:
        found["overhead_ns"] = {k: round(v, 1) for k, v in call_overhead().items()}
        print("  ".join(f"{k} {v:.0f} ns" for k, v in found["overhead_ns"].items()))
    output.write_text(json.dumps(found, indent=1) + "\n")
    if not plot(found["rows"], output.with_suffix(".svg")):
        print("no plot: matplotlib is not installed")


def fitting(works: Sequence[str], peer: str) -> list[str]:
    """The works that a peer is measured on."""
    if peer == STATIC:
        return [w for w in works if w in (*DYNAMIC, *ONLY_DYNAMIC)]
    if not PEERS[peer].installed:
        return []
    static = [w for w in works if w not in DYNAMIC]
    some = {"openvino_bf16": BF16, "torch_compile": static, "tvm": static}
    return [w for w in works if w in some.get(peer, works) and w not in ONLY_DYNAMIC]


def paired(works: Sequence[str], peer: str, threads: int, seconds: float) -> Iterator[Row]:
    """The rows of a process for Unity and a peer; if it dies, of another for what is left."""
    left = list(works)
    while left:
        command = [sys.executable, "-m", "tests.bench.pair", *left, "--peer", peer]
        command += ["--threads", str(threads), "--seconds", str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            seen = left[0]
            for line in child.stdout:
                if line.startswith("{"):
                    row: Row = json.loads(line)
                    seen = str(row["work"])
                    yield row
        if child.returncode == 0:
            return
        died = left[left.index(seen)]
        yield {"work": died, "threads": threads, "peer": peer, "failed": "the process died"}
        left = left[left.index(seen) + 1 :]


def merged(earlier: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """These rows, and those of earlier that none of them replaces."""

    def key(r: Row) -> tuple[object, ...]:
        return r["work"], r.get("length"), r["threads"], r["peer"]

    new = {key(r) for r in rows}
    kept = [r for r in earlier if "peer" in r and key(r) not in new]
    order = list(WORKS)
    return sorted(
        [*kept, *rows],
        key=lambda r: (order.index(r["work"]), r.get("length", 0), r["threads"], r["peer"]),
    )


def compile_times(name: str) -> Row:
    """Seconds of importing and compiling, cold and from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / f"{name}.onnx", Path(folder) / "cache"
        onnx.save(WORKS[name].build(), path)
        cold, cached = compile_seconds(path, cache), compile_seconds(path, cache)
    print(f"{name}: compiled in {cold:.2f} s, cached {cached:.2f} s", flush=True)
    return {"cold_s": round(cold, 2), "cached_s": round(cached, 2)}


def memory(name: str) -> Row:
    """MiB by length and runtime (`tests.bench.memory`)."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save(work.build(), path)
        found: Row = {
            str(length): {runtime: measured(path, name, length, runtime) for runtime in RUNTIMES}
            for length in sorted({work.lengths[0], work.lengths[-1]})
        }
    print(*memory_lines(name, found), sep="\n", flush=True)
    return found


def compile_seconds(path: Path, cache: Path) -> float:
    """Import and compile in a fresh process, with this cache folder; without Python's start."""
    code = (
        "import sys, time; start = time.perf_counter(); import unity; "
        "unity.compile(sys.argv[1]); print(time.perf_counter() - start)"
    )
    env = {**os.environ, "UNITY_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=env, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()
