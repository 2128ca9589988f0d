"""``python -m tests.bench.trees``: ensembles of decision trees against onnxruntime.

Random regression trees, complete to a depth, go through ONNX's TreeEnsembleRegressor; both runtimes
take turns in one process. Printed are the least times of each and their ratio (above 1: Unity is
faster); ``--worst 2`` ends with an error below that ratio.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import unity

from .timing import interleaved

COLUMNS = 30


def ensemble(trees: int, depth: int) -> onnx.ModelProto:
    """Complete trees of random columns and thresholds, one target."""
    rng = np.random.default_rng(0)
    inner = (1 << depth) - 1
    nodes, numbers = 2 * inner + 1, np.arange(2 * inner + 1)
    is_leaf, count = numbers >= inner, trees * (inner + 1)
    below = np.where(is_leaf, 0, 2 * numbers + 1)
    ids = {
        "nodes_treeids": np.repeat(np.arange(trees), nodes),
        "nodes_nodeids": np.tile(numbers, trees),
        "nodes_featureids": rng.integers(0, COLUMNS, trees * nodes),
        "nodes_truenodeids": np.tile(below, trees),
        "nodes_falsenodeids": np.tile(np.where(is_leaf, 0, below + 1), trees),
        "target_treeids": np.repeat(np.arange(trees), inner + 1),
        "target_nodeids": np.tile(numbers[inner:], trees),
        "target_ids": np.zeros(count, np.int64),
    }
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml",
        nodes_modes=(["BRANCH_LEQ"] * inner + ["LEAF"] * (inner + 1)) * trees,
        nodes_values=rng.standard_normal(trees * nodes).astype(np.float32).tolist(),
        target_weights=rng.standard_normal(count).astype(np.float32).tolist(), n_targets=1,
        **{name: array.tolist() for name, array in ids.items()},
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def ratio(model: onnx.ModelProto, rows: int, threads: int, seconds: float) -> tuple[float, float]:
    """The least microseconds of onnxruntime, and of Unity."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {"x": np.random.default_rng(rows).standard_normal((rows, COLUMNS), np.float32)}
    executable = unity.compile(model, threads=threads)
    np.testing.assert_allclose(
        executable.run(feeds)["y"], np.asarray(session.run(None, feeds)[0], np.float32), 1e-3, 1e-3
    )
    times = interleaved(
        {"theirs": partial(session.run, None, feeds), "ours": partial(executable.run, feeds)},
        seconds,
    )
    return times["theirs"].min * 1e6, times["ours"].min * 1e6


def main() -> None:
    """Print a line for each number of rows and threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 1024])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--worst", type=float, default=0.0)
    given = parser.parse_args()
    model, worst = ensemble(given.trees, given.depth), float("inf")
    for threads in given.threads:
        for rows in given.rows:
            theirs, ours = ratio(model, rows, threads, given.seconds)
            worst = min(worst, theirs / ours)
            print(
                f"{given.trees} trees of depth {given.depth}, {rows} rows, {threads} threads: "
                f"onnxruntime {theirs:.1f} us  unity {ours:.1f} us  {theirs / ours:.2f}"
            )
    if worst < given.worst:
        sys.exit(f"the slowest ratio is {worst:.2f}")


if __name__ == "__main__":
    main()
