"""HoistPlaces: places that memory tells are worked out before the loops that do not change them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.foreign import addressed
from unity.ir.leaves import leaves
from unity.ir.module import IRModule
from unity.ir.prim_expr import Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, Let, Stmt, Store
from unity.ir.visit import (
    bound_in,
    map_stmts,
    prim_children,
    prim_loads,
    rewrite_stmt,
    stmt_exprs,
    variables,
    walk_stmt,
)

from ...blocks.extents import product
from ...blocks.tree import Path, known_at
from ...passes import Context, Pass, Sight
from ..functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class HoistPlaces(Pass):
    """What is loaded to tell an index comes before the innermost loop that leaves it alone.

    With it comes all that is worked out of it and of nothing else: rows of a table are counted
    from the end, and clamped, once for a row. Only what surely lies in its buffer is loaded, as
    a loop may have no iterations. Takes flat buffers.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 80], at: i64[Buffer, 5], c: f32[Buffer, 40]) -> None:
    ...     for i in range(5):
    ...         for j in range(8):
    ...             c[i * 8 + j] = a[T.min(9, T.max(0, at[i])) * 8 + j]
    ... ''')
    >>> print(print_module(HoistPlaces()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 80], at: i64[Buffer, 5], c: f32[Buffer, 40]) -> None:
        for i in range(5):
            place = T.let(T.min(9, T.max(0, at[i])) * 8)
            for j in range(8):
                c[i * 8 + j] = a[place + j]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _hoisted(f.body, ())))


def _hoisted(s: Stmt, above: Path) -> Stmt:
    if isinstance(s, Block):
        return s
    result = map_stmts(s, lambda x: _hoisted(x, (*above, s)))
    if not isinstance(result, For) or result.kind != "serial":
        return result
    found = {e: PrimVar("place", e.dtype) for e in _places(result, above)}
    if not found:
        return result
    body = rewrite_stmt(result.body, None, found.get)
    moved: Stmt = replace(result, body=body)
    for place, var in reversed(found.items()):
        moved = Let(var, place, moved)
    return moved


def _places(loop: For, above: Path) -> Iterable[PrimExpr]:
    """Parts of indices that are loaded, and that a loop leaves alone."""
    inside = list(walk_stmt(loop.body))
    if not any(prim_loads(i) for s in inside for i in _indices(s)):
        return ()
    bound = bound_in(loop)
    changed = {s.buffer for s in inside if isinstance(s, Store | Allocate)}
    changed |= {b for s in inside for e in stmt_exprs(s) for b in addressed(e)}
    known = known_at(above)

    def is_sure(x: Load) -> bool:
        size = product(list(x.buffer.shape))
        (index,) = x.indices
        return known.prove(Compare("ge", index, imm(0))) and known.prove(Compare("lt", index, size))

    def stays(e: PrimExpr) -> bool:
        return not variables(e) & bound and all(_is_left_alone(x, changed) for x in prim_loads(e))

    found = dict.fromkeys(p for s in inside for i in _indices(s) for p in _outermost(i, stays))
    return [e for e in found if all(map(is_sure, prim_loads(e)))]


def _indices(s: Stmt) -> Iterator[PrimExpr]:
    """The indices of what a statement loads and stores itself."""
    if isinstance(s, Store):
        yield from s.indices
    for e in stmt_exprs(s):
        for x in prim_loads(e):
            yield from x.indices


def _outermost(e: PrimExpr, stays: Callable[[PrimExpr], bool]) -> Iterator[PrimExpr]:
    """The largest parts of an index that load something and stay the same."""
    if not leaves(e).loads:
        return
    if e.dtype.lanes == 1 and e.dtype.is_int and stays(e):
        yield e
        return
    for child in prim_children(e):
        yield from _outermost(child, stays)


def _is_left_alone(x: Load, changed: set[Buffer]) -> bool:
    return x.buffer not in changed and x.predicate is None and len(x.indices) == 1
