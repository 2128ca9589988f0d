"""Attention on matrix tiles: products of narrow numbers, and what lies between them in the caches.

For each set of rows the two right operands are copied once to panels in groups of depth; then each
block of rows is a kernel of its own (`blockize_body`): the first product makes the rows, the stages
between work on them row by row, and the second product sums along them, each laid out by its own
rule. Where sets are fewer than tasks, a task is a block of rows, with panels of its own. Numbers of
rows, their lengths and the other extents must be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from unity.ir.dtype import FLOAT32
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.machine.dot_units import SIDE, depth_of, group_of, has_dot
from unity.machine.target import Target

from ...blocks.access import depends
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path
from ...roles.attention import RowChain
from ...roles.grouped_panels import operands
from ...schedule.index_map import IndexMap
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.threads import share
from ..rows.by_row import ROWS
from ..rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from ..stages import Stages
from ..within import lay_out_within
from .stages import (
    ALONG,
    UNIT,
    WITHIN,
    Attention,
    Places,
    attention_of,
    first_makers,
    keep_in_place,
    loops_in_order,
    placed,
    places_of,
    units_of,
)

WIDTH = 2 * SIDE
"""Columns of a panel, and what rows of a block are a multiple of."""
FEW = 16
"""Rows from which on tiles are full enough."""
BLOCK_BYTES = 128 << 10
"""What a block's rows take, at most, if there are more than one pair of tiles."""
MOST_BYTES = 1 << 20
"""What the rows of the smallest block may take."""


@dataclass(frozen=True, slots=True)
class ChainTiles:
    """The decisions.

    Attributes:
        height: Rows of a block.
        grain: Multiply-adds that a task has at least.
    """

    height: int
    grain: int


def _match(stages: Stages, target: Target) -> Attention | None:
    """Attention both of whose products are of numbers that the target has tiles for."""
    found = attention_of(stages, target)
    if found is None:
        return None
    chain = found.chain
    row = chain.row
    head, tail = chain.head.reduction, chain.tail.reduction
    assert head is not None
    assert tail is not None
    if row is None or len(head.axes) != 1 or len(chain.columns) != 1:
        return None
    extents = [number(a.extent) for a in (row, chain.inner, head.axes[0], chain.columns[0])]
    if any(not e for e in extents) or (extents[0] or 0) < FEW:
        return None
    first = operands(head, chain.inner.var)
    second = operands(tail, chain.columns[0].var)
    if first is None or second is None:
        return None
    for (left, right), reduction in ((first, head), (second, tail)):
        if not has_dot(target, "tile", left.dtype, right.dtype, reduction.value.dtype):
            return None
    depth = extents[2] or 0
    if depth % depth_of(first[1].dtype) or _row_bytes(chain) * WIDTH > MOST_BYTES:
        return None
    if head.op != "add" or tail.op != "add" or head.init != head.identity:
        return None
    return found


def _row_bytes(chain: RowChain) -> int:
    """What a row of a block takes."""
    return _padded(chain) * FLOAT32.bytes


