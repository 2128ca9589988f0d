"""UnrollRegisters: what is to live in registers is indexed by constants only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from unity.ir.marks import INSTRUCTION, TILES
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, PrimVar
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit import (
    map_stmts,
    stmt_children,
    stmt_loads,
    substitute_prim,
    variables,
    walk_stmt,
)

from ..blocks.tree import Values
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class UnrollRegisters(Pass):
    """Short loops that index a small temporary of scope ``local`` are marked to be written out.

    Code generators keep such a temporary in registers only if each place in it is a constant: the
    loops of the sum are unrolled by who schedules them, those that set it and copy it out follow.
    Loops that are one instruction stay loops, and what instructions load tiles of a matrix from, or
    store them to, is in memory.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((2,), "float32", scope="local")
    ...     for i, j in T.grid(4, 2):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vj] = a[vi, vj] * 2.0
    ... ''')
    >>> print(print_module(UnrollRegisters()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 8]) -> None:
        t = T.alloc((2,), "float32", scope="local")
        for i in range(4):
            for j in T.unroll(2):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", i, j)
                    t[vj] = a[vi, vj] * 2.0

    Attributes:
        limit: Iterations of loops in one another that are written out at most.
    """

    sees: ClassVar[Sight] = "kernel"

    limit: int = 64

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself; a temporary may be as large as all vector registers."""
        room = ctx.target.vector_registers * ctx.target.vector_bits // 8
        return map_prim_funcs(module, lambda f: self.unroll(f, room))

    def unroll(self, func: PrimFunc, room: int) -> PrimFunc:
        """The prim func with loops marked."""
        if not any(isinstance(s, Block) for s in walk_stmt(func.body)):
            return func
        small = [
            s.buffer
            for s in walk_stmt(func.body)
            if isinstance(s, Allocate) and s.buffer.scope == "local" and _bytes(s.buffer) <= room
        ]
        memory = _in_memory(func.body)
        small = [b for b in small if b not in memory]
        if not small:
            return func
        drivers = _drivers(func.body, small, {})
        return with_body(func, self._marked(func.body, drivers)[0])

    def _marked(self, s: Stmt, drivers: set[PrimVar]) -> tuple[Stmt, int]:
        """The statement with loops marked, and how often what is innermost is written out.

        Inner loops first: what is allocated within the outer ones is in registers at least.
        """
        if isinstance(s, For) and INSTRUCTION in s.attrs:
            return s, 1
        most = 1

        def below(x: Stmt) -> Stmt:
            nonlocal most
            new, count = self._marked(x, drivers)
            most = max(most, count)
            return new

        s = map_stmts(s, below)
        if isinstance(s, For) and s.kind in ("serial", "unrolled") and s.var in drivers:
            match s.extent:
                case Imm(int() as extent) if extent * most <= self.limit:
                    return replace(s, kind="unrolled"), extent * most
                case _:
                    pass
        return s, most


def _in_memory(s: Stmt) -> set[Buffer]:
    """The buffers beside tile registers that instructions on such touch."""
    found: set[Buffer] = set()
    for x in walk_stmt(s):
        if isinstance(x, For) and INSTRUCTION in x.attrs:
            inside = [a for y in walk_stmt(x) for a in _accesses(y)]
            if any(b.scope == TILES for b in inside):
                found |= {b for b in inside if b.scope != TILES}
    return found


def _accesses(s: Stmt) -> list[Buffer]:
    """The buffers that a statement itself loads from and stores to."""
    return [x.buffer for x in (*stmt_loads(s), *((s,) if isinstance(s, Store) else ()))]


def _bytes(buffer: Buffer) -> float:
    sizes = [n.value if isinstance(n, Imm) else float("inf") for n in buffer.shape]
    return prod(float(n) for n in sizes) * buffer.dtype.bytes


def _drivers(s: Stmt, small: list[Buffer], axes: Values) -> set[PrimVar]:
    """The loop variables that places in some buffers depend on."""
    found: set[PrimVar] = set()
    places = stmt_loads(s)
    for access in (*places, *((s,) if isinstance(s, Store) else ())):
        if any(access.buffer is b for b in small):
            for index in access.indices:
                found |= variables(substitute_prim(index, axes))
    if isinstance(s, Block):
        bound: Values = {a.var: substitute_prim(a.value, axes) for a in s.axes}
        axes = {**axes, **bound}
    for child in stmt_children(s):
        found |= _drivers(child, small, axes)
    return found
