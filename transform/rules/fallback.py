"""Everything else with axes: threads share the spatial points, each runs the block as it stands.

But where a block calls a C function: whether threads may call it at once, its author knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, For, Stmt
from unity.ir.visit import walk_prim
from unity.machine.target import Target

from ..blocks.extents import product
from ..blocks.nest import Nest
from ..schedule.schedule import Schedule
from ..tactics.threads import share
from .rule import Nothing, Rule, by_steps, worth


@dataclass(frozen=True, slots=True)
class Points:
    """A nest around one block, whose axes are driven by a loop each.

    Attributes:
        stmt: The nest.
        spatial: The loops of its spatial axes, in their order.
        reduced: Those of the others.
    """

    stmt: Stmt
    spatial: tuple[For, ...]
    reduced: tuple[For, ...]


@dataclass(frozen=True, slots=True)
class PointsShared:
    """The decisions.

    Attributes:
        grain: Statements that a task has at least.
    """

    grain: int


def _match(s: Nest | Stmt, _target: Target) -> Points | None:
    if isinstance(s, Nest):
        return None
    loops: dict[PrimVar, For] = {}
    inner = s
    while isinstance(inner, For) and inner.kind == "serial":
        loops[inner.var] = inner
        inner = inner.body
    if not isinstance(inner, Block) or inner.predicate is not None or symbols_in(inner):
        return None
    driving = [a.value for a in inner.axes if isinstance(a.value, PrimVar) and a.value in loops]
    if any(a.kind == "O" for a in inner.axes) or len(driving) < len(inner.axes):
        return None
    if len(set(driving)) != len(loops) or not _rectangular(loops) or not loops:
        return None

    def of(kind: str) -> tuple[For, ...]:
        return tuple(loops[_loop(a)] for a in inner.axes if a.kind == kind)

    return Points(s, of("S"), of("R"))


def _steps(sch: Schedule, points: Points, how: PointsShared, name: str) -> None:
    """Loops over points outside, those of the reduction inside in the order of its axes."""
    at = dict(zip(_nested(points.stmt), sch.get_loops(name), strict=True))
    spatial = [at[loop.var] for loop in points.spatial]
    order = [*spatial, *(at[loop.var] for loop in points.reduced)]
    if list(at.values()) != order:
        sch.reorder(*order)
    if spatial:
        count = product([loop.extent for loop in points.spatial])
        work = product([loop.extent for loop in points.reduced] or [imm(1)])
        share(sch, spatial, count, Binary("mul", work, imm(4)), how.grain)


def _loop(axis: BlockAxis) -> PrimVar:
    assert isinstance(axis.value, PrimVar)
    return axis.value


def _nested(s: Stmt) -> list[PrimVar]:
    return [s.var, *_nested(s.body)] if isinstance(s, For) else []


def _rectangular(loops: dict[PrimVar, For]) -> bool:
    return not any(
        e in loops
        for loop in loops.values()
        for bound in (loop.begin, loop.extent)
        for e in walk_prim(bound)
        if isinstance(e, PrimVar)
    )


FALLBACK = by_steps(
    "fallback",
    match=_match,
    decide=lambda _, target: PointsShared(target.machine.grain("statements")),
    legal=lambda *_: {"grain": worth("statements")},
    nest=lambda points: points.stmt,
    steps=_steps,
)


def _itself(s: Nest | Stmt, _target: Target) -> Nest | Stmt:
    return s


def _written(s: Nest | Stmt) -> Nest | Stmt:
    return s


def _no_steps(sch: Schedule, stmt: Nest | Stmt, how: Nothing, name: str) -> None:
    del sch, stmt, how, name


AS_WRITTEN: Rule[Nest | Stmt, Nest | Stmt, Nothing] = by_steps(
    "as_written",
    match=_itself,
    decide=lambda *_: Nothing(),
    legal=lambda *_: {},
    nest=_written,
    steps=_no_steps,
    parts=False,
)
"""What is no nest around one block was laid out by whoever wrote it.

A stage is left so, too, where a step of every rule that is for it is not known to be legal.
"""
