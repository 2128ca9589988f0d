"""Conditions and numbers over the sizes of a prim func, as text or as an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.dtype import BOOL, INT64, DType
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.convert import symbol_of
from unity.script.parser.prim_calls import PrimCalls
from unity.script.parser.scope import Scope
from unity.script.parser.source import of_text
from unity.script.parser.text import LANGUAGE
from unity.script.printer.names import identifier

ConditionLike: TypeAlias = "str | PrimExpr"
ExtentLike: TypeAlias = "int | str | PrimExpr"


def condition_of(given: ConditionLike, func: PrimFunc) -> PrimExpr:
    """The condition that a text says, as in a prim func; an expression as it is.

    Raises:
        UnityError: The text is no condition over sizes of the prim func.

    >>> from unity.script import parse
    >>> func = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         c[i] = a[i]
    ... ''').prim_funcs()["main"]
    >>> condition_of("n >= 32 and n % 8 == 0", func).op
    'and'
    """
    if not isinstance(given, str):
        return given
    found = _parsed(given, func, BOOL)
    if found is None:
        raise UnityError(
            f"this is no condition: {given!r}", hint="write one as in a kernel, as 'n >= 32'"
        )
    return found


def extent_of(given: ExtentLike, func: PrimFunc) -> PrimExpr:
    """The number that a text says of sizes, as in a prim func; an expression as it is.

    Raises:
        UnityError: The text is no arithmetic over sizes of the prim func.
    """
    if isinstance(given, int):
        return imm(given)
    if not isinstance(given, str):
        return given
    found = _parsed(given, func, INT64)
    if found is None:
        raise UnityError(
            f"this is no number: {given!r}", hint="write one as in a kernel, as 'n // 8 * 8'"
        )
    return found


def _parsed(given: str, func: PrimFunc, dtype: DType) -> PrimExpr | None:
    """What a text says of the sizes and scalars of a prim func; None where it is no expression."""
    source, tree = of_text(given)
    match tree.body:
        case [ast.Expr(value=node)]:
            spaces = set(_spaces(node))
            sizes = {identifier(size.name): symbol_of(size) for size in size_params(func)}
            sizes |= {s.name: symbol_of(s) for s in size_params(func) if s.name not in spaces}
            scalars = {scalar.name: scalar for scalar in scalar_params(func)}
            return PrimCalls(source, Scope([sizes, scalars, LANGUAGE])).expr(node, dtype)
        case _:
            return None


def _spaces(node: ast.expr) -> Iterator[str]:
    """The names that members are taken of: ``T`` in ``T.min(n, 4)``, whatever a size is called."""
    for x in ast.walk(node):
        if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name):
            yield x.value.id
