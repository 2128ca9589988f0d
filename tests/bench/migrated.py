"""``python -m tests.bench.migrated``: a model that came through Relay's text, and the ONNX one.

Each network is loaded from ONNX, written as Relay's text (by the emitter of the tests), read and
compiled; both executables take turns in one process. Printed are the least times of each and their
ratio (above 1: the migrated one is faster); ``--worst 0.97`` ends with an error below that ratio.
Where memory comes to lie makes an executable some percent faster or slower, so each is made
several times, and the fastest counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import onnx

import unity
from tests.frontend.relay.emitter import emitted
from unity.frontend.relay import from_relay

from .models import MODELS
from .timing import Run, interleaved

NETWORKS = ("resnet18", "mobilenetv2", "bert_base")


def ratio(name: str, threads: int, seconds: float, copies: int) -> tuple[float, float]:
    """The least milliseconds of a model as ONNX gives it, and of the migrated one."""
    work = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save_model(work.build(), str(path))
        module = unity.load(path)
        found = emitted(module)
        migrated = from_relay(found.text, constants=found.constants)
        feeds = work.feeds(work.lengths[0] if work.lengths else 1)
        runs: dict[str, Run] = {}
        for i in range(copies):
            for kind, source in (("onnx", module), ("relay", migrated)):
                executable = unity.compile(source, threads=threads)
                runs[f"{kind}{i}"] = partial(executable.run, feeds)
        times = interleaved(runs, seconds)
        least = {k: t.min for k, t in times.items()}
    return (
        min(v for k, v in least.items() if k.startswith("onnx")) * 1e3,
        min(v for k, v in least.items() if k.startswith("relay")) * 1e3,
    )


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--worst", type=float, default=0.0)
    options = parser.parse_args()
    worst = float("inf")
    for name in options.networks:
        ours, theirs = ratio(name, options.threads, options.seconds, options.copies)
        worst = min(worst, ours / theirs)
        print(f"{name:14} onnx {ours:8.3f} ms  relay {theirs:8.3f} ms  {ours / theirs:.3f}")
    if worst < options.worst:
        sys.exit(f"the slowest ratio is {worst:.3f}")


if __name__ == "__main__":
    main()
