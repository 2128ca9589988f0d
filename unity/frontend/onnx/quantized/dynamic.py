"""Reals quantized as they come, to 8 bits by their own range, as DynamicQuantizeLinear does.

Products of them by integers are summed in int32, exactly; where the target has no such products,
passes make float32's of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.frontend.extremes import extreme_of_all
from unity.frontend.onnx.node import Node
from unity.frontend.products import matmul
from unity.ir.dtype import FLOAT32, INT32, UINT8
from unity.ir.graph import Expr


def dynamically_quantized(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """What integers from 0 to 255 say of a tensor, off their zero point, in int32; their scale.

    The range holds 0.
    """
    zero = node.number(0.0, x)
    low = node.op("minimum", extreme_of_all(node, "min", x), zero)
    high = node.op("maximum", extreme_of_all(node, "max", x), zero)
    span = node.op("divide", node.op("subtract", high, low), node.number(255.0, x))
    scale = node.op("where", node.op("equal", span, zero), node.number(1.0, x), span)
    whole = node.op("round", node.op("divide", node.op("negative", low), scale))
    point = node.cast(node.op("clip", whole, min=0.0, max=255.0), UINT8)
    integers = node.op("quantize", x, scale, point, axis=-1, out_dtype=UINT8)
    return node.op("subtract", node.cast(integers, INT32), node.cast(point, INT32)), scale


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
        sums = node.cast(matmul(node, whole, self.centred), FLOAT32)
        return node.op("multiply", sums, node.op("multiply", self.scale, scale))
