"""Stages that read across what they write: threads over blocks, rectangles turned in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Seq, Stmt, Store
from unity.ir.visit import (
    prim_children,
    rewrite_stmt,
    stmt_exprs,
    substitute_prim,
    substitute_stmt,
    walk_stmt,
)
from unity.machine.target import Target

from ..blocks.access import collapsed, known_of, place, step, stride
from ..blocks.extents import ceildiv, number, product
from ..blocks.nest import Axis, Nest
from ..schedule.marked import transpose
from ..tactics.register_tile import Values
from ..tactics.threads import parallel
from .rule import Legal, Neighbourhood, Rule, worth

LEAST = 8
"""An axis shorter than this is not worth a rectangle's shuffles."""
NEAR = (2, 2)
"""Rectangles of a block along the axis read and the axis written, within the second cache."""
FAR = (64, 1)
"""The same beyond it: a page of each row in order, which the memory's prefetching follows."""
_UNROLLED = 16
"""Lines of a rectangle up to which what is computed of them stays in registers."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A stage whose loads run along one axis and whose store runs along another.

    Attributes:
        nest: The stage.
        outer: The other axes.
        along: The axis in which what is read is contiguous.
        across: The one in which what is written is.
        loads: What is read along.
        height: Elements of a rectangle along.
        lanes: Elements across.
    """

    nest: Nest
    outer: tuple[Axis, ...]
    along: Axis
    across: Axis
    loads: tuple[Load, ...]
    height: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Rectangles:
    """The decisions.

    Attributes:
        rows: Rectangles of a block along the axis that is read.
        columns: The same along the one that is written.
        grain: Elements that a task has at least.
    """

    rows: int
    columns: int
    grain: int


def _decide(crossing: Crossing, target: Target) -> Rectangles:
    points = number(product([a.extent for a in crossing.nest.axes]))
    size = crossing.loads[0].buffer.dtype.bytes
    near = points is not None and 2 * points * size <= target.l2_bytes
    return Rectangles(*(NEAR if near else FAR), grain=target.machine.grain("elements"))


def _legal(_crossing: Crossing, _decisions: Rectangles, _target: Target) -> Neighbourhood:
    several = Legal(range(1, FAR[0] + 1), f"a block has up to {FAR[0]} rectangles each way")
    return {"rows": several, "columns": several, "grain": worth("elements")}


def _write(crossing: Crossing, how: Rectangles, _target: Target) -> Stmt:
    """Rectangles of a cache line by a register, turned in registers.

    What is computed of the loads is computed on the turned lines.
    """
    height, lanes = imm(crossing.height), imm(crossing.lanes)
    down = ceildiv(crossing.along.extent, height)
    right = ceildiv(crossing.across.extent, lanes)
    rows, columns = how.rows, how.columns
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in crossing.outer]
    domain += [("down", ceildiv(down, imm(rows))), ("right", ceildiv(right, imm(columns)))]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        *at, r, c = point
        values: Values = {a.var: p for a, p in zip(crossing.outer, at, strict=True)}
        i, j = PrimVar("i"), PrimVar("j")
        first, other = multiply(r, imm(rows)), multiply(c, imm(columns))
        top, left = multiply(add(first, i), height), multiply(add(other, j), lanes)
        tile = _clipped(crossing, Place(values, top, left))
        inner = For(j, imm(0), _count(right, other, columns), tile)
        return For(i, imm(0), _count(down, first, rows), inner)

    size = rows * columns * crossing.height * crossing.lanes
    whole = number(product([crossing.along.extent, crossing.across.extent]))
    return parallel(domain, imm(size if whole is None else min(size, whole)), how.grain, body)


def _count(extent: PrimExpr, first: PrimExpr, most: int) -> PrimExpr:
    return Analyzer().simplify(Binary("min", imm(most), Binary("sub", extent, first)))


def crossing_of(nest: Nest, target: Target) -> Crossing | None:
    """How a stage's loads cross its store; None where they do not, or not evenly."""
    if nest.reduction is not None:
        return None
    nest = collapsed(nest)
    if len(nest.axes) < 2:
        return None
    known, across = known_of(nest.axes), nest.axes[-1]
    stores = list(nest.stores())
    if len(stores) != 1 or step(place(stores[0], known), across.var) != 1:
        return None
    loads: list[Load] = []
    for load in nest.loads():
        if stride(place(load, known), across.var) is None:
            return None
        if step(place(load, known), across.var) not in (0, 1):
            loads.append(load)
    axes = [_contiguous(x, nest.axes[:-1], known) for x in loads]
    along = axes[0] if axes else None
    if along is None or any(a is not along for a in axes) or not _worth(along, across):
        return None
    if any(x.predicate is not None for x in loads) or not _always(nest.finish, set(loads)):
        return None
    outer = tuple(a for a in nest.axes if a is not along and a is not across)
    size = max(x.buffer.dtype.bytes for x in loads)
    widest = max(size, stores[0].buffer.dtype.bytes)
    height, lanes = LINE // size, max(2, target.vector_bits // (8 * widest))
    height, lanes = (_at_most(*x) for x in ((height, along), (lanes, across)))
    return Crossing(nest, outer, along, across, tuple(dict.fromkeys(loads)), height, lanes)


def _at_most(size: int, axis: Axis) -> int:
    known = number(axis.extent)
    return size if known is None else min(size, known)


def _contiguous(load: Load, axes: Sequence[Axis], known: Analyzer) -> Axis | None:
    index = place(load, known)
    return next((a for a in axes if step(index, a.var) == 1), None)


