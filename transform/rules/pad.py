"""Stages that pad: what there is lies in runs of memory and is copied as such, the rest filled.

Line by line, a run of pixels with all their channels goes from one image to the other, without a
test for each of them: whether a line has any is asked before it, and what is copied of it is a
interval of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Cast, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Store
from unity.ir.symbols.representative import IMAGE
from unity.ir.visit import substitute_prim
from unity.machine.target import Target

from ..blocks.access import depends, known_of, mentions, place, step
from ..blocks.extents import number, product
from ..blocks.nest import Axis, Nest
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule
from ..tactics.reshaping import joining
from ..tactics.threads import share
from .rule import by_steps, worth

MOST_EDGE = 16
"""Elements of a line of unknown length that may be padding, at most."""
MOST_APART = 4
"""How far apart the elements of a line may lie that are copied, at most."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """How many of a line's first pixels, and of its last, are padding, or may be."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Lines:
    """A stage that pads, as lines.

    Attributes:
        nest: The stage.
        store: Its store.
        outer: The axes of the lines, but the phase.
        phase: The axis before the pixels of which each index has edges of its own: the input is
            dealt to so many lines.
        pixel: The axis along a line on which what there is has a begin and an end.
        inner: Those within a pixel, all of them there.
        edges: Where that is, for each phase.
        rows: The other axes that conditions are on, outermost first, and where something is on
            each of them.
        others: These conditions.
    """

    nest: Nest
    store: Store
    outer: tuple[Axis, ...]
    phase: Axis | None
    pixel: Axis
    inner: tuple[Axis, ...]
    edges: tuple[_Edges, ...]
    rows: tuple[tuple[Axis, _Edges], ...]
    others: tuple[PrimExpr, ...]

    @property
    def width(self) -> int:
        """Elements of a pixel."""
        return math.prod(number(a.extent) or 0 for a in self.inner)

    @property
    def length(self) -> int | None:
        """Pixels of a line; None where that is unknown."""
        return number(self.pixel.extent)


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
        at, every = len(lines.nest.axes) - len(lines.inner) - 1, len(lines.nest.axes)
        groups = [*([k] for k in range(at)), range(at, every)]
        sch.transform_block_layout(name, joining(lines.nest.axes, groups))
    *outer, element = sch.get_loops(name)
    within = element if lines.phase is None else outer.pop()
    points = product([a.extent for a in lines.outer])
    work = (lines.length or IMAGE) * lines.width * len(lines.edges)
    each = work * -(-(number(points) or 1) // sch.target.threads)
    lanes = sch.target.vector_bits // max(8, lines.store.buffer.dtype.bits)
    if sch.target.threads > 1 and outer and not _are_few(lines, max(how.grain, each)):
        if len(outer) > 1 and lines.inner:
            # Each thread has the lines that it reads; of single elements, channels of them.
            outer = [outer[-1], *outer[:-1]]
            sch.reorder(*outer, *([] if within is element else [within]))
        share(sch, outer, points, imm(work), max(how.grain, each))
        if lines.others:
            within, elsewhere = sch.unswitch(within)
            _fill(sch, lines, elsewhere, lanes)
        _copy(sch, lines, within, lanes)
        return
    there = [name]
    for axis, edges in lines.rows:
        loop = sch.get_loops(there[0])[lines.nest.axes.index(axis)]
        parts = _parted(sch, loop, edges, number(axis.extent))
        for part in parts:
            if part is not None and part is not parts[1]:
                _fill(sch, lines, part, lanes)
        there = [b.name for b in sch.get_child_blocks(parts[1])]
    loops = sch.get_loops(there[0])
    _copy(sch, lines, loops[len(lines.outer)], lanes)


def _are_few(lines: _Lines, grain: int) -> bool:
    """Whether lines are not worth another thread."""
    points = number(product([a.extent for a in lines.outer]))
    work = (lines.length or IMAGE) * lines.width * len(lines.edges)
    return points is not None and points * work <= grain


def _parted(
    sch: Schedule, loop: LoopRef, edges: _Edges, extent: int | None
) -> tuple[LoopRef | None, LoopRef, LoopRef | None]:
    """A loop whose first iterations and last ones stand apart, those that there are."""
    if not edges.first and not edges.last:
        return None, loop, None
    if extent is None:
        parts = sch.peel(loop, edges.first, edges.last)
    else:
        intervals = (edges.first, extent - edges.first - edges.last, edges.last)
        parts = sch.loop_partition(loop, [n for n in intervals if n][:-1])
    first, *rest = parts
    before = first if edges.first else None
    middle = rest[0] if edges.first else first
    return before, middle, rest[-1] if edges.last else None


def _fill(sch: Schedule, lines: _Lines, loop: LoopRef, lanes: int) -> None:
    """Lines of which there is nothing."""
    along = sch.get_loops(sch.get_child_blocks(loop)[0])[-1]
    _runs(sch, along, [None if lines.length is None else lines.length * lines.width], lanes)


def _copy(sch: Schedule, lines: _Lines, loop: LoopRef, lanes: int) -> None:
    """Lines of which there is something, each phase by itself."""
    parts: Sequence[LoopRef] = [loop]
    if len(lines.edges) > 1:
        parts = sch.loop_partition(loop, [1] * (len(lines.edges) - 1))
    for part, edge in zip(parts, lines.edges, strict=True):
        along = sch.get_loops(sch.get_child_blocks(part)[0])[-1]
        first, last = edge.first * lines.width, edge.last * lines.width
        middle = None if lines.length is None else lines.length * lines.width - first - last
        _runs(sch, along, [first, middle, last], lanes)


def _runs(sch: Schedule, loop: LoopRef, intervals: Sequence[int | None], lanes: int) -> None:
    """A loop over a line as intervals: whole registers, then what is left by halves of one.

    One of unknown length has lanes past its end that do nothing.
    """
    if None in intervals:
        unknown = intervals.index(None)
        first, last = (sum(n or 0 for n in part) for part in
                       (intervals[:unknown], intervals[unknown:]))  # fmt: skip
        parts = sch.peel(loop, first, last) if first or last else (loop,)
        sch.vectorize(sch.split(parts[int(first > 0)], [None, lanes])[1])
        return
    runs: list[tuple[int, int]] = []
    for count in intervals:
        left, wide = count or 0, lanes
        while left:
            if left >= wide:
                runs.append((left // wide * wide, wide))
                left %= wide
            wide //= 2
    parts = (loop,)
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
    asked = conjuncts(known.simplify(choice.condition))
    if not all(isinstance(e, Compare) and e.a.dtype == INT64 for e in asked):
        return None
    at = max((i for i, a in enumerate(nest.axes) if any(depends(e, a.var) for e in asked)),
             default=-1)  # fmt: skip
    if at < 0:
        return None
    pixel, inner = nest.axes[at], nest.axes[at + 1 :]
    along = [e for e in asked if depends(e, pixel.var)]
    others = tuple(e for e in asked if e not in along)
    dealt = [a for a in nest.axes[:at] if any(depends(e, a.var) for e in along)]
    if any(a is not nest.axes[at - 1] for a in dealt):
        return None
    phase = dealt[0] if dealt else None
    phases = [None] if phase is None else list(range(number(phase.extent) or 0))
    if not 1 <= len(phases) <= MOST_APART or any(number(a.extent) is None for a in inner):
        return None
    if phase is not None and any(depends(e, phase.var) for e in others):
        return None
    rows: list[tuple[Axis, _Edges]] = []
    for axis in nest.axes[:at]:
        mine = [e for e in others if depends(e, axis.var)]
        bound = _edges(mine, axis, known) if mine else None
        if bound is not None:
            rows.append((axis, bound))
    if any(not any(depends(e, a.var) for a, _ in rows) for e in others):
        return None
    edges: list[_Edges] = []
    for value in phases:
        here = known if value is None or phase is None else known.with_value(phase.var, imm(value))
        found = _edges(along, pixel, here)
        if found is None:
            return None
        edges.append(found)
    index, size = place(load, known), 1
    for axis in reversed(inner):
        if step(index, axis.var) != size and number(axis.extent) != 1:
            return None
        size *= number(axis.extent) or 1
    moved = step(index, pixel.var)
    if moved != size and (size != 1 or moved is None or not 1 < moved <= MOST_APART):
        return None
    outer = nest.axes[: at - (phase is not None)]
    return _Lines(nest, store, outer, phase, pixel, inner, tuple(edges), tuple(rows), others)


def _edges(asked: Sequence[PrimExpr], pixel: Axis, known: Analyzer) -> _Edges | None:
    """How many pixels at the ends may be padding; None where that is not known.

    Of a line of known length, just those that are; None where nothing else is.
    """
    extent, edges = number(pixel.extent), [0, 0]
    for e in asked:
        assert isinstance(e, Compare)
        count = range(MOST_EDGE if extent is None else extent)
        for k, end in enumerate((True, False)):
            if not _towards(e, pixel.var, known, begin=end):
                continue
            places = (imm(n) if end else pixel.extent - (n + 1) for n in count)
            held = (n for n, x in enumerate(places) if _holds(e, pixel.var, x, known))
            found = next(held, None)
            if found is None:
                return None
            edges[k] = max(edges[k], found)
            break
        else:
            return None
    if extent is not None and sum(edges) >= extent:
        return None
    return _Edges(*edges)


def _towards(e: Compare, var: PrimVar, known: Analyzer, *, begin: bool) -> bool:
    """Whether a comparison holds from a value of a variable on, or up to one if not `begin`."""
    if e.op in ("eq", "ne"):
        return False
    distance = Binary("sub", e.a, e.b) if e.op in ("ge", "gt") else Binary("sub", e.b, e.a)
    rest, factor = split_linear(from_expr(known.simplify(distance)), var)
    pace = None if factor is None else as_constant(factor)
    return bool(pace) and not mentions(rest, var) and ((pace or 0) > 0) is begin


def _holds(e: Compare, var: PrimVar, value: PrimExpr, known: Analyzer) -> bool:
    return known.prove(substitute_prim(e, {var: value}))


PAD = by_steps(
    "pad",
    match=_lines,
    decide=lambda _, target: LinesShared(target.machine.grain("elements")),
    legal=lambda *_: {"grain": worth("elements")},
    nest=lambda lines: lines.nest,
    steps=_steps,
)
"""A box is copied into a larger one and the rest filled with a constant."""
