"""Reals quantized as they come, to 8 bits by their own range, as DynamicQuantizeLinear does.

Integers are kept as float32, whose products of 8-bit integers are exact while sums stay below 2^24.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.frontend.extremes import extreme_of_all
from unity.ir.graph import Expr

from .node import Node


def dynamically_quantized(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """What integers from 0 to 255 say of a tensor, off their zero point; and their scale.

    The range holds 0.
    """
    zero = node.number(0.0, x)
    low = node.op("minimum", extreme_of_all(node, "min", x), zero)
    high = node.op("maximum", extreme_of_all(node, "max", x), zero)
    span = node.op("divide", node.op("subtract", high, low), node.number(255.0, x))
    scale = node.op("where", node.op("equal", span, zero), node.number(1.0, x), span)
    point = _within(node, node.op("round", node.op("divide", node.op("negative", low), scale)))
    whole = node.op("add", node.op("round", node.op("divide", x, scale)), point)
    return node.op("subtract", _within(node, whole), point), scale


def _within(node: Node, x: Expr) -> Expr:
    return node.op("clip", x, min=0.0, max=255.0)


@dataclass(frozen=True, slots=True)
class IntegerWeights:
    """Weights of a product whose other operand is quantized as it comes.

    Attributes:
        centred: ``(depth, columns)``, off their zero points, float32.
        scale: A number, or one for each column.
    """

    centred: Expr
    scale: Expr

    def product(self, node: Node, x: Expr) -> Expr:
        """``x @ weights`` in float32."""
        whole, scale = dynamically_quantized(node, x)
        sums = node.op("matmul", whole, self.centred)
        return node.op("multiply", sums, node.op("multiply", self.scale, scale))
