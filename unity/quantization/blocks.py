"""Weights of products in 4 bits by blocks; activations stay what they are.

Products become MatMulNBits of onnxruntime's operators, which Unity imports as products of few bits:
each block of a column has a scale and a zero point.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.transform.graph.quantized.quantize_weights import quantized

from .model import EditedModel
from .products import Product

BITS = 4
DOMAIN = "com.microsoft"


def require_block(block: int) -> None:
    """Refuse sizes of blocks that MatMulNBits does not have.

    Raises:
        UnityError: It is one.
    """
    if block < 16 or block & (block - 1):
        raise UnityError(f"block={block}", hint="a power of two, at least 16; 32 is usual")


def four_bit_products(
    model: EditedModel, products: Mapping[str, Product], block: int
) -> dict[str, str]:
    """Give products by matrices weights of 4 bits.

    Args:
        model: Changed in place.
        products: The nodes that may be quantized, by name.
        block: Weights of a column that share a scale.

    Returns:
        Of those that are left as they are, why.
    """
    left: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        product = products.get(node.name)
        why = None if product is None else _reason(model, node, product)
        if product is None or why is not None:
            nodes.append(node)
            left |= {} if why is None else {node.name: why}
        else:
            nodes += _in_blocks(model, node, product, block)
    if all(o.domain != DOMAIN for o in model.proto.opset_import):
        model.proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    model.put(nodes)
    return left


def _reason(model: EditedModel, node: onnx.NodeProto, product: Product) -> str | None:
    """Why a product keeps its weights."""
    if node.op_type not in ("Gemm", "MatMul"):
        return "only products by matrices have weights of 4 bits"
    if product.weight != 1:
        return "no weights on the right"
    weight = model.constants[node.input[1]]
    if weight.ndim != 2:
        return f"weights of shape {list(weight.shape)}"
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("transA", 0) or attributes.get("alpha", 1.0) != 1.0:
        return "a Gemm with transA or alpha"
    if attributes.get("beta", 1.0) != 1.0:
        return "a Gemm with beta"
    return None


def _in_blocks(
    model: EditedModel, node: onnx.NodeProto, product: Product, block: int
) -> list[onnx.NodeProto]:
    """The nodes that a product becomes."""
    name = node.input[1]
    weight = model.constants[name]
    columns = weight if product.axis == 0 else np.ascontiguousarray(weight.T)
    count, depth = columns.shape
    padded = np.pad(columns, ((0, 0), (0, -depth % block)))
    whole, scale, zero = quantized(padded, 1, BITS, block)
    packed = _packed(whole).reshape(count, -1, block // 2)
    operands = [
        node.input[0],
        model.add(f"{name}_quantized", packed),
        model.add(f"{name}_scales", scale.reshape(-1)),
        model.add(f"{name}_zero_points", _packed(zero).reshape(-1)),
    ]
    has_bias = len(node.input) > 2 and node.input[2] != ""
    result = model.fresh(f"{node.output[0]}_product") if has_bias else node.output[0]
    attributes = {"K": depth, "N": count, "bits": BITS, "block_size": block}
    found = helper.make_node(
        "MatMulNBits", operands, [result], name=node.name, domain=DOMAIN, **attributes
    )
    if not has_bias:
        return [found]
    add = model.fresh(f"{node.name}_bias")
    return [found, helper.make_node("Add", [result, node.input[2]], [node.output[0]], name=add)]


def _packed(whole: Array) -> Array:
    """Rows of numbers of 4 bits, two a byte, the first of them in the low bits.

    >>> _packed(np.array([[1, 2, 3]], np.uint8)).tolist()
    [[33, 3]]
    """
    even = np.pad(whole.astype(np.uint8), ((0, 0), (0, whole.shape[1] % 2)))
    high = np.left_shift(even[:, 1::2], np.uint8(BITS))
    return np.asarray(even[:, ::2] | high)
