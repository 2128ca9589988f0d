"""One real model beside onnxruntime, in a process of its own: error, latency, compile time, memory.

``python -m tests.models.real.compared KEY`` prints a line of JSON.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import onnxruntime

import unity

from .models import RealModel, fetched, real_models

ROUNDS, LEAST_SECONDS = 15, 0.02


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found.

    Attributes:
        error: The largest difference to onnxruntime, relative to the largest number of an output.
        labels: How many of the rows along last axes have their largest number at the same place.
        ratios: For each set of inputs, onnxruntime's time by ours: of the least, of the medians.
        milliseconds: Ours, the least, for each set.
        compile_seconds: Import and compilation.
        peak_mib: The most memory of the process until it was compiled.
    """

    error: float
    labels: float
    ratios: list[tuple[float, float]]
    milliseconds: list[float]
    compile_seconds: float
    peak_mib: int


def compared(model: RealModel, threads: int) -> Compared:
    """A model compiled and run beside onnxruntime."""
    path = fetched(model)
    begin = time.perf_counter()
    exe = unity.compile(path, threads=threads)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    error, labels = 0.0, 1.0
    ratios, ours = list[tuple[float, float]](), list[float]()
    for feeds in model.drawn():
        want = session.run(None, feeds)
        got = list(exe.run(feeds).values())
        error = max(error, *(_error(g, w) for g, w in zip(got, want, strict=True)))
        labels = min(labels, *(_same_labels(g, w) for g, w in zip(got, want, strict=True)))
        mine, theirs = _times([partial(exe.run, feeds), partial(session.run, None, feeds)])
        ratios.append(
            (
                round(min(theirs) / min(mine), 2),
                round(statistics.median(theirs) / statistics.median(mine), 2),
            )
        )
        ours.append(round(min(mine) * 1e3, 3))
    return Compared(float(f"{error:.2g}"), round(labels, 4), ratios, ours, round(seconds, 1), peak)


def _error(got: Any, want: Any) -> float:
    if isinstance(want, list):  # maps of labels
        if len(got) != len(want):
            return float("inf")
        pairs = [(g, w) for g, w in zip(got, want, strict=True)]
        return max(
            (_error([*g.values()], np.asarray([*w.values()])) for g, w in pairs), default=0.0
        )
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape:
        return float("inf")
    if b.dtype.kind not in "fiub" or not b.size:
        return 0.0 if (a == b).all() else float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(np.abs(x - y).max() / max(float(np.abs(y).max()), 1e-30))


def _same_labels(got: Any, want: Any) -> float:
    if isinstance(want, list) or np.asarray(want).ndim == 0 or np.asarray(want).size == 0:
        return 1.0
    return float((np.argmax(got, -1) == np.argmax(want, -1)).mean())


def _times(calls: Sequence[Callable[[], object]]) -> list[list[float]]:
    """Seconds a call, each call in turn."""
    counts = []
    for call in calls:
        begin = time.perf_counter()
        call()
        counts.append(max(1, int(LEAST_SECONDS / max(time.perf_counter() - begin, 1e-6))))
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, count, of in zip(calls, counts, found, strict=True):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            of.append((time.perf_counter() - begin) / count)
    return found


if __name__ == "__main__":
    key, threads = sys.argv[1], int(sys.argv[2])
    print(json.dumps(asdict(compared(real_models()[key], threads))))