def _padded(chain: RowChain) -> int:
    """Elements of a row, in whole panels."""
    return -(-(number(chain.inner.extent) or 0) // WIDTH) * WIDTH


def _decide(found: Attention, target: Target) -> ChainTiles:
    most = BLOCK_BYTES // _row_bytes(found.chain) // WIDTH * WIDTH
    height = min(max(most, WIDTH), found.count or 1)
    return ChainTiles(height, target.machine.grain("tile_multiply_adds"))


def _legal(found: Attention, _decisions: ChainTiles, _target: Target) -> Neighbourhood:
    rows, most = found.count or 1, MOST_BYTES // _row_bytes(found.chain)
    heights = [min(h, rows) for h in range(WIDTH, rows + WIDTH, WIDTH) if min(h, rows) <= most]
    why = f"blocks of {rows} rows in steps of {WIDTH}, of at most {MOST_BYTES} bytes"
    return {"height": Legal(heights, why), "grain": worth("multiply-adds")}


def schedule_on_tiles(sch: Schedule, found: Attention, how: ChainTiles, results: Results) -> None:
    """Lay out attention by steps of a schedule."""
    assert sch.target is not None
    keep_in_place(sch, found, results)
    places = places_of(found, results)
    for name in first_makers(sch, places):
        sch.set_scope(name, 0, "local")
    products = [_in_panels(sch, nest, places) for nest in (found.written[0], found.written[-1])]
    places = _in_order(places, products)
    rows, sets = found.count or 1, prod(number(a.extent) or 1 for a in found.chain.outer)
    whole, left = divmod(rows, how.height)
    alone = whole > 1 and sets < sch.target.tasks
    around = _around(sch, found, places, how.height, alone=alone)
    for name in first_makers(sch, places):
        sch.store_at(name, 0, around[-1])
    for panels in products:
        _lay_out_panels(sch, panels, around[:-1])
    depth, first, rest = len(around), 0 if alone else -1, dict[str, str]()
    if left:
        body, others = sch.loop_partition(around[first], [whole])
        before, behind = (sch.get_child_blocks(x) for x in (body, others))
        rest = {a.name: b.name for a, b in zip(before, behind, strict=True)}
    _lay_out(sch, places, around, trimmed=bool(left))
    if rest:
        tail = {rest[name]: own for name, own in places.items()}
        behind_it = list(sch.get_loops(next(iter(tail)))[:depth])
        _lay_out(sch, tail, behind_it, trimmed=True)
    else:
        behind_it = []
    if alone:
        _share(sch, found, around[:-1], whole * sets, how.height, how.grain)
        if rest:
            _share(sch, found, behind_it[1:-1], sets, left, how.grain)
    else:
        _share(sch, found, around[:-1], sets, rows, how.grain)


@dataclass(frozen=True, slots=True)
class _Panels:
    """A product whose right operand is copied to panels.

    Attributes:
        sums: The block that sums up.
        copy: What copies the right operand.
        column: Which of the copy's axes is over columns.
        depth: Which is over the depth.
        columns: How many columns there are, in whole panels or not.
        deep: How many elements of depth.
        left: What copies the left operand with zeros behind its end, if anything does.
        places: Where the loops over that one's axes are to stand.
    """

    sums: str
    copy: str
    column: int
    depth: int
    columns: int
    deep: int
    left: str | None
    places: tuple[int, ...]


def _in_panels(sch: Schedule, nest: Nest, places: Places) -> _Panels:
    """A product over whole panels and steps, its depth in groups, its right operand a copy."""
    reduction, own = nest.reduction, places[nest.name]
    assert reduction is not None
    axes = (*nest.axes, *reduction.axes)
    column = next(k for k, p in enumerate(own) if p in (WITHIN, ALONG))
    several = (k for k in range(len(nest.axes), len(axes)) if number(axes[k].extent) != 1)
    depth = next(several, len(axes) - 1)
    factors = operands(reduction, axes[column].var)
    assert factors is not None
    moves = [[k for k, a in enumerate(axes) if depends(x, a.var)] for x in factors]
    right = _index_of_right(reduction.value, axes[column])
    group, step = group_of(factors[1].dtype), depth_of(factors[1].dtype)
    padding = [1] * len(axes)
    padding[column], padding[depth] = WIDTH, step
    copies = [sch.cache_operand(nest.name, right, "local").name]
    if (number(axes[depth].extent) or 0) % step:
        copies.append(sch.cache_operand(nest.name, 1 - right, "local").name)
    sch.pad_einsum(nest.name, padding)
    copy, *lefts = (_filled_up(sch, copy, nest.name) for copy in copies)
    at = tuple(PrimVar(f"i{k}") for k in range(len(axes)))
    parted = (Binary("floordiv", at[depth], imm(group)), Binary("floormod", at[depth], imm(group)))
    sch.transform_block_layout(nest.name, IndexMap(at, (*at[:depth], *parted, *at[depth + 1 :])))
    places[nest.name] = [*own[:depth], WITHIN, *own[depth:]]
    return _Panels(
        nest.name,
        copy,
        moves[1].index(column),
        moves[1].index(depth),
        number(axes[column].extent) or 1,
        number(axes[depth].extent) or 1,
        lefts[0] if lefts else None,
        tuple(own[k] for k in moves[0]),
    )


def _index_of_right(value: PrimExpr, column: Axis) -> int:
    """Which factor moves along the columns."""
    assert isinstance(value, Binary)
    return 0 if depends(value.a, column.var) else 1


def _filled_up(sch: Schedule, copy: str, sums: str) -> str:
    """What copies an operand, with zeros behind its end where that is no end of a panel or step."""
    (reader,) = sch.get_consumers(copy)
    if reader.name == sums:
        return copy
    sch.compute_inline(copy)
    sch.set_scope(reader, 0, "local")
    return reader.name


def _in_order(places: Places, products: Sequence[_Panels]) -> Places:
    """With the copies of left operands, each before the block that reads it."""
    lefts = {x.sums: (x.left, [*x.places]) for x in products}
    found: Places = {}
    for name, own in places.items():
        left, at = lefts.get(name, (None, own))
        if left is not None:
            found[left] = at
        found[name] = own
    return found


def _around(
    sch: Schedule, found: Attention, places: Places, height: int, *, alone: bool
) -> list[LoopRef]:
    """The loops that all blocks have in common: over sets, and over blocks of rows.

    Blocks come last; where they are tasks first, with a loop of one iteration in their place.
    """
    row, units = len(found.chain.outer), units_of(places)
    for name, own in places.items():
        order, loops = placed(own, units), loops_in_order(sch, name)
        block, *inner = sch.split(loops[own.index(row)], [None, *([1] if alone else []), height])
        some = [(UNIT - 1 if alone else row, block), *((row, x) for x in inner)]
        some += [(p, x) for p, x in zip(order, loops, strict=True) if p != row]
        wanted = [x for _, x in sorted(some, key=lambda each: each[0])]
        if wanted != list(sch.get_loops(name)):
            sch.reorder(*wanted)
    return [
        sch.fuse_siblings(*(sch.get_loops(name)[level] for name in places))
        for level in range(units + row + 1 + alone)
    ]


def _lay_out_panels(sch: Schedule, panels: _Panels, around: Sequence[LoopRef]) -> None:
    """A copy in panels, made for all blocks of rows of a set, a register of it at a time."""
    if around:
        sch.compute_at(panels.copy, around[-1])
        sch.store_at(panels.copy, 0, around[-1])
    loops = sch.get_loops(panels.copy)[len(around) :]
    buffer = block_path(sch.func, panels.copy)[1].writes[0].buffer
    group = group_of(buffer.dtype)
    panel, half, lane = sch.split(loops[panels.column], [None, WIDTH // SIDE, SIDE])
    step, place = sch.split(loops[panels.depth], [None, group])
    sch.reorder(panel, step, half, lane, place)
    sch.vectorize(sch.fuse(lane, place))
    sch.unroll(half)
    if around:
        sch.compact_buffer(panels.copy, 0)
    at = tuple(PrimVar(f"i{k}") for k in range(len(buffer.shape)))
    column, depth = at[panels.column], at[panels.depth]
    outer = [] if around else [x for x in at if x is not column and x is not depth]
    ends = [
        Binary(op, x, imm(n))
        for op in ("floordiv", "floormod")
        for x, n in ((column, WIDTH), (depth, group))
    ]
    sch.transform_layout(panels.copy, 0, IndexMap(at, (*outer, *ends)))
    for loop, extent, size, padded in (
        (panel, panels.columns, WIDTH, WIDTH),
        (step, panels.deep, group, depth_of(buffer.dtype)),
    ):
        if extent % padded and extent >= size:
            sch.loop_partition(loop, [extent // size])


def _lay_out(sch: Schedule, places: Places, around: Sequence[LoopRef], *, trimmed: bool) -> None:
    """Lay out blocks of rows of one height."""
    if trimmed:
        for name in places:
            sch.trim(sch.get_loops(name)[len(around)])
    made = first_makers(sch, places)
    block = sch.blockize_body(around[-1])
    for name in made:
        sch.compact_buffer(name, 0)
    lay_out_within(sch, block.name, (ROWS,))


def _share(
    sch: Schedule,
    found: Attention,
    loops: Sequence[LoopRef],
    tasks: int,
    rows: int,
    grain: int,
) -> None:
    """Loops shared among the threads, by the multiply-adds of one task of so many rows."""
    chain = found.chain
    work = product([chain.inner.extent, *(a.extent for a in chain.columns), imm(2 * rows)])
    if loops:
        share(sch, loops, imm(tasks), work, grain)


CHAIN_TILES = group_by_steps(
    "chain_tiles",
    _match,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda found: found.written,
        private=lambda found: found.private,
        take=schedule_on_tiles,
    ),
)
