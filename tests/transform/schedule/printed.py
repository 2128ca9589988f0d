"""Schedules printed as programs, and run."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, Buffer, PrimFunc, Seq, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt
from unity.transform import Context
from unity.transform.blocks.tree import sequence
from unity.transform.schedule import Schedule
from unity.transform.tensor import LowerBlocks, SimplifyTir


def run_printed(sch: Schedule, name: str = "kernel") -> Schedule:
    """The schedule that its printed program makes."""
    scope: dict[str, object] = {"print": lambda *_: None}
    exec(sch.to_python(name), scope)
    made = scope["schedule"]
    assert isinstance(made, Schedule)
    return made


def difference(a: PrimFunc, b: PrimFunc) -> str | None:
    """Where two kernels differ in what they do: as loops, whatever their blocks are called.

    Steps name what they make after buffers, which a text calls otherwise where names are taken.
    Around which of its stages a kernel allocates, outside all loops, makes no difference either.
    """
    return first_difference(_as_loops(a), _as_loops(b))


def _as_loops(func: PrimFunc) -> PrimFunc:
    attrs = func.attrs.without("scheduled") if "scheduled" in func.attrs else func.attrs
    module, ctx = IRModule({"main": replace(func, attrs=attrs)}), Context()
    done = SimplifyTir()(LowerBlocks()(module, ctx), ctx).prim_funcs()["main"]
    bare, buffers = _without_allocations(done.body)
    used: list[Buffer] = []
    for s in walk_stmt(bare):
        used += [x.buffer for x in stmt_loads(s)]
        used += [s.buffer] if isinstance(s, Store) else []
    for buffer in sorted({b for b in buffers if b in used}, key=used.index, reverse=True):
        bare = Allocate(buffer, bare)
    return replace(done, body=bare)


def _without_allocations(s: Stmt) -> tuple[Stmt, list[Buffer]]:
    """A statement without what it allocates outside loops, and that."""
    match s:
        case Allocate():
            body, buffers = _without_allocations(s.body)
            return body, [s.buffer, *buffers]
        case Seq():
            parts = [_without_allocations(x) for x in s.stmts]
            return sequence([x for x, _ in parts]), [b for _, found in parts for b in found]
        case _:
            return s, []
