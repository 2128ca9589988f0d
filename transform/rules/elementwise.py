"""Elementwise, broadcast and injective stages: threads over rows, lanes along each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.intrinsics import COSTLY
from unity.ir.prim_expr import Intrinsic, PrimExpr, imm
from unity.ir.regions import multiply
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.machine.target import Target

from ..blocks.access import joined_axes, known_of, place, step
from ..blocks.extents import ceildiv, number, product
from ..blocks.nest import Nest
from ..roles.lanes import lanes_for
from ..schedule.schedule import Schedule
from ..tactics.reshaping import joining
from ..tactics.threads import share
from .rule import Legal, Neighbourhood, by_steps, worth

ROW = 4096
"""Long rows are cut to pieces of so many elements when there are few of them."""
MOST_LANES = 64
"""Elements of a vector, at most."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A stage that makes each element by a formula.

    Attributes:
        written: It as it was written.
        joined: It with its axes joined as far as every access walks evenly.
        counts: Of how many axes each of its axes is made.
    """

    written: Nest
    joined: Nest
    counts: tuple[int, ...]

    @property
    def row(self) -> int | None:
        """Elements of a row; None where that is not known."""
        return number(self.joined.axes[-1].extent) if self.joined.axes else 1


@dataclass(frozen=True, slots=True)
class RowLoops:
    """The decisions.

    Attributes:
        lanes: Elements of a vector.
        piece: Elements of a row that are a task of their own; 0 where rows stay whole.
        grain: Simple operations that are worth waking a thread for.
    """

    lanes: int
    piece: int
    grain: int


def _match(nest: Nest, _target: Target) -> Elements | None:
    if nest.reduction is not None:
        return None
    joined, counts = joined_axes(nest)
    return Elements(nest, joined, tuple(counts))


def _rows(nest: Nest) -> PrimExpr:
    return product([a.extent for a in nest.axes[:-1]])


def _decide(elements: Elements, target: Target) -> RowLoops:
    nest, row = elements.joined, elements.row
    lanes = lanes_for(_bits(nest), target.vector_bits, nest.axes[-1].extent) if nest.axes else 1
    few = (number(_rows(nest)) or 4 * target.threads) < 4 * target.threads
    piece = ROW if few and (row is None or row > 2 * ROW) else 0
    return RowLoops(1 if row == 1 else lanes, piece, target.machine.grain("elements"))


def _legal(elements: Elements, how: RowLoops, _target: Target) -> Neighbourhood:
    row = elements.row
    powers = [1 << k for k in range(1, MOST_LANES.bit_length())]
    lanes = [n for n in powers if row is None or n < 2 * row]
    pieces = [n for n in (1 << k for k in range(4, 18)) if row is None or n < row]
    of = f"a row has {'so many' if row is None else row} elements"
    return {
        "lanes": Legal([1] if row == 1 else lanes, of),
        "piece": Legal([0, *pieces], of),
        "grain": worth("simple operations"),
    }


def schedule_elements(sch: Schedule, elements: Elements, how: RowLoops, name: str) -> None:
    """Lay out a block that makes each element by a formula, by steps of a schedule.

    The axes are joined as far as every access walks evenly. The innermost one is given lanes; the
    others, and the pieces of a long row, are shared among the threads.
    """
    written, nest = elements.written, elements.joined
    if not nest.axes:
        return
    if len(written.axes) > 2 or len(nest.axes) < len(written.axes):
        count = len(written.axes)
        outer, inner = range(count - elements.counts[-1]), range(count - elements.counts[-1], count)
        sch.transform_block_layout(
            name, joining(written.axes, [outer, inner] if outer else [inner])
        )
    *others, along = sch.get_loops(name)
    rows, piece = _rows(nest), nest.axes[-1].extent
    if how.piece:
        part, along = sch.split(along, [None, how.piece])
        rows = multiply(rows, ceildiv(piece, imm(how.piece)))
        piece = imm(how.piece)
        others.append(part)
    if others:
        share(sch, others, rows, multiply(piece, imm(_cost(nest))), how.grain)
    if how.lanes > 1:
        sch.vectorize(sch.split(along, [None, how.lanes])[1])


def _bits(nest: Nest) -> int:
    """The widest element that moves along the innermost axis."""
    known, var = known_of(nest.axes), nest.axes[-1].var
    widths = [s.buffer.dtype.bits for s in nest.stores()]
    widths += [x.buffer.dtype.bits for x in nest.loads() if step(place(x, known), var) != 0]
    return max(widths)


def _cost(nest: Nest) -> int:
    """Work per element, in simple operations."""
    return 1 + 8 * costly([e for s in walk_stmt(nest.finish) for e in stmt_exprs(s)])


def costly(exprs: Sequence[PrimExpr]) -> int:
    """How many functions are computed that take many instructions."""
    parts = [x for e in exprs for x in walk_prim(e)]
    return sum(isinstance(x, Intrinsic) and x.name in COSTLY for x in parts)


ELEMENTWISE = by_steps(
    "elementwise",
    _match,
    _decide,
    _legal,
    nest=lambda elements: elements.written,
    steps=schedule_elements,
)
