"""Elementwise, broadcast and injective stages: threads over rows, lanes along each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Imm, Load, PrimExpr, Select, imm
from unity.ir.regions import multiply
from unity.ir.stmt import For
from unity.ir.visit import leaves, prim_loads, stmt_exprs, walk_stmt
from unity.machine.target import Target

from ..blocks.access import (
    Reshaped,
    as_written,
    asked_in_vain,
    collapse,
    known_of,
    part,
    place,
    step,
)
from ..blocks.element_cost import functions, operations
from ..blocks.extents import ceildiv, number, product
from ..blocks.nest import Nest
from ..blocks.tree import block_path, known_at, over_sizes, scope_path
from ..roles.ends import ends_of
from ..roles.lanes import lanes_for
from ..schedule.index_map import IndexMap
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule
from ..tactics.reshaping import joining
from ..tactics.threads import share
from .rule import Legal, Neighbourhood, by_steps, worth

ROW = 4096
"""Long rows are cut to chunks of so many elements when there are few of them."""
MOST_LANES = 64
"""Elements of a vector, at most."""
LEAST = 4
"""The same at least, of the ends of rows."""
TOGETHER = 4
"""Registers that a vector has where functions are computed: one waits for each of its steps, which
others fill. Of 53 formulas and shapes it takes 0.84 of the time in geometric mean, `tanh` of
512 x 768 0.77, `erf` 1.11 (AMD Zen 3)."""
MOVED = 2
"""Registers that a vector has where elements are but moved: half as many steps of the loop. Of 28
works it takes 0.95 of the time in geometric mean, repeated rows of 28 0.76 and, of unknown length,
1.07; sums of two tensors gain nothing (AMD Zen 3)."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A stage that makes each element by a formula.

    Attributes:
        written: It as it was written.
        shaped: It with its axes parted where it reads what repeats, and joined as far as every
            access walks evenly.
        ends: How many elements at the begin of a row, and at its end, choose otherwise than those
            between them; none where threads are to share a row.
    """

    written: Nest
    shaped: Reshaped
    ends: tuple[int, int]

    @property
    def row(self) -> int | None:
        """Elements of a row; None where that is not known."""
        axes = self.shaped.nest.axes
        return number(axes[-1].extent) if axes else 1


@dataclass(frozen=True, slots=True)
class RowLoops:
    """The decisions.

    Attributes:
        lanes: Elements of a vector.
        chunk: Elements of a row that are a task of their own; 0 where rows stay whole.
        grain: Simple operations that are worth waking a thread for.
    """

    lanes: int
    chunk: int
    grain: int


def _match(nest: Nest, target: Target) -> Elements | None:
    if nest.reduction is not None:
        return None
    lanes = lanes_for(_bits(nest), target.vector_bits, nest.axes[-1].extent) if nest.axes else 1
    shaped = collapse(part(as_written(nest), lanes))
    found = Elements(nest, shaped, (0, 0))
    alone = len(shaped.nest.axes) < 2 if found.row is None else _is_long(found, target)
    return found if alone else replace(found, ends=ends_of(shaped.nest))


def _is_long(elements: Elements, target: Target) -> bool:
    """Whether rows are so few and so long that threads share one."""
    few = (number(_rows(elements.shaped.nest)) or 4 * target.threads) < 4 * target.threads
    return few and (elements.row is None or elements.row > 2 * ROW)


def _rows(nest: Nest) -> PrimExpr:
    return product([a.extent for a in nest.axes[:-1]])


def _decide(elements: Elements, target: Target) -> RowLoops:
    nest, row = elements.shaped.nest, elements.row
    lanes = lanes_for(_bits(nest), target.vector_bits, nest.axes[-1].extent) if nest.axes else 1
    wide = min(_together(nest) * lanes, MOST_LANES) if lanes > 1 else 1
    if row is None or row >= wide:
        lanes = wide
    chunk = ROW if _is_long(elements, target) and not any(elements.ends) else 0
    return RowLoops(1 if row == 1 else lanes, chunk, target.machine.grain("elements"))


def _legal(elements: Elements, how: RowLoops, _target: Target) -> Neighbourhood:
    row = elements.row
    powers = [1 << k for k in range(1, MOST_LANES.bit_length())]
    lanes = [n for n in powers if row is None or n < 2 * row]
    chunks = [n for n in (1 << k for k in range(4, 18)) if row is None or n < row]
    of = f"a row has {'so many' if row is None else row} elements"
    return {
        "lanes": Legal([1] if row == 1 else lanes, of),
        "chunk": Legal([0, *chunks] if not any(elements.ends) else [0], of),
        "grain": worth("simple operations"),
    }


def schedule_elements(sch: Schedule, elements: Elements, how: RowLoops, name: str) -> None:
    """Lay out a block that makes each element by a formula, by steps of a schedule.

    The axes are parted where elements repeat, and joined as far as every access walks evenly. The
    innermost one is given lanes, its ends apart where they choose otherwise; the others, and the
    chunks of a long row, are shared among the threads. Whether a tensor has elements is asked
    before the loops: lanes that pick from memory do so at once then, not one tensor's after the
    other's. Where it has none there is no work for threads.
    """
    written, nest = elements.written, elements.shaped.nest
    if not nest.axes:
        return
    before, places = tuple(a.var for a in written.axes), elements.shaped.places
    if len(places) > 2 or places != before:
        last = len(places) - 1
        joined = joining(nest.axes, [range(last), [last]] if last else [[last]])
        sch.transform_block_layout(name, IndexMap(before, joined(places)))
    *others, along = sch.get_loops(name)
    rows, chunk = _rows(nest), nest.axes[-1].extent
    if how.chunk:
        part, along = sch.split(along, [None, how.chunk])
        rows = multiply(rows, ceildiv(chunk, imm(how.chunk)))
        chunk = imm(how.chunk)
        others.append(part)
    if _asks_for_elements(nest, _known_around(sch, name)):
        _, elsewhere = sch.unswitch(sch.get_loops(name)[0])
        (other,) = sch.get_child_blocks(elsewhere)
        _give_lanes(sch, elements, how, sch.get_loops(other)[-1])
        *others, along = sch.get_loops(name)
    if others:
        share(sch, others, rows, multiply(chunk, imm(_cost(nest))), how.grain)
    _give_lanes(sch, elements, how, along)


def _give_lanes(sch: Schedule, elements: Elements, how: RowLoops, along: LoopRef) -> None:
    """Vectors along a row, its ends apart."""
    if how.lanes == 1:
        return
    first, last = elements.ends
    parts = sch.peel(along, first, last) if first or last else (along,)
    lengths = [n for n in (first, None, last) if n != 0]
    for loop, length in zip(parts, lengths, strict=True):
        lanes = how.lanes
        while length is not None and length < lanes:
            lanes //= 2
        if lanes >= LEAST:
            sch.vectorize(sch.split(loop, [None, lanes])[1])


def _known_around(sch: Schedule, name: str) -> Analyzer:
    """What is known before the loops around a block: a version of a kernel tells of sizes."""
    path = block_path(sch.func, name)[0]
    own = scope_path(path)
    loops = (k for k, s in enumerate(own) if isinstance(s, For))
    return known_at(path[: len(path) - len(own) + next(loops, len(own))])


def _asks_for_elements(nest: Nest, known: Analyzer) -> bool:
    """Whether lanes or several tensors are read where sizes say first that there is anything.

    One tensor that is read as it lies gains nothing: rows of 256 of a table took 1.03 of the time.
    """
    selects = (x for e in _exprs(nest) for x in leaves(e).selects)
    asking = [x for x in selects if _asks_sizes(x.condition, known)]
    if not asking or not prim_loads(asking[0].then) or prim_loads(asking[0].orelse):
        return False
    return len(asking) > 1 or not _is_even(nest)


def _asks_sizes(condition: PrimExpr, known: Analyzer) -> bool:
    """Whether a part of a condition is the same all through a call, and not for every call."""
    parts = (e for e in conjuncts(condition) if over_sizes(e) and asked_in_vain(e, known))
    return any(not isinstance(known.simplify(e), Imm) for e in parts)


def _together(nest: Nest) -> int:
    """Registers of a vector."""
    if functions(_exprs(nest)):
        return TOGETHER
    return MOVED if _only_moves(nest) else 1


def _only_moves(nest: Nest) -> bool:
    """Whether elements are taken from where they lie, one after the other along the rows."""
    return _is_even(nest) and all(_is_taken(s.value) for s in nest.stores())


def _is_even(nest: Nest) -> bool:
    """Whether all that is read lies so many elements further for each step along the rows."""
    known, var = known_of(nest.axes), nest.axes[-1].var
    return all(step(place(x, known), var) is not None for x in nest.loads())


def _is_taken(value: PrimExpr) -> bool:
    """Whether a value is what lies somewhere, or a number."""
    if isinstance(value, Select):
        return _is_taken(value.then) and _is_taken(value.orelse)
    return isinstance(value, Load | Imm)


def _bits(nest: Nest) -> int:
    """The widest element that moves along the innermost axis."""
    known, var = known_of(nest.axes), nest.axes[-1].var
    widths = [s.buffer.dtype.bits for s in nest.stores()]
    widths += [x.buffer.dtype.bits for x in nest.loads() if step(place(x, known), var) != 0]
    return max(widths)


def _exprs(nest: Nest) -> Iterator[PrimExpr]:
    """What is computed for each element."""
    return (e for s in walk_stmt(nest.finish) for e in stmt_exprs(s))


def _cost(nest: Nest) -> int:
    """Work per element, in simple operations."""
    return operations(_exprs(nest))


ELEMENTWISE = by_steps(
    "elementwise",
    _match,
    _decide,
    _legal,
    nest=lambda elements: elements.written,
    steps=schedule_elements,
)
