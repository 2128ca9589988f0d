"""What emitting a kernel needs to know of the whole of it, found in one walk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from unity.ir.foreign import addressed
from unity.ir.leaves import leaves
from unity.ir.marks import INSTRUCTION
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar
from unity.ir.stmt import Allocate, Buffer, For, Let, Stmt, Store
from unity.ir.visiting.visit_stmt import stmt_children, stmt_exprs, walk_stmt

DEEP = 3
"""Sums that this many loops make, one in another: they have many addresses, far apart."""


@dataclass(slots=True)
class Analysis:
    """Facts of a lowered statement.

    Attributes:
        written: Buffers that are stored to, or may be: those whose addresses are given away.
        statements: How many statements there are.
        scalars: Whether an innermost loop works on scalars only, or vectors are joined to scalars:
            LLVM should see it. A loop that just asks for memory does no work.
        vector_loops: Identities of the loops with vectors somewhere within.
        around_sums: Identities of the loops around sums in registers that `DEEP` loops make.
        scattering: Identities of the innermost loops that store where memory says.
    """

    written: set[Buffer] = field(default_factory=set[Buffer])
    statements: int = 0
    scalars: bool = False
    vector_loops: set[int] = field(default_factory=set[int])
    around_sums: set[int] = field(default_factory=set[int])
    scattering: set[int] = field(default_factory=set[int])


def analyse(body: Stmt) -> Analysis:
    """The facts of a kernel's body."""
    found = Analysis()
    _walk(body, found)
    return found


class _Holds(NamedTuple):
    """Whether a statement has vectors, how many loops it nests, and sums made by `DEEP` of them."""

    vectors: bool
    loops: int
    sums: bool


def _walk(s: Stmt, found: Analysis) -> _Holds:
    vectors = False
    while isinstance(s, Let):  # chains of them are long: no recursion
        found.statements += 1
        vectors |= s.value.dtype.lanes > 1
        s = s.body
    found.statements += 1
    found.written.update(b for e in stmt_exprs(s) for b in addressed(e))
    if isinstance(s, Store):
        found.written.add(s.buffer)
        vectors |= s.value.dtype.lanes > 1 or any(i.dtype.lanes > 1 for i in s.indices)
        joins = not vectors and isinstance(s.value, Binary) and s.value.dtype.is_float
        found.scalars |= joins
        return _Holds(vectors, 0, False)
    if isinstance(s, For) and INSTRUCTION in s.attrs:
        _walk_marked(s, found)
        return _Holds(True, 0, False)
    loops, sums = 0, False
    for child in stmt_children(s):
        held = _walk(child, found)
        vectors |= held.vectors
        loops = max(loops, held.loops)
        sums |= held.sums
    if isinstance(s, Allocate):
        sums |= s.buffer.scope == "local" and vectors and loops >= DEEP
    if isinstance(s, For):
        if vectors:
            found.vector_loops.add(id(s))
        elif not loops and any(isinstance(x, Store) for x in walk_stmt(s.body)):
            found.scalars = True
            if _scatters(s.body):
                found.scattering.add(id(s))
        if sums:
            found.around_sums.add(id(s))
        loops += 1
    return _Holds(vectors, loops, sums)


def _scatters(s: Stmt) -> bool:
    """Whether what is loaded tells where something is stored."""
    told = set[PrimVar]()

    def is_told(e: PrimExpr) -> bool:
        held = leaves(e)
        return bool(held.loads) or not told.isdisjoint(held.variables)

    for x in walk_stmt(s):
        if isinstance(x, Let) and is_told(x.value):
            told.add(x.var)
        if isinstance(x, Store) and any(map(is_told, x.indices)):
            return True
    return False


def _walk_marked(s: Stmt, found: Analysis) -> None:
    """A loop that is one instruction: what it stores to counts, its loops do not."""
    if isinstance(s, Store):
        found.written.add(s.buffer)
    for child in stmt_children(s):
        _walk_marked(child, found)
