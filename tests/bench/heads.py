"""``python -m tests.bench.heads``: functions whose sizes depend on data, against onnxruntime.

What detectors and ragged batches end with: boxes over a threshold and their suppression, as many of
the best as a run-time number says, rows that a mask holds, elements once each. Both runtimes take
turns in one process. Printed are the least microseconds of each and their ratio (above 1: Unity is
faster); ``--worst 1`` ends with an error below that ratio.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import numpy as np
import onnx.parser
import onnxruntime

import unity

from .timing import Run, interleaved
from .work import Feeds

HEADS = {
    "boxes over a threshold, suppressed": """
g (float[n, 84] x) => (float[k, 4] boxes, float[k] scores, int64[k] labels)
<int64[1] four = {4}, int64[1] zero = {0}, int64[1] end = {84}, int64[1] one = {1},
 float least = {0.9}, int64 most = {100}, float overlap = {0.5}, int64[2] both = {0, 1},
 int64 two = {2}> {
  box = Slice(x, zero, four, one)
  classes = Slice(x, four, end, one)
  best = ReduceMax<axes = [1], keepdims = 0>(classes)
  label = ArgMax<axis = 1, keepdims = 0>(classes)
  there = Greater(best, least)
  places = NonZero(there)
  place = Squeeze(places, zero)
  some = Gather(box, place)
  of = Gather(best, place)
  named = Gather(label, place)
  some3 = Unsqueeze(some, zero)
  of3 = Unsqueeze(of, both)
  kept = NonMaxSuppression(some3, of3, most, overlap, least)
  which = Gather<axis = 1>(kept, two)
  boxes = Gather(some, which)
  scores = Gather(of, which)
  labels = Gather(named, which)
}""",
    "a number of the best": """
g (float[n] s, int64[1] k, float[n, 8] x) => (float[m, 8] y, float[m] best) {
  best, which = TopK(s, k)
  rows = Gather(x, which)
  y = Relu(rows)
}""",
    "rows that a mask holds": """
g (float[n, 16] x, bool[n] mask) => (float[m, 16] y) {
  rows = Compress<axis = 0>(x, mask)
  y = Exp(rows)
}""",
    "elements once each": """
g (int64[n] x) => (int64[m] y, int64[n] which) {
  y, first, which, count = Unique<sorted = 1>(x)
}""",
}


def feeds(name: str, size: int) -> Feeds:
    """Inputs of so many rows, of which about half are taken."""
    rng = np.random.default_rng(size)
    match name:
        case "boxes over a threshold, suppressed":
            x = rng.random((size, 84), np.float32)
            x[:, 2:4] = x[:, :2] + rng.random((size, 2), np.float32)
            x[:, 4:] *= np.linspace(0.85, 1, size, dtype=np.float32)[:, None]
            return {"x": x}
        case "a number of the best":
            x = rng.standard_normal((size, 8), np.float32)
            return {"s": rng.random(size, np.float32), "k": np.array([size // 10]), "x": x}
        case "rows that a mask holds":
            x = rng.standard_normal((size, 16), np.float32)
            return {"x": x, "mask": rng.random(size) < 0.5}
        case _:
            return {"x": rng.integers(0, size // 4, size)}


def microseconds(name: str, size: int, threads: int, seconds: float) -> tuple[float, float]:
    """The least of onnxruntime, and of Unity."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>{HEADS[name]}')
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    given = feeds(name, size)
    executable = unity.compile(model, threads=threads)
    for got, want in zip(executable.run(given).values(), session.run(None, given), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want, got.dtype), 1e-5, 1e-6)
    runs: dict[str, Run] = {
        "theirs": partial(session.run, None, given),
        "ours": partial(executable.run, given),
    }
    times = interleaved(runs, seconds)
    return times["theirs"].min * 1e6, times["ours"].min * 1e6


def main() -> None:
    """Print a line for each head and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 8400])
    parser.add_argument("--threads", type=int, nargs="*", default=[1])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--worst", type=float, default=0.0)
    given = parser.parse_args()
    worst = float("inf")
    for name in HEADS:
        for size in given.rows:
            for threads in given.threads:
                theirs, ours = microseconds(name, size, threads, given.seconds)
                worst = min(worst, theirs / ours)
                print(
                    f"{name}, {size} rows, {threads} threads: onnxruntime {theirs:.1f} us  "
                    f"unity {ours:.1f} us  {theirs / ours:.2f}",
                    flush=True,
                )
    if worst < given.worst:
        sys.exit(f"the slowest ratio is {worst:.2f}")


if __name__ == "__main__":
    main()
