"""Matrix products: MatMul and Gemm."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import Dim, equal
from unity.ir.graph import Expr

from .broadcasting import broadcast
from .node import Converter, Node, Value
from .sizes import is_symbolic


def _matmul(node: Node) -> Value:
    return matmul(node, node.tensor(0), node.tensor(1))


def matmul(node: Node, a: Expr, b: Expr) -> Expr:
    """The product; symbolic dims that must be equal are asserted to be."""
    a, b = broadcast(node, (a, b), inner=2)
    return node.op("matmul", a, _inner_aligned(node, a, b))


def _inner_aligned(node: Node, a: Expr, b: Expr) -> Expr:
    """`b` with its inner dim asserted to be that of `a`, where they are symbols."""
    left, right = node.shape_of(a), node.shape_of(b)
    wanted = list(right)
    inner = -2 if len(right) > 1 else -1
    if left and right and _may_differ(left[-1], right[inner]):
        wanted[inner] = left[-1]
    return b if tuple(wanted) == right else node.assert_shape(b, tuple(wanted))


def _may_differ(a: Dim, b: Dim) -> bool:
    return not equal(a, b) and (is_symbolic(a) or is_symbolic(b))


def _gemm(node: Node) -> Value:
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
    return node.binary("add", found, c)


CONVERTERS: dict[str, Converter] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
}
