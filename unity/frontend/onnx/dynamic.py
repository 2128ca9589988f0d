"""Reals quantized as they come, to 8 bits by their own range, as DynamicQuantizeLinear does."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dtype import FLOAT32, INT32
from unity.ir.graph import Expr

from .node import Node


def dynamically_quantized(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """What integers from 0 to 255 say of a tensor: off their zero point, in int32; and their scale.

    The range holds 0.
    """
    zero = node.number(0.0, x)
    low = node.op("minimum", node.op("min", x, axis=None), zero)
    high = node.op("maximum", node.op("max", x, axis=None), zero)
    span = node.op("divide", node.op("subtract", high, low), node.number(255.0, x))
    scale = node.op("where", node.op("equal", span, zero), node.number(1.0, x), span)
    point = _within(node, node.op("round", node.op("divide", node.op("negative", low), scale)))
    whole = node.op("add", node.op("round", node.op("divide", x, scale)), point)
    found = node.op("subtract", _within(node, whole), point)
    return node.cast(found, INT32), scale


def _within(node: Node, x: Expr) -> Expr:
    return node.op("clip", x, min=0.0, max=255.0)


@dataclass(frozen=True, slots=True)
class IntegerWeights:
    """Weights of a product whose other operand is quantized as it comes.

    Attributes:
        centred: ``(depth, columns)``, off their zero points, int32.
        scale: A number, or one for each column.
    """

    centred: Expr
    scale: Expr

    def product(self, node: Node, x: Expr) -> Expr:
        """``x @ weights`` in float32."""
        whole, scale = dynamically_quantized(node, x)
        sums = node.cast(node.op("matmul", whole, self.centred), FLOAT32)
        return node.op("multiply", sums, node.op("multiply", self.scale, scale))
