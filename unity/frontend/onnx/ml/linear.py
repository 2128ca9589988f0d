"""LinearClassifier and LinearRegressor: a product with a constant matrix, and an addition."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value
from .rows import rows_of
from .scores import (
    beside,
    class_labels,
    complement,
    labelled,
    of_targets,
    post_transform,
    transformed,
)


def _scores(node: Node, count: int) -> Expr:
    """``x @ coefficients.T + intercepts``, [rows, count]."""
    x = rows_of(node)
    kind = node.dtype_of(x).numpy
    flat = np.asarray(node.floats_of("coefficients") or (), np.float32)
    width = node.shape_of(x)[1]
    needed = width * count if isinstance(width, int) and count > 0 else flat.size
    if count < 1 or flat.size % count or flat.size < needed:
        raise UnityError(f"has {flat.size} coefficients for {count} targets of {width} columns")
    # A published model (onnxruntime's own logreg_iris) has more than its columns need: onnxruntime
    # takes them in a row and leaves what is over.
    flat = flat[:needed]
    weights = flat.reshape(count, -1).T.astype(kind)
    found = node.op("matmul", x, Constant(np.ascontiguousarray(weights)))
    intercepts = np.asarray(node.floats_of("intercepts") or (), np.float32).astype(kind)
    if intercepts.size not in (0, count):
        raise UnityError(f"has {intercepts.size} intercepts for {count} targets")
    return node.op("add", found, Constant(intercepts)) if intercepts.size else found


def _regressor(node: Node) -> Value:
    count = node.int_of("targets", 1)
    found = _scores(node, count)
    return node.cast(of_targets(node, found, count, post_transform(node)), FLOAT32)


def _negative(node: Node, score: Expr) -> Expr:
    return node.op("negative", score)


def _classifier(node: Node) -> list[Value]:
    node.ignore("multi_class")
    labels = class_labels(node, "classlabels_ints")
    names, how = len(labels[0] or labels[1] or ()), post_transform(node)
    intercepts = len(node.floats_of("intercepts") or ())
    scores = _scores(node, intercepts or names)
    count = intercepts or names
    if count == 1 and names == 2:
        index = node.op("squeeze", node.op("greater", scores, node.number(0, scores)), axis=1)
        index = node.op("astype", index, dtype="int64")
        if how not in ("NONE", "LOGISTIC"):
            raise node.gap(f"post_transform {how} of one score for two classes")
        other = complement if how == "NONE" else _negative
        scores = beside(node, other(node, scores), scores)
    elif count == names > 1:
        index = node.op("argmax", scores, axis=1)
    else:
        raise node.gap(f"{count} scores for {names} classes")
    return [labelled(node, index, labels), node.cast(transformed(node, scores, how), FLOAT32)]


CONVERTERS: dict[str, Converter] = {
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
}
