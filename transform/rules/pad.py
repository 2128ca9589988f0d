"""Stages that pad: what there is lies in runs of memory and is copied as such, the rest filled.

Line by line, a run of pixels with all their channels goes from one image to the other, without a
test for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear
from unity.ir.prim_expr import Binary, Cast, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, IfThen, Stmt, Store
from unity.ir.visit import substitute_prim
from unity.machine.target import Target

from ..blocks.access import depends, known_of, place, step
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest
from ..blocks.tree import sequence
from ..tactics.register_tile import Values
from ..tactics.threads import parallel
from .rule import Rule, worth


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
        store: The store.
        choice: Its value.
        outer: The axes of the lines.
        pixel: The axis along a line on which what there is has a begin and an end.
        inner: Those within a pixel, all of them there.
        within: Where that is.
        others: Conditions on the lines.
    """

    store: Store
    choice: Select
    outer: tuple[Axis, ...]
    pixel: Axis
    inner: tuple[Axis, ...]
    within: _Bound
    others: tuple[PrimExpr, ...]

    @property
    def width(self) -> int:
        """Elements of a pixel."""
        return math.prod(number(a.extent) or 0 for a in self.inner)


@dataclass(frozen=True, slots=True)
class LinesShared:
    """The decisions.

    Attributes:
        grain: Elements that a task has at least; each thread has a run of lines, the same as at
            other stages, if that are more.
    """

    grain: int


def _write(lines: _Lines, how: LinesShared, target: Target) -> Stmt:
    """Each line as runs: what fills it, what is copied, what fills it."""
    lanes = target.vector_bits // max(8, lines.store.buffer.dtype.bits)
    outer = lines.outer[-1:] + lines.outer[:-1]  # each thread has the lines that it reads
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in outer]
    length = number(lines.pixel.extent) or 0
    bound = lines.within

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at: Values = dict(zip((a.var for a in outer), point, strict=True))
        fill, copy = lines.choice.orelse, lines.choice.then
        there = sequence(
            [
                *_run(lines, at, fill, 0, bound.begin, lanes),
                *_run(lines, at, copy, bound.begin, bound.end, lanes),
                *_run(lines, at, fill, bound.end, length, lanes),
            ]
        )
        if not lines.others:
            return there
        inside: PrimExpr = substitute_prim(lines.others[0], at)
        for other in lines.others[1:]:
            inside = Binary("and", inside, substitute_prim(other, at))
        return IfThen(inside, there, sequence(_run(lines, at, fill, 0, length, lanes)))

    work, points = length * lines.width, math.prod(number(a.extent) or 1 for a in outer)
    grain = max(how.grain, work * -(-points // target.threads))
    return parallel(domain, imm(work), grain, body)


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
    for part in _conjuncts(known.simplify(choice.condition)):
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
    lines = _Lines(store, choice, nest.axes[:at], pixel, inner, bound, tuple(others))
    index, size = place(load, known), 1
    for axis in reversed((pixel, *inner)):
        if step(index, axis.var) != size and number(axis.extent) != 1:
            return None
        size *= number(axis.extent) or 1
    return lines


def _conjuncts(e: PrimExpr) -> list[PrimExpr]:
    if isinstance(e, Binary) and e.op == "and":
        return _conjuncts(e.a) + _conjuncts(e.b)
    return [e]


def _bound(e: PrimExpr, axes: Sequence[Axis], known: Analyzer) -> _Bound | None:
    """What a comparison says of one axis; None if it is about anything else."""
    match e:
        case Compare("ge" | "gt" | "le" | "lt" as op, a, b):
            more = op in ("ge", "gt")
            strict = int(op in ("gt", "lt"))
        case _:
            return None
    axis = next((x for x in axes if depends(e, x.var)), None)
    extent = None if axis is None else number(axis.extent)
    if axis is None or extent is None:
        return None
    distance = Binary("sub", a, b) if more else Binary("sub", b, a)  # >= strict
    rest, factor = split_linear(from_expr(known.simplify(distance)), axis.var)
    offset, pace = as_constant(rest), None if factor is None else as_constant(factor)
    if offset is None or pace not in (1, -1):
        return None
    if pace == 1:
        return _Bound(axis.var, max(0, strict - offset), extent)
    return _Bound(axis.var, 0, min(extent, offset - strict + 1))


def _run(
    lines: _Lines, at: Values, value: PrimExpr, begin: int, end: int, lanes: int
) -> list[Stmt]:
    """Some pixels of a line: whole vectors, then what is left."""
    first, count = begin * lines.width, (end - begin) * lines.width
    stmts: list[Stmt] = []

    def vector(start: PrimExpr, width: int) -> Stmt:
        lane = PrimVar("lane")
        here: Values = {**at, **_place(lines, add(start, lane))}
        indices = tuple(substitute_prim(i, here) for i in lines.store.indices)
        store = Store(lines.store.buffer, indices, substitute_prim(value, here))
        return For(lane, imm(0), imm(width), store, "vectorized")

    if count >= lanes:
        var = PrimVar("vector")
        start = add(imm(first), multiply(var, imm(lanes)))
        stmts.append(For(var, imm(0), imm(count // lanes), vector(start, lanes)))
    rest, width = count % lanes, lanes
    while rest:
        width //= 2
        if rest >= width:
            part = imm(first + count - rest)
            stmts.append(vector(part, width))
            rest -= width
    return stmts


def _place(lines: _Lines, element: PrimExpr) -> Values:
    """The axes' values at an element of a line."""
    values: Values = {}
    for axis in reversed(lines.inner):
        values[axis.var] = Binary("floormod", element, axis.extent)
        element = Binary("floordiv", element, axis.extent)
    values[lines.pixel.var] = element
    return values


PADDED = Rule(
    "padded",
    match=_lines,
    decide=lambda _, target: LinesShared(target.machine.grain("elements")),
    legal=lambda *_: {"grain": worth("elements")},
    write=_write,
)
"""A box is copied into a larger one and the rest filled with a constant."""
