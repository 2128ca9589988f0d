"""Stages that pad: what there is lies in runs of memory and is copied as such, the rest filled.

Line by line, a run of pixels with all their channels goes from one image to the other, without a
test for each of them: whether a line has any is asked before it, and what is copied of it is a
stretch of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Cast, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Store
from unity.machine.target import Target

from ..blocks.access import depends, known_of, place, step
from ..blocks.extents import number, product
from ..blocks.nest import Axis, Nest
from ..roles.ends import turning
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule
from ..tactics.reshaping import joining
from ..tactics.threads import share
from .rule import by_steps, worth


@dataclass(frozen=True, slots=True)
class _Bound:
    """An axis and where what there is begins and ends on it."""

    axis: PrimVar
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Lines:
    """A stage that pads, as lines.

    Attributes:
        nest: The stage.
        store: Its store.
        outer: The axes of the lines.
        pixel: The axis along a line on which what there is has a begin and an end.
        inner: Those within a pixel, all of them there.
        within: Where that is.
        others: Conditions on the lines.
    """

    nest: Nest
    store: Store
    outer: tuple[Axis, ...]
    pixel: Axis
    inner: tuple[Axis, ...]
    within: _Bound
    others: tuple[PrimExpr, ...]

    @property
    def width(self) -> int:
        """Elements of a pixel."""
        return math.prod(number(a.extent) or 0 for a in self.inner)

    @property
    def length(self) -> int:
        """Pixels of a line."""
        return number(self.pixel.extent) or 0


@dataclass(frozen=True, slots=True)
class LinesShared:
    """The decisions.

    Attributes:
        grain: Elements that a task has at least; each thread has a run of lines, the same as at
            other stages, if that are more.
    """

    grain: int


def _steps(sch: Schedule, lines: _Lines, how: LinesShared, name: str) -> None:
    """Each line as runs: what fills it, what is copied, what fills it."""
    assert sch.target is not None
    if lines.inner:
        at, every = len(lines.outer), len(lines.nest.axes)
        groups = [*([k] for k in range(at)), range(at, every)]
        sch.transform_block_layout(name, joining(lines.nest.axes, groups))
    *outer, element = sch.get_loops(name)
    if outer:
        outer = [outer[-1], *outer[:-1]]  # each thread has the lines that it reads
        if len(outer) > 1:
            sch.reorder(*outer)
        points = product([a.extent for a in lines.outer])
        work = lines.length * lines.width
        each = work * -(-(number(points) or 1) // sch.target.threads)
        share(sch, outer, points, imm(work), max(how.grain, each))
    lanes = sch.target.vector_bits // max(8, lines.store.buffer.dtype.bits)
    bound, length, width = lines.within, lines.length, lines.width
    there = [bound.begin, bound.end - bound.begin, length - bound.end]
    if lines.others:
        element, elsewhere = sch.unswitch(element)
        _runs(sch, elsewhere, [length * width], lanes)
    _runs(sch, element, [pixels * width for pixels in there], lanes)


def _runs(sch: Schedule, loop: LoopRef, stretches: Sequence[int], lanes: int) -> None:
    """A loop over a line as stretches: whole registers, then what is left by halves of one."""
    runs: list[tuple[int, int]] = []
    for count in stretches:
        left, wide = count, lanes
        while left:
            if left >= wide:
                runs.append((left // wide * wide, wide))
                left %= wide
            wide //= 2
    parts: Sequence[LoopRef] = [loop]
    if len(runs) > 1:
        parts = sch.loop_partition(loop, [count for count, _ in runs[:-1]])
    for part, (_, wide) in zip(parts, runs, strict=True):
        if wide > 1:
            sch.vectorize(sch.split(part, [None, wide])[1])


def _lines(nest: Nest, _target: Target) -> _Lines | None:
    store = nest.finish
    if nest.reduction is not None or not isinstance(store, Store) or store.predicate is not None:
        return None
    match store.value:
        case Select(_, (Load() as load) | Cast(_, Load() as load), Imm()) as choice:
            pass
        case _:
            return None
    if load.predicate is not None or store.indices != tuple(a.var for a in nest.axes):
        return None
    known = known_of(nest.axes)
    bounds: dict[PrimVar, _Bound] = {}
    conditions: dict[PrimVar, list[PrimExpr]] = {}
    for part in conjuncts(known.simplify(choice.condition)):
        found = _bound(part, nest.axes, known)
        if found is None:
            return None
        old = bounds.get(found.axis, found)
        begin, end = max(old.begin, found.begin), min(old.end, found.end)
        bounds[found.axis] = _Bound(found.axis, begin, end)
        conditions.setdefault(found.axis, []).append(part)
    at = max((i for i, a in enumerate(nest.axes) if a.var in bounds), default=-1)
    if at < 0:
        return None
    pixel, inner = nest.axes[at], nest.axes[at + 1 :]
    bound = bounds.pop(pixel.var)
    if bound.begin >= bound.end or any(number(a.extent) is None for a in inner):
        return None
    others = [c for var in bounds for c in conditions[var]]
    lines = _Lines(nest, store, nest.axes[:at], pixel, inner, bound, tuple(others))
    index, size = place(load, known), 1
    for axis in reversed((pixel, *inner)):
        if step(index, axis.var) != size and number(axis.extent) != 1:
            return None
        size *= number(axis.extent) or 1
    return lines


def _bound(e: PrimExpr, axes: Sequence[Axis], known: Analyzer) -> _Bound | None:
    """What a comparison says of one axis; None if it is about anything else."""
    axis = next((x for x in axes if depends(e, x.var)), None)
    extent = None if axis is None else number(axis.extent)
    if axis is None or extent is None or not isinstance(e, Compare):
        return None
    found = turning(e, axis.var, known)
    at = None if found is None else number(found[0])
    if found is None or at is None:
        return None
    _, onwards = found
    return _Bound(axis.var, max(0, at), extent) if onwards else _Bound(axis.var, 0, min(extent, at))


PADDED = by_steps(
    "padded",
    match=_lines,
    decide=lambda _, target: LinesShared(target.machine.grain("elements")),
    legal=lambda *_: {"grain": worth("elements")},
    nest=lambda lines: lines.nest,
    steps=_steps,
)
"""A box is copied into a larger one and the rest filled with a constant."""
