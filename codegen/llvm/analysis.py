"""What emitting a kernel needs to know of the whole of it, found in one walk."""

from __future__ import annotations

from dataclasses import dataclass, field

from unity.ir.foreign import addressed
from unity.ir.marks import INSTRUCTION
from unity.ir.prim_expr import Binary
from unity.ir.stmt import Buffer, For, Let, Stmt, Store
from unity.ir.visit_stmt import stmt_children, stmt_exprs, walk_stmt


@dataclass(slots=True)
class Analysis:
    """Facts of a lowered statement.

    Attributes:
        written: Buffers that are stored to, or may be: those whose addresses are given away.
        statements: How many statements there are.
        scalars: Whether an innermost loop works on scalars only, or vectors are joined to scalars:
            LLVM should see it. A loop that just asks for memory does no work.
        vector_loops: Identities of the loops with vectors somewhere within.
    """

    written: set[Buffer] = field(default_factory=set[Buffer])
    statements: int = 0
    scalars: bool = False
    vector_loops: set[int] = field(default_factory=set[int])


def analyse(body: Stmt) -> Analysis:
    """The facts of a kernel's body."""
    found = Analysis()
    _walk(body, found)
    return found


def _walk(s: Stmt, found: Analysis) -> tuple[bool, bool]:
    """Whether the statement holds vectors, and whether it holds a loop."""
    vectors = loops = False
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
        return vectors, False
    if isinstance(s, For) and INSTRUCTION in s.attrs:
        _walk_marked(s, found)
        return True, False
    for child in stmt_children(s):
        has_vectors, has_loops = _walk(child, found)
        vectors |= has_vectors
        loops |= has_loops
    if isinstance(s, For):
        if vectors:
            found.vector_loops.add(id(s))
        elif not loops and any(isinstance(x, Store) for x in walk_stmt(s.body)):
            found.scalars = True
        loops = True
    return vectors, loops


def _walk_marked(s: Stmt, found: Analysis) -> None:
    """A loop that is one instruction: what it stores to counts, its loops do not."""
    if isinstance(s, Store):
        found.written.add(s.buffer)
    for child in stmt_children(s):
        _walk_marked(child, found)
