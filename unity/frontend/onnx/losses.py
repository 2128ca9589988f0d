"""Losses: NegativeLogLikelihoodLoss; SoftmaxCrossEntropyLoss expands to it."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.graph import Expr

from .node import Converter, Node, Value

_REDUCTIONS = ("none", "sum", "mean")


def _negative_log_likelihood(node: Node) -> Value:
    """``-x[n, target[n, ...], ...]`` times the class's weight, 0 where the target is ignored."""
    x, target = node.tensor(0), node.tensor(1)
    reduction = node.text_of("reduction", "mean")
    if reduction not in _REDUCTIONS:
        raise UnityError(f"reduction {reduction!r}; expected one of {', '.join(_REDUCTIONS)}")
    shape, classes = node.shape_of(x), node.shape_of(target)
    if len(shape) != len(classes) + 1 or len(shape) < 2:
        raise UnityError(f"a target of shape {classes} for an input of shape {shape}")
    ignored = None
    if node.attribute("ignore_index") is not None:
        number = node.number(node.int_of("ignore_index", 0), target)
        ignored = node.op("equal", target, number)
        target = node.op("where", ignored, node.number(0, target), target)
    places = node.op("expand_dims", target, axis=1)
    loss = node.op("negative", _squeezed(node, node.op("gather_elements", x, places, axis=1)))
    weight = node.optional(2)
    weights = None if weight is None else node.op("take", weight, target, axis=0)
    if ignored is not None:
        ones = node.op("ones_like", loss) if weights is None else weights
        weights = node.op("where", ignored, node.number(0, ones), ones)
    if weights is not None:
        loss = node.op("multiply", loss, weights)
    if reduction == "none":
        return loss
    if reduction == "sum" or weights is None:
        return node.op(reduction, loss)
    return node.op("divide", node.op("sum", loss), node.op("sum", weights))


def _squeezed(node: Node, x: Expr) -> Expr:
    return node.op("squeeze", x, axis=1)


CONVERTERS: dict[str, Converter] = {"NegativeLogLikelihoodLoss": _negative_log_likelihood}