def _worth(*axes: Axis) -> bool:
    known = (number(a.extent) for a in axes)
    return all(extent is None or extent >= LEAST for extent in known)


def _always(finish: Stmt, loads: set[Load]) -> bool:
    """Whether loads are done in any case: a branch's may be outside of the buffer elsewhere."""

    def free(e: PrimExpr) -> bool:
        if isinstance(e, Select):
            return free(e.condition) and not any(_reads(x, loads) for x in (e.then, e.orelse))
        return all(free(x) for x in prim_children(e))

    return all(free(e) for s in walk_stmt(finish) for e in stmt_exprs(s))


def _reads(e: PrimExpr, loads: set[Load]) -> bool:
    return e in loads or any(_reads(x, loads) for x in prim_children(e))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rectangle is: the values of the other axes, and its first point."""

    outer: Values
    top: PrimExpr
    left: PrimExpr

    def at(self, crossing: Crossing, r: PrimExpr, lane: PrimExpr) -> Values:
        """The axes' values at a point of the rectangle."""
        along, across = crossing.along.var, crossing.across.var
        return {**self.outer, along: add(self.top, r), across: add(self.left, lane)}


def _clipped(crossing: Crossing, place: Place) -> Stmt:
    """The rectangle at a place, or what of it lies inside."""
    height, lanes = crossing.height, crossing.lanes
    along, across = crossing.along.extent, crossing.across.extent
    inside_down = Compare("le", add(place.top, imm(height)), along)
    inside_right = Compare("le", add(place.left, imm(lanes)), across)
    whole = _turned(crossing, place, height, lanes)
    down, right = number(along), number(across)
    if down is None or right is None:
        rows = Binary("min", imm(height), Binary("sub", along, place.top))
        columns = Binary("min", imm(lanes), Binary("sub", across, place.left))
        rest = _line_by_line(crossing, place, crossing.nest.finish, rows, columns)
        return IfThen(Binary("and", inside_down, inside_right), whole, rest)
    below, beside = down % height, right % lanes

    def wide(rows: int) -> Stmt:
        full = _turned(crossing, place, rows, lanes)
        return full if not beside else IfThen(inside_right, full, part(rows))

    def part(rows: int) -> Stmt:
        return _turned(crossing, place, rows, beside)

    return IfThen(inside_down, wide(height), wide(below)) if below else wide(height)


def _turned(crossing: Crossing, place: Place, height: int, lanes: int) -> Stmt:
    """A rectangle: through registers into the output, or into memory of its own first."""
    finish = crossing.nest.finish
    if height == 1 or lanes == 1:
        return _line_by_line(crossing, place, finish, imm(height), imm(lanes))

    def moved(access: Load | Store, x: Sequence[PrimVar]) -> Load:
        at = place.at(crossing, *x)
        return Load(access.buffer, tuple(substitute_prim(i, at) for i in access.indices))

    def turn(source: Load, to: Callable[[Sequence[PrimVar]], Load]) -> Stmt:
        return transpose(to, lambda x: moved(source, x), height, lanes)

    if isinstance(finish, Store) and finish.value in crossing.loads:
        return turn(crossing.loads[0], lambda x: moved(finish, x))
    turned = {
        x: Buffer("turned", (imm(height), imm(_power(lanes))), x.buffer.dtype, scope="local")
        for x in crossing.loads
    }
    r, lane = PrimVar("r"), PrimVar("lane")

    def on_load(x: PrimExpr) -> PrimExpr | None:
        return Load(turned[x], (r, lane)) if isinstance(x, Load) and x in turned else None

    def into(buffer: Buffer) -> Callable[[Sequence[PrimVar]], Load]:
        return lambda x: Load(buffer, tuple(x))

    computed = rewrite_stmt(finish, None, on_load)
    lines = _lines(crossing, place, computed, (r, lane), imm(height), imm(lanes))
    body: Stmt = Seq((*(turn(x, into(buffer)) for x, buffer in turned.items()), lines))
    for buffer in turned.values():
        body = Allocate(buffer, body)
    return body


def _line_by_line(
    crossing: Crossing, place: Place, finish: Stmt, height: PrimExpr, lanes: PrimExpr
) -> Stmt:
    """A rectangle whose loads gather."""
    return _lines(crossing, place, finish, (PrimVar("r"), PrimVar("lane")), height, lanes)


def _lines(
    crossing: Crossing,
    place: Place,
    finish: Stmt,
    variables: tuple[PrimVar, PrimVar],
    height: PrimExpr,
    lanes: PrimExpr,
) -> Stmt:
    """What is stored in a rectangle, lanes across; those that lie outside are masked."""
    r, lane = variables
    stmt = substitute_stmt(finish, place.at(crossing, r, lane))
    rows, columns = number(height), number(lanes)
    width = crossing.lanes if columns is None else _power(columns)
    if columns != width:
        stmt = IfThen(Compare("lt", lane, lanes), stmt)
    unrolled = rows is not None and rows <= _UNROLLED
    line = For(lane, imm(0), imm(width), stmt, "vectorized")
    return For(r, imm(0), height, line, "unrolled" if unrolled else "serial")


def _power(lanes: int) -> int:
    return max(2, 1 << (lanes - 1).bit_length())


CROSSWISE = Rule("crosswise", crossing_of, _decide, _legal, _write)
"""Nothing is reduced, and a load is contiguous along another axis than the store."""
