"""What classifiers do with their scores: post transforms, the second score of two classes, labels.

The rules are onnxruntime's; ONNX leaves most of them unsaid.
"""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.graph import Constant, Expr

from ..node import Node, Value

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of the numbers that TreeEnsemble gives them."""


def post_transform(node: Node) -> str:
    """The attribute of that name, a text.

    Raises:
        UnityError: It is none of `TRANSFORMS`.
    """
    found = node.text_of("post_transform", "NONE")
    if found not in TRANSFORMS:
        raise UnityError(f"post_transform {found!r}; expected one of {', '.join(TRANSFORMS)}")
    return found


def transformed(node: Node, scores: Expr, how: str) -> Expr:
    """Scores ``[rows, classes]`` after a post transform."""
    match how:
        case "LOGISTIC":
            return node.op("sigmoid", scores)
        case "SOFTMAX":
            return node.op("nn.softmax", scores, axis=-1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(node, scores)
        case "PROBIT":
            return _probit(node, scores)
        case _:
            return scores


def of_targets(node: Node, found: Expr, count: int, how: str) -> Expr:
    """What a regressor gives to so many targets after a post transform."""
    if count == 1 and how not in ("NONE", "PROBIT"):
        raise node.gap(f"post_transform {how} of one target, which onnxruntime leaves out")
    return transformed(node, found, how)


def _softmax_zero(node: Node, scores: Expr) -> Expr:
    """A softmax in which what is about 0 stays so."""
    most = node.op("max", scores, axis=1, keepdims=True)
    far = node.op("greater", node.op("abs", scores), node.number(1e-7, scores))
    grown = node.op("exp", node.op("subtract", scores, most))
    small = node.op("multiply", scores, node.op("exp", node.op("negative", most)))
    parts = node.op("where", far, grown, small)
    total = node.op("sum", parts, axis=1, keepdims=True)
    none = node.op("equal", total, node.number(0, total))
    safe = node.op("where", none, node.number(1, total), total)
    return node.op("where", none, node.number(0.5, parts), node.op("divide", parts, safe))


def _probit(node: Node, scores: Expr) -> Expr:
    """The inverse of the normal distribution, by Winitzki's formula for the error function's."""

    def number(value: float) -> Constant:
        return node.number(value, scores)

    x = node.op("subtract", node.op("multiply", scores, number(2)), number(1))
    square = node.op("subtract", number(1), node.op("multiply", x, x))
    log = node.op("log", square)
    half = node.op("multiply", log, number(0.5))
    v = node.op("add", half, number(2 / (np.pi * 0.147)))
    inner = node.op(
        "subtract", node.op("multiply", v, v), node.op("multiply", log, number(1 / 0.147))
    )
    root = node.op("sqrt", node.op("subtract", node.op("sqrt", inner), v))
    sign = node.op("where", node.op("less", x, number(0)), number(-1), number(1))
    return node.op("multiply", node.op("multiply", sign, root), number(1.41421356))


def class_labels(node: Node, ints: str) -> tuple[tuple[int, ...] | None, tuple[str, ...] | None]:
    """The labels of a classifier, ints or strings; `ints` is what the attribute of ints is called.

    Raises:
        UnityError: There are none, or both.
    """
    numbers, texts = node.ints_of(ints) or None, node.texts_of("classlabels_strings") or None
    if (numbers is None) is (texts is None):
        raise UnityError(f"needs labels: either {ints} or classlabels_strings")
    return numbers, texts


def labelled(
    node: Node, index: Expr, labels: tuple[tuple[int, ...] | None, tuple[str, ...] | None]
) -> Value:
    """The labels of classes by their indices ``[rows]``: the node's first output."""
    numbers, texts = labels
    if texts is not None:
        node.string_outputs.add(0)
        return node.op("take", Constant(node.vocabulary.array(texts)), index, axis=0)
    if numbers == tuple(range(len(numbers or ()))):
        return index
    return node.op("take", Constant(np.asarray(numbers, np.int64)), index, axis=0)


def beside(node: Node, first: Expr, second: Expr) -> Expr:
    """Two scores ``[rows, 1]`` as those of two classes."""
    return node.op("concat", (first, second), axis=1)


def complement(node: Node, score: Expr) -> Expr:
    """One less a score."""
    return node.op("subtract", node.number(1, score), score)
