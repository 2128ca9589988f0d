"""``python -m tests.bench``: Unity against onnxruntime on the benchmark models, interleaved.

Prints minimum and median with ratios (above 1: Unity is faster), the compile times, cold and from
the cache, and what a call costs; writes ``tests/bench/results.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import unity

from .models import MODELS, Array, Feeds
from .overhead import call_overhead
from .timing import Run, Times, interleaved

RESULTS = Path(__file__).with_name("results.json")
Row = dict[str, float | int | str]


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


def relative_error(got: Array, want: Array) -> float:
    """The largest difference relative to the largest value."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))


def measure(name: str, threads: int, seconds: float) -> list[Row]:
    """One row for each length of a model."""
    import onnxruntime

    model, rows = MODELS[name], list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / f"{name}.onnx", Path(folder) / "cache"
        onnx.save(model.build(), path)
        cold, cached = compile_seconds(path, cache), compile_seconds(path, cache)
        executable = unity.compile(str(path), threads=threads)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    for length in model.lengths:
        feeds: Feeds = model.feeds(length)
        got = executable.run(feeds)
        want = dict(zip(got, session.run(None, feeds), strict=True))
        error = max(relative_error(np.asarray(got[k]), want[k]) for k in got)
        runs: dict[str, Run] = {
            "unity": partial(executable.run, feeds),
            "ort": partial(session.run, None, feeds),
        }
        times = interleaved(runs, seconds)
        rows.append(row(name, threads, length, times, error, cold, cached))
    return rows


def row(
    name: str,
    threads: int,
    length: int,
    times: dict[str, Times],
    error: float,
    cold: float,
    cached: float,
) -> Row:
    """A line of the table; times in milliseconds, compile times in seconds."""
    ours, theirs = times["unity"], times["ort"]
    return {
        "model": name,
        "threads": threads,
        "length": length,
        "unity_min_ms": round(ours.min * 1e3, 4),
        "unity_median_ms": round(ours.median * 1e3, 4),
        "ort_min_ms": round(theirs.min * 1e3, 4),
        "ort_median_ms": round(theirs.median * 1e3, 4),
        "ratio_min": round(theirs.min / ours.min, 3),
        "error": float(f"{error:.2g}"),
        "compile_cold_s": round(cold, 2),
        "compile_cached_s": round(cached, 2),
    }


def main() -> None:
    """Run what the command line names; everything by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), help="which models")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each row")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.models:
        for threads in options.threads:
            for each in measure(name, threads, options.seconds):
                rows.append(each)
                print("  ".join(f"{k} {v}" for k, v in each.items()), flush=True)
    overhead = call_overhead()
    print("  ".join(f"{k} {v:.0f} ns" for k, v in overhead.items()))
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": platform.processor() or platform.machine(),
        "rows": rows,
        "overhead_ns": {k: round(v, 1) for k, v in overhead.items()},
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
