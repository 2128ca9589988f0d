"""Random forests in ONNX's forms, as models of one node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
DOUBLES = ("nodes_values", "target_weights", "class_weights", "base_values")


@dataclass
class Trees:
    """Random trees, node by node.

    Attributes:
        columns: Of rows.
        modes: Those that nodes have.
        deep: How likely a node above the depth is no leaf.
        outputs: Targets that leaves may give to; each gives to all of them, or to its tree's own.
        own: Whether each tree gives to one target.
        positive: Whether weights are.
    """

    rng: np.random.Generator
    count: int = 5
    depth: int = 4
    columns: int = 4
    modes: Sequence[str] = ("LEQ",)
    deep: float = 0.8
    outputs: Sequence[int] = (0,)
    own: bool = False
    positive: bool = False
    missing: bool = False
    rows: list[dict[str, object]] = field(default_factory=list)
    gifts: list[tuple[int, int, int, float]] = field(default_factory=list)

    def grown(self) -> Trees:
        for tree in range(self.count):
            self._grow(tree, 0, 0)
        return self

    def _grow(self, tree: int, number: int, level: int) -> int:
        row: dict[str, object] = {"treeids": tree, "nodeids": number, "values": 0.0}
        self.rows.append({**row, "modes": "LEAF"})
        at, last = len(self.rows) - 1, number
        if level < self.depth and self.rng.random() < self.deep:
            row["modes"] = f"BRANCH_{self.rng.choice(list(self.modes))}"
            row["featureids"] = int(self.rng.integers(self.columns))
            row["values"] = float(self.rng.integers(-3, 4)) / 2
            row["missing_value_tracks_true"] = int(self.missing and self.rng.random() < 0.5)
            row["truenodeids"] = number + 1
            last = self._grow(tree, number + 1, level + 1)
            row["falsenodeids"] = last + 1
            last = self._grow(tree, last + 1, level + 1)
            self.rows[at] = row
            return last
        targets = [self.outputs[tree % len(self.outputs)]] if self.own else self.outputs
        for target in targets:
            weight = self.rng.random() if self.positive else self.rng.standard_normal()
            self.gifts.append((tree, number, int(target), float(np.float32(weight))))
        return last

    def attributes(self, prefix: str, double: bool) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids",
                     "falsenodeids", "missing_value_tracks_true"):  # fmt: skip
            found[f"nodes_{name}"] = [row.get(name, 0) for row in self.rows]
        names = ("treeids", "nodeids", "ids", "weights")
        for k, name in enumerate(names):
            found[f"{prefix}_{name}"] = [gift[k] for gift in self.gifts]
        return as_doubles(found) if double else found


def as_doubles(attributes: dict[str, object]) -> dict[str, object]:
    """Numbers as tensors of doubles."""
    found = dict(attributes)
    for name in DOUBLES:
        if name in found:
            values = np.asarray(found.pop(name), np.float64)
            found[f"{name}_as_tensor"] = helper.make_tensor(
                name, TensorProto.DOUBLE, values.shape, values
            )
    return found


def model_of(
    op: str,
    attributes: dict[str, Any],
    columns: int,
    outputs: Sequence[tuple[str, int, Sequence[int | str]]],
    kind: int = TensorProto.FLOAT,
    version: int = 3,
    rows: int | str = "n",
) -> onnx.ModelProto:
    """A model of one node."""
    node = helper.make_node(
        op, ["x"], [name for name, *_ in outputs], domain="ai.onnx.ml", **attributes
    )
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info("x", kind, [rows, columns])],
        [helper.make_tensor_value_info(*output) for output in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def rows_of(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Rows of halves, which meet thresholds, with some NaN and infinities."""
    x = np.asarray(rng.integers(-4, 5, (rows, columns)) / 2, np.float32)
    x[rng.random(x.shape) < 0.15] = np.nan
    x[rng.random(x.shape) < 0.05] = np.inf
    x[rng.random(x.shape) < 0.05] = -np.inf
    return x
