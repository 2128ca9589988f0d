"""Which nodes of a model are quantized: products of matrices and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from unity.errors import UnityError
from unity.frontend.onnx.reading.load import DEFAULT_DOMAINS
from unity.ir.dtype import Array

from .model import EditedModel

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True, slots=True)
class Product:
    """A node that multiplies what is quantized.

    Attributes:
        name: The node's.
        data: Its inputs that are computed: one, or both.
        weight: Its input that is known; None where both are computed.
        axis: Of that input, the axis that results have: each index on it has a scale of its own.
        bias: Its input that is added to sums, one number for each output; None where there is none.
        groups: How often scales repeat along outputs.
    """

    name: str
    data: tuple[int, ...]
    weight: int | None = None
    axis: int = 0
    bias: int | None = None
    groups: int = 1


def find_products(
    model: EditedModel, exclude: Sequence[str]
) -> tuple[dict[str, Product], dict[str, str]]:
    """The nodes to be quantized, and of others that multiply why they are left as they are.

    Args:
        model: The model.
        exclude: Names of nodes, or types of operators, that are to be left.

    Raises:
        UnityError: There is no such node or operator among those that would be quantized.
    """
    found: dict[str, Product] = {}
    left: dict[str, str] = {}
    asked = set(exclude)
    for node in model.graph.node:
        if node.op_type not in PRODUCTS or node.domain not in DEFAULT_DOMAINS:
            continue
        hit = {node.name, model.given[node.name], node.op_type} & set(exclude)
        asked -= hit
        kind = "excluded" if hit else _product(node, model.constants)
        if isinstance(kind, str):
            left[node.name] = kind
        else:
            found[node.name] = kind
    if asked:
        known = ", ".join([*PRODUCTS, *list(found | left)[:20]])
        raise UnityError(
            f"exclude: there is no node or operator {sorted(asked)[0]!r} that is quantized",
            hint=f"there are {known}",
        )
    return found, left


def _product(node: onnx.NodeProto, constants: Mapping[str, Array]) -> Product | str:
    """How a node multiplies, or why it is left as it is."""
    known = [constants.get(v) for v in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    a, b = known[0], known[1]
    addend = known[2] if len(known) > 2 else None
    bias = 2 if addend is not None and addend.ndim == 1 else None
    groups = int(attributes.get("group", 1))
    if a is not None and b is not None:
        return "both operands are known"
    match node.op_type:
        case "Conv" | "ConvTranspose" if b is None:
            return "weights that are computed"
        case "Conv":
            found = Product(node.name, (0,), 1, 0, bias)
        case "ConvTranspose":
            found = Product(node.name, (0,), 1, 1, bias, groups)
        case "Gemm":
            columns = 0 if b is None or b.ndim != 2 else b.shape[not attributes.get("transB", 0)]
            fits = addend is not None and addend.size == columns  # else it is for all alike
            found = _gemm(node.name, attributes, a, b, bias if fits else None)
        case _:
            found = _matmul(node.name, a, b)
    weight = None if found.weight is None else known[found.weight]
    if weight is not None and weight.dtype != np.float32:
        return f"weights of {weight.dtype}"
    if weight is not None and (weight.ndim < 2 or not weight.size):
        return f"weights of shape {list(weight.shape)}"
    if weight is not None and not np.isfinite(weight).all():
        return "weights that are not finite"
    return found


def _gemm(
    name: str, attributes: Mapping[str, object], a: Array | None, b: Array | None, bias: int | None
) -> Product:
    if b is not None:
        plain = attributes.get("alpha", 1.0) == 1.0 and attributes.get("beta", 1.0) == 1.0
        axis = 0 if attributes.get("transB", 0) else 1
        whole = bias is not None and plain
        return Product(name, (0,), 1, axis, bias if whole else None)
    if a is not None:
        return Product(name, (1,), 0, 1 if attributes.get("transA", 0) else 0)
    return Product(name, (0, 1))


def _matmul(name: str, a: Array | None, b: Array | None) -> Product:
    if b is not None:
        return Product(name, (0,), 1, b.ndim - 1)
    if a is not None:
        return Product(name, (1,), 0, a.ndim - 2)
    return Product(name, (0, 1))
