"""What is known of sizes and tensors while a graph function is parsed."""

from __future__ import annotations

import ast

from unity.ir.dims import Dim, always_ge, as_dim, equal
from unity.ir.types import TensorType, Type


def decided(kind: type[ast.AST], a: Dim, b: Dim) -> bool | None:
    """What facts of sizes say of a comparison; None where it depends."""
    if kind in (ast.Gt, ast.GtE):
        return decided(ast.Lt if kind is ast.Gt else ast.LtE, b, a)
    below, above = always_ge(b, as_dim(a + 1)), always_ge(a, as_dim(b + 1))
    if kind in (ast.Eq, ast.NotEq):
        same = True if equal(a, b) else False if below or above else None
        return same if same is None or kind is ast.Eq else not same
    if kind is ast.Lt:
        return True if below else False if always_ge(a, b) else None
    return True if always_ge(b, a) else False if above else None


def known(kind: Type, name: str) -> object:
    """A tensor's shape, rank or dtype (by name); None if that is not known."""
    if not isinstance(kind, TensorType):
        return None
    if name == "dtype":
        return None if kind.dtype is None else kind.dtype.name
    if name == "ndim":
        return kind.ndim
    return kind.shape if isinstance(kind.shape, tuple) else None
