"""Matrix products: MatMul and Gemm."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.broadcasting import broadcast
from unity.frontend.products import matmul
from unity.ir.graph import Expr

from .node import Converter, Node, Value


def _matmul(node: Node) -> Value:
    return matmul(node, node.tensor(0), node.tensor(1))


def gemm(node: Node) -> Expr:
    """``alpha * a @ b + beta * c``, a and b transposed first where asked."""
    a, b = node.tensor(0), node.tensor(1)
    if (node.rank(0), node.rank(1)) != (2, 2):
        raise UnityError(f"multiplies tensors of ranks {node.rank(0)} and {node.rank(1)}, not 2")
    alpha, beta = node.float_of("alpha", 1.0), node.float_of("beta", 1.0)
    if node.int_of("transA", 0):
        a = node.op("permute_dims", a, axes=(1, 0))
    if node.int_of("transB", 0):
        b = node.op("permute_dims", b, axes=(1, 0))
    found = matmul(node, a, b)
    if alpha != 1.0:
        found = node.op("multiply", found, node.number(alpha, found))
    if not node.has(2):
        return found
    c = node.tensor(2)
    if beta != 1.0:
        c = node.op("multiply", c, node.number(beta, c))
    return node.op("add", *broadcast(node, (found, c), onto=True))


CONVERTERS: dict[str, Converter] = {
    "MatMul": _matmul,
    "Gemm": gemm,
}
