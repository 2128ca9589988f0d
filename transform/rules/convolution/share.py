"""Who does what of a blocked stage: each thread a run of lines, the same ones at every stage.

A stage mostly reads what the one before it wrote. Where threads took lines as they came, half of
what each reads would have to come from another core's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.representative import IMAGE, representative_extent
from unity.ir.stmt import For, Stmt
from unity.machine.target import Target

from ...blocks.extents import number
from ...blocks.nest import Axis
from ...tactics.threads import is_fair, parallel


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where one is along an axis of a domain.

    Attributes:
        value: The place.
        turn: How many places the thread passed before it.
        turns: How many it passes at most; None if that is not known.
    """

    value: PrimExpr
    turn: PrimExpr
    turns: int | None


Body = Callable[[Mapping[PrimVar, Coordinate]], Stmt]
"""What is done at a point."""


def shared(
    domain: Sequence[Axis],
    preferred: Sequence[Axis],
    work: int,
    grain: int,
    target: Target,
    body: Body,
    unknown: Sequence[Axis] = (),
) -> Stmt:
    """The nest over a domain, one of its axes cut in a run for each thread if that is fair.

    Args:
        domain: The axes, outermost first.
        preferred: Those that may be cut, the best first.
        work: Multiply-adds at a point.
        grain: Multiply-adds that a task has at least.
        target: Tells the threads.
        body: The statement at a point.
        unknown: Those of unknown extent that are long.
    """
    threads, points = target.threads, work
    for axis in domain:
        known = (
            representative_extent(axis.extent, IMAGE) if axis in unknown else number(axis.extent)
        )
        points *= known or 1
    cut = next((a for a in preferred if a in unknown or is_fair(number(a.extent), threads)), None)
    if cut is None or threads == 1 or points < grain * threads:
        named = [(_name(a), a.extent) for a in domain]

        def at_point(at: Sequence[PrimExpr]) -> Stmt:
            return body({a.var: _anywhere(a, p) for a, p in zip(domain, at, strict=True)})

        return parallel(named, imm(work), grain, at_point)
    part, length = PrimVar("part"), cut.extent
    variables = {a.var: PrimVar(_name(a)) for a in domain}
    begin, end = (
        Binary("floordiv", multiply(add(part, imm(i)), length), imm(threads)) for i in (0, 1)
    )
    places = {a.var: _anywhere(a, variables[a.var]) for a in domain}
    here = variables[cut.var]
    known = number(length)
    turns = None if known is None else -(-known // threads)
    places[cut.var] = Coordinate(here, Binary("sub", here, begin), turns)
    stmt = body(places)
    for axis in reversed(domain):
        first, count = (begin, Binary("sub", end, begin)) if axis is cut else (imm(0), axis.extent)
        stmt = For(variables[axis.var], first, count, stmt)
    return For(part, imm(0), imm(threads), stmt, "parallel")


def _name(axis: Axis) -> str:
    return axis.var.name.removeprefix("v")


def _anywhere(axis: Axis, place: PrimExpr) -> Coordinate:
    return Coordinate(place, place, number(axis.extent))
