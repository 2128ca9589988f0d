"""ForwardStores: lanes that were stored under a mask are not loaded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.prim_expr import Broadcast, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Let, Seq, Stmt, Store
from unity.ir.visit import (
    map_stmts,
    rewrite_stmt,
    substitute_prim,
    walk_stmt,
)

from ..blocks.dataflow import addressed_in
from ..blocks.tree import Values
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class ForwardStores(Pass):
    """What is stored under a mask and loaded under the same one just behind stays in a register.

    A processor hands what it is storing on to loads, but not through masks: they wait until it is
    in the cache. Takes vectors.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n], d: f32[Buffer, n]) -> None:
    ...     inside = T.let(T.ramp(0, 1, 4) < T.broadcast(n, 4))
    ...     T.store(c, (T.ramp(0, 1, 4),), T.load(a, (T.ramp(0, 1, 4),), inside), inside)
    ...     T.store(d, (T.ramp(0, 1, 4),), T.load(c, (T.ramp(0, 1, 4),), inside), inside)
    ... ''')
    >>> print(print_module(ForwardStores()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n], d: f32[Buffer, n]) -> None:
        inside = T.let(T.ramp(0, 1, 4) < T.broadcast(n, 4))
        with T.seq():
            kept = T.let(T.load(a, (T.ramp(0, 1, 4),), inside))
            T.store(c, (T.ramp(0, 1, 4),), kept, inside)
            T.store(d, (T.ramp(0, 1, 4),), T.select(inside, kept, T.broadcast(0.0, 4)), inside)
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _stmt(f.body)))


def _stmt(s: Stmt) -> Stmt:
    if isinstance(s, Seq):
        for k, each in enumerate(s.stmts):
            found = _kept(each, s.stmts[k + 1 :])
            if found is not None:
                return Seq((*(_stmt(x) for x in s.stmts[:k]), _stmt(found)))
    return map_stmts(s, _stmt)


def _kept(s: Stmt, behind: Sequence[Stmt]) -> Stmt | None:
    """A store under a mask and what is behind it, where that loads what is stored."""
    lets: list[Let] = []
    names: Values = {}
    while isinstance(s, Let):
        lets.append(s)
        names[s.var] = substitute_prim(s.value, names)
        s = s.body
    if not isinstance(s, Store) or s.predicate is None or s.predicate.dtype.lanes == 1:
        return None
    if isinstance(s.value, PrimVar):
        return None  # it was seen to before
    (index,) = (substitute_prim(i, names) for i in s.indices)
    there = Load(s.buffer, (index,), substitute_prim(s.predicate, names))
    kept = PrimVar("kept", s.value.dtype)
    zero = Broadcast(imm(0, kept.dtype.element), kept.dtype.lanes)
    value = Select(s.predicate, kept, zero)
    after = _loading(behind, there, value)
    if after is None:
        return None
    result: Stmt = Let(kept, s.value, Seq((replace(s, value=kept), *after)))
    for let in reversed(lets):
        result = replace(let, body=result)
    return result


def _loading(stmts: Sequence[Stmt], there: Load, value: PrimExpr) -> list[Stmt] | None:
    """Statements with what is loaded somewhere, until there is another store to that buffer."""
    found = False
    names: Values = {}

    def on_load(e: Load) -> PrimExpr | None:
        nonlocal found
        if e.buffer is not there.buffer or e.predicate is None:
            return None
        if substitute_prim(e, names) != there:
            return None
        found = True
        return value

    result = list(stmts)
    for k, s in enumerate(stmts):
        for x in walk_stmt(s):
            if isinstance(x, Let):
                names[x.var] = substitute_prim(x.value, names)
        stores = any(isinstance(x, Store) and x.buffer is there.buffer for x in walk_stmt(s))
        if there.buffer in addressed_in(s) or (stores and not isinstance(s, Store)):
            break
        result[k] = rewrite_stmt(s, None, load_fn=on_load)
        if stores:
            break
    return result if found else None
