"""HoistDivisions: what loops divide anew in each iteration, though it is always the same, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, For, Let, Stmt
from unity.ir.visit import (
    bound_in,
    leaves,
    map_stmts,
    prim_children,
    prim_loads,
    rewrite_stmt,
    stmt_children,
    stmt_exprs,
    variables,
)

from ...blocks.tree import Path, known_at
from ...passes import Context, Pass, Sight
from ..functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class HoistDivisions(Pass):
    """Divisions by what is no constant are done before the outermost loop that leaves them alone.

    LLVM does so only with divisions that happen in every iteration: it doesn't know that nothing
    divides by zero. A division takes as long as a row of multiplications. What may be zero where
    no iteration divides, as a number of tasks, is taken as one there.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         if i < 7 // T.max(1, n - 3):
    ...             c[i] = a[i]
    ... ''')
    >>> print(print_module(HoistDivisions()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        quotient = T.let(7 // T.max(1, n - 3))
        for i in range(n):
            if i < quotient:
                c[i] = a[i]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _hoisted(f.body, (), _below(f.body))))


Below = Mapping[int, Sequence[Binary]]
"""Divisions in statements and below them, by the statements' ids; of those without, nothing."""


def _below(s: Stmt) -> Below:
    found: dict[int, Sequence[Binary]] = {}

    def go(x: Stmt) -> Sequence[Binary]:
        here = dict.fromkeys(_divisions(x))
        for child in stmt_children(x):
            here |= dict.fromkeys(go(child))
        if here:
            found[id(x)] = tuple(here)
        return tuple(here)

    go(s)
    return found


def _hoisted(s: Stmt, above: Path, below: Below) -> Stmt:
    if isinstance(s, Block) or id(s) not in below:
        return s
    if isinstance(s, For) and s.kind == "parallel":
        return replace(s, body=_before(s.body, s.body, (*above, s), below))
    if not isinstance(s, For) or s.kind != "serial":
        return map_stmts(s, lambda x: _hoisted(x, (*above, s), below))
    return _before(s, s.body, above, below)


def _before(s: Stmt, repeated: Stmt, above: Path, below: Below) -> Stmt:
    """A statement behind the divisions that a part of it, which is repeated, may leave to it."""
    known, bound = known_at(above), bound_in(s)
    found: dict[Binary, PrimVar] = {}
    safe: dict[Binary, PrimExpr] = {}
    for each in below.get(id(repeated), ()):
        if variables(each) & bound:
            continue
        if known.prove(Compare("ge", each.b, imm(1))):
            safe[each] = each
        elif known.prove(Compare("ge", each.b, imm(0))):
            safe[each] = replace(each, b=Binary("max", each.b, imm(1)))
        else:
            continue
        found[each] = PrimVar("quotient", each.dtype)
    result = s
    if found:
        result = rewrite_stmt(s, None, lambda e: found.get(e) if isinstance(e, Binary) else None)
        below = _below(result)
    inside: Path = above
    for division, var in found.items():
        inside = (*inside, Let(var, safe[division], result))
    inner = (*inside, result)
    whole: Stmt = map_stmts(result, lambda x: _hoisted(x, inner, below))
    for division, var in reversed(found.items()):
        whole = Let(var, safe[division], whole)
    return whole


def _divisions(s: Stmt) -> Iterator[Binary]:
    """The outermost divisions of scalars in a statement whose divisors are no constants."""
    todo: list[PrimExpr] = list(stmt_exprs(s))
    while todo:
        e = todo.pop()
        if not leaves(e).divisions:
            continue
        divides = isinstance(e, Binary) and e.op in ("floordiv", "floormod")
        if isinstance(e, Binary) and divides and _is_scalar(e):
            yield e
        else:
            todo += prim_children(e)


def _is_scalar(e: Binary) -> bool:
    if isinstance(e.b, Imm) or e.dtype.lanes != 1 or e.dtype.kind not in ("int", "uint"):
        return False
    return not prim_loads(e)
