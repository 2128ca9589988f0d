"""``python -m tests.bench.calls``: what a call between graph functions costs, in nanoseconds.

A function whose kernel stands in it, one that calls a function for it, one that calls a function
that does, and ones that call themselves ten times, which give a tensor or a scalar: from Python,
and as exported to C, called by ctypes (whose own cost all have alike). The functions and their
arrays take turns, and CPU time is counted, which other work on the machine disturbs less. Tells the
least and the median, and the differences: of one more call, and of recursion ten deep against none.
Writes ``tests/bench/calls.json`` with the name of the cpu, or what ``--output`` names.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import unity
from tests.codegen.export.tensors import Exported, pointers, tensor
from unity.script import parse
from unity.transform.graph import InlineFunctions

from .machine import machine
from .timing import Times, interleaved

RESULTS = Path(__file__).with_name("calls.json")
SOURCE = """
@script.function
def kernel(x: f32[Tensor, 16]) -> f32[Tensor, 16]:
    return R.exp(x)
@script.function
def direct(x: f32[Tensor, 16]) -> f32[Tensor, 16]:
    return R.exp(x)
@script.function
def once(x: f32[Tensor, 16]) -> f32[Tensor, 16]:
    return kernel(x)
@script.function
def twice(x: f32[Tensor, 16]) -> f32[Tensor, 16]:
    return once(x)
@script.function
def recursive(x: f32[Tensor, 16], k: i64[Tensor, ()]) -> f32[Tensor, 16]:
    if k < 1:
        return R.exp(x)
    return recursive(x, k - 1)
@script.function
def factorial(k: R.Prim("int64")) -> R.Prim("int64"):
    if k < 1:
        return 1
    return k * factorial(k - 1)
"""
X = np.ones(16, np.float32)
DEEP, FLAT = np.array(10), np.array(0)
CALLS: dict[str, tuple[str, tuple[np.ndarray[Any, Any] | int, ...]]] = {
    "direct": ("direct", (X,)),
    "one call": ("once", (X,)),
    "two calls": ("twice", (X,)),
    "recursion, none": ("recursive", (X, FLAT)),
    "recursion, 10 deep": ("recursive", (X, DEEP)),
    "scalars, none": ("factorial", (0,)),
    "scalars, 10 deep": ("factorial", (10,)),
}
DIFFERENCES = {
    "a call": ("one call", "direct"),
    "a second call": ("two calls", "one call"),
    "10 deep": ("recursion, 10 deep", "recursion, none"),
    "scalars": ("scalars, 10 deep", "scalars, none"),
}
LIMITS = {"a call": 300.0, "a second call": 300.0, "10 deep": 10_000.0, "scalars": 10_000.0}
"""Nanoseconds that the median may differ by."""


def measured(seconds: float = 6.0) -> dict[str, dict[str, Times]]:
    """What each takes, ``python`` and ``c``.

    Args:
        seconds: What both measurements may take together.
    """
    exe = unity.compile(parse(SOURCE), pipeline=unity.pipeline().without(InlineFunctions))
    assert set(exe.native().values()) == {"native"}, exe.native()
    python = {name: partial(exe[function], *args) for name, (function, args) in CALLS.items()}
    with tempfile.TemporaryDirectory() as folder:
        exe.export_library(Path(folder) / "libcalls.so")
        library = Exported(Path(folder) / "libcalls.so")
        c = {name: _by_c(library, function, args) for name, (function, args) in CALLS.items()}
        works: dict[str, Callable[[], object]] = {f"python {n}": w for n, w in python.items()}
        works |= {f"c {n}": w for n, w in c.items()}
        times = interleaved(works, seconds, clock=time.thread_time)
    return {kind: {n: times[f"{kind} {n}"] for n in CALLS} for kind in ("python", "c")}


def _by_c(
    library: Exported, function: str, args: tuple[np.ndarray[Any, Any] | int, ...]
) -> Callable[[], object]:
    """A call of an exported function; its tensors are made once."""
    found = library.function(function)
    arrays = [np.asarray(a) for a in args]
    result = np.empty(16, np.float32) if arrays[0] is X else np.empty((), np.int64)
    given, taken = [tensor(a) for a in arrays], [tensor(result)]
    inputs, outputs = pointers(given), pointers(taken)
    library.check(found(inputs, outputs))
    kept = (arrays, result, given, taken)

    def call() -> object:
        return found(inputs, outputs) or kept

    return call


def differences(times: dict[str, Times]) -> dict[str, dict[str, float]]:
    """What more calls add, in nanoseconds, by the least and by the median."""
    return {
        name: {
            "min": (times[more].min - times[less].min) * 1e9,
            "median": (times[more].median - times[less].median) * 1e9,
        }
        for name, (more, less) in DIFFERENCES.items()
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=12.0)
    given = parser.parse_args()
    found = measured(given.seconds)
    print(machine())
    report: dict[str, object] = {"machine": machine(), "unit": "nanoseconds of CPU time"}
    for kind, times in found.items():
        rows = {n: {"min": t.min * 1e9, "median": t.median * 1e9} for n, t in times.items()}
        added = differences(times)
        for name, row in (*rows.items(), *added.items()):
            limit = f"  (at most {LIMITS[name]:.0f})" if name in LIMITS else ""
            print(f"{kind:7} {name:20} {row['min']:9.0f} {row['median']:9.0f}{limit}")
        report[kind] = {
            name: {k: round(v, 1) for k, v in row.items()} for name, row in (rows | added).items()
        }
    given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
