"""Stores past the caches: whole registers of lines that nobody reads soon.

A kernel says by its attribute ``nontemporal`` which of its parameters it writes so: their
positions. Only stores of a whole register to a multiple of its size can be; a kernel is called with
pointers that may lie anywhere, so it is written twice, and the entry asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.dtype import DType
from unity.ir.marks import NONTEMPORAL
from unity.ir.prim_expr import Binary, Imm, PrimExpr, Ramp
from unity.ir.stmt import Buffer, PrimFunc, Store
from unity.ir.visit import stmt_loads, walk_stmt

from .emitter import Emitter

BYTES = 64
"""Of a line of memory."""
REGISTERS = (128, 256, 512)
"""Bits that may be stored at once, to a multiple of their bytes."""


def streamed_of(func: PrimFunc) -> frozenset[Buffer]:
    """The parameters that a kernel writes past the caches; none that it reads as well.

    Other threads see such stores in order only behind the end of the kernel, or of a task.
    """
    positions = func.attrs.get(NONTEMPORAL, ())
    if not isinstance(positions, tuple) or not positions:
        return frozenset()
    read = {x.buffer for s in walk_stmt(func.body) for x in stmt_loads(s)}
    at = (p for p in positions if isinstance(p, int) and 0 <= p < len(func.buffers))
    return frozenset(func.buffers[p] for p in at) - read


def streams(s: Store, streamed: frozenset[Buffer], dtype: DType) -> bool:
    """Whether a store is one of whole lines, where its buffer begins with one."""
    if s.buffer not in streamed or s.predicate is not None or len(s.indices) != 1:
        return False
    if dtype.lanes * dtype.bits not in REGISTERS:
        return False
    match s.indices[0]:
        case Ramp(base, Imm(1), lanes):
            return _divides(lanes, base)
        case _:
            return False


def _divides(by: int, e: PrimExpr) -> bool:
    """Whether an index is surely a multiple, whatever its variables are."""
    match e:
        case Imm(int(value)):
            return value % by == 0
        case Binary("add" | "sub", a, b):
            return _divides(by, a) and _divides(by, b)
        case Binary("mul", a, b):
            return _divides(by, a) or _divides(by, b)
        case _:
            return False


def at_lines(em: Emitter, pointers: Sequence[str]) -> str:
    """Whether all pointers are at the beginning of lines."""
    numbers = [em.pure(f"ptrtoint ptr {p} to i64") for p in pointers]
    joined = numbers[0]
    for number in numbers[1:]:
        joined = em.pure(f"or i64 {joined}, {number}")
    low = em.pure(f"and i64 {joined}, {BYTES - 1}")
    return em.pure(f"icmp eq i64 {low}, 0")
