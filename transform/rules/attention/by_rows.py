"""Attention by steps: what lies between its products stays in the caches.

A block of rows is a kernel of its own (`blockize_body`). In it elements lie side by side by rows,
(inner, rows), so that lanes run over rows in the first product and the stages between; only the
first one's own operand is turned, and masks that several sets of rows share (`shared_masks`). Keys
and values that lie far apart are laid together first (`far_rows`). Rows that fill no whole block
are laid out apart from the others (`partition_siblings`), in smaller blocks of which the last one
is rounded up to whole vectors (`round_up`). Few rows go one by one, each with its lanes along it.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.arith import simplify
from unity.ir.prim_expr import Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import multiply
from unity.machine.target import Target

from ...blocks.access import depends
from ...blocks.extents import ceildiv, product
from ...blocks.tree import block_path
from ...schedule.index_map import IndexMap
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.threads import share
from ..rows.by_row import ROWS
from ..rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from ..within import lay_out_within
from .far_rows import lay_together, operands_apart
from .shared_masks import turn_shared
from .stages import (
    ALONG,
    MOST_VECTORS,
    WITHIN,
    Attention,
    Places,
    attention_of,
    axes_at,
    first_makers,
    keep_in_place,
    loops_in_order,
    placed,
    places_of,
    trim_hidden,
    units_of,
)

BEST = 64
"""Rows of a block, at best: keys and values are read, and copied, once for all of them."""
SHARE = 3 / 4
"""Of these at least, where a block of so many leaves no rows."""
REST = 16
"""Rows of a block of those that are left of an unknown number: fewer are slow, more mostly pad."""
FEW = 4
"""Rows from which on a block pays."""


@dataclass(frozen=True, slots=True)
class RowsTogether:
    """The decisions.

    Attributes:
        rows: Of a block; if it is one, the elements of a row lie side by side.
        rest: Of a block of those that are left.
        few: Rows from which on they go together, where their number is unknown.
        grain: Multiply-adds that a task has at least.
        trims: Whether keys that no row of a block sees are left out.
    """

    rows: int
    rest: int
    few: int
    grain: int
    trims: bool


def _rows(found: Attention) -> int:
    """Rows that go together: about as many as suit a register tile."""
    count = found.count
    if len(found.sizes) == 1 or (count is not None and count < FEW):
        return 1
    best = max(n for n in found.sizes if n <= max(BEST, found.lanes))
    if count is None:
        return best
    if count <= best:
        return -(-count // found.lanes) * found.lanes
    least = min(count, best * SHARE)
    fitting = [rows for rows in found.sizes if rows >= least and not count % rows]
    return min(fitting, key=lambda rows: abs(rows - best), default=best)


def _decide(found: Attention, target: Target) -> RowsTogether:
    rows = _rows(found)
    left = REST if found.count is None else found.count % rows
    rest = -(-left // found.lanes) * found.lanes or found.lanes
    rests = _rests(found)
    few = next((n for n in rests if n >= min(rows, rest)), rests[-1])
    return RowsTogether(rows, few, FEW, target.machine.grain("multiply_adds"), found.hides)


def _rests(found: Attention) -> list[int]:
    """How many rows a block of those that are left may have."""
    return [rows for rows in found.sizes if rows > 1] or [1]


def _legal(found: Attention, _decisions: RowsTogether, _target: Target) -> Neighbourhood:
    why = f"up to {MOST_VECTORS} vectors of {found.lanes} rows lie side by side, or one by one"
    return {
        "rows": Legal(found.sizes, why),
        "rest": Legal(_rests(found), f"up to {MOST_VECTORS} vectors of {found.lanes} rows"),
        "few": Legal(range(1, 65), "up to 64 rows go one by one"),
        "grain": worth("multiply-adds"),
        "trims": Legal([False, True] if found.hides else [False], "where a causal mask hides keys"),
    }


def schedule_attention(
    sch: Schedule, found: Attention, how: RowsTogether, results: Results
) -> None:
    """Lay out attention by steps of a schedule, with a version for few rows of unknown number."""
    keep_in_place(sch, found, results)
    places = places_of(found, results)
    for name in first_makers(sch, places):
        sch.set_scope(name, 0, "local")
    row = found.chain.row
    if row is None or how.rows == 1:
        _lay_out(sch, found, _Stretch(places, 1, None if row is None else row.extent), how)
        return
    if found.count is None:
        enough = Compare("ge", row.extent, imm(how.few))
        others = sch.specialize_when(enough, *places)
        few = dict(zip((b.name for b in others), places.values(), strict=True))
        _lay_out(sch, found, _Stretch(few, 1, row.extent), how)
    names = {n.name: results.get(n.name, n.name) for n in found.written[:-1]}
    far = operands_apart(found, how.rows, sch.target)
    if far and far.needs is not None:  # of unknown number: a version for so many keys
        others = sch.specialize_when(far.needs, *places)
        renamed = dict(zip(places, (b.name for b in others), strict=True))
        short = {renamed[name]: own for name, own in places.items()}
        turn_shared(sch, found, short, {n: renamed[name] for n, name in names.items()})
        _in_blocks(sch, found, short, how)
    turn_shared(sch, found, places, names)
    if far:
        lay_together(sch, far.loads, places)
    _in_blocks(sch, found, places, how)


def _in_blocks(sch: Schedule, found: Attention, places: Places, how: RowsTogether) -> None:
    """Lay out blocks of rows, and those that are left."""
    row = found.chain.row
    assert row is not None
    places = {**_turn(sch, found, places), **places}
    blocks, left = simplify(row.extent // how.rows), simplify(row.extent % how.rows)
    if left == imm(0):
        _lay_out(sch, found, _Stretch(places, how.rows, blocks), how)
        return
    rest, parted = places, found.count is None or found.count > how.rows
    if parted:
        at_row = len(found.chain.outer)
        loops = [_row_first(sch, name, own, at_row) for name, own in places.items()]
        others = sch.partition_siblings(multiply(blocks, imm(how.rows)), *loops)
        rest = dict(zip((b.name for b in others), places.values(), strict=True))
        _lay_out(sch, found, _Stretch(places, how.rows, blocks, parted), how)
    blocks = ceildiv(left, imm(how.rest))
    padded = simplify(left % how.rest) != imm(0)
    _lay_out(sch, found, _Stretch(rest, how.rest, blocks, parted, padded), how)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows that are laid out alike.

    Attributes:
        places: For each block in order, where the loops over its axes are to stand.
        rows: Of a block.
        blocks: How many there are; None where rows have no axis.
        parted: Whether there are other rows, laid out otherwise.
        padded: Whether the last block may have fewer rows.
    """

    places: Places
    rows: int
    blocks: PrimExpr | None
    parted: bool = False
    padded: bool = False

    @property
    def several(self) -> bool:
        """Whether there is a loop over blocks: some of the rows are whole axes only in one."""
        return self.parted or self.padded or self.blocks not in (None, imm(1))


def _lay_out(sch: Schedule, found: Attention, rows: _Stretch, how: RowsTogether) -> None:
    """Lay out some of the rows."""
    chain, together = found.chain, rows.rows > 1
    places = rows.places
    *before, sums, result = places
    made = first_makers(sch, places)
    at_row = len(chain.outer)
    turned = axes_at(sch, {n: places[n] for n in before}, at_row) if together else {}
    along = axes_at(sch, places, ALONG)
    around, within = _rows_in_one_loop(sch, found, rows)
    for name in made:
        sch.store_at(name, 0, around[-1])
    block = sch.blockize_body(around[-1])
    for name in made:
        sch.compact_buffer(name, 0)
    if rows.padded:
        sch.round_up(*before)
    if how.trims:
        trim_hidden(sch, along)
    if rows.padded:
        for name in (sums, result):
            sch.trim(within[name])
    for name, row in turned.items():
        _side_by_side(sch, name, row)
    extents = [x.extent for x in chain.outer]
    points = product([*extents, rows.blocks] if rows.blocks is not None else extents)
    steps = product([imm(2 * rows.rows), chain.inner.extent, *(a.extent for a in chain.columns)])
    share(sch, around, points, steps, how.grain)
    lay_out_within(sch, block.name, () if together else (ROWS,))


def _row_first(sch: Schedule, name: str, own: list[int], at_row: int) -> LoopRef:
    """A block's loop over the rows, put around its others."""
    loops = loops_in_order(sch, name)
    row = loops[own.index(at_row)]
    if row is not loops[0]:
        sch.reorder(row, *(x for x in loops if x is not row))
    return row


def _turn(sch: Schedule, found: Attention, places: Places) -> Places:
    """The first product reads a copy of its rows that is turned; the block that copies."""
    head = next(iter(places))
    block = block_path(sch.func, head)[1]
    (load,) = found.turned
    index = [r.buffer for r in block.reads].index(load.buffer)
    own = block.reads[index]
    used = [any(depends(r.begin, a.var) for r in own.ranges) for a in block.axes]
    kept = [(a.var, p) for a, p, u in zip(block.axes, places[head], used, strict=True) if u]
    order = sorted(kept, key=lambda each: _turned(each[1], found))
    outputs: tuple[PrimExpr, ...] = tuple(v for v, _ in order)
    copy = sch.reindex_cache_read(
        head, index, "local", IndexMap(tuple(a.var for a in block.axes), outputs)
    )
    return {copy.name: [p for _, p in kept]}


def _turned(place: int, found: Attention) -> int:
    """The order of axes that has the rows last."""
    return WITHIN + 1 if place == len(found.chain.outer) else place


def _rows_in_one_loop(
    sch: Schedule, found: Attention, rows: _Stretch
) -> tuple[list[LoopRef], dict[str, LoopRef]]:
    """The loops that all blocks have in common, over blocks of rows at last; those over rows."""
    units = units_of(rows.places)
    at_row = len(found.chain.outer)
    within: dict[str, LoopRef] = {}
    for name, own in rows.places.items():
        order = placed(own, units)
        loops = loops_in_order(sch, name)
        wanted = [loop for _, loop in sorted(zip(order, loops, strict=True), key=lambda x: x[0])]
        if wanted != list(sch.get_loops(name)):
            sch.reorder(*wanted)
        if rows.rows > 1 and rows.several:
            _, within[name] = sch.split(loops[order.index(at_row)], [None, rows.rows])
    depth = units + at_row + rows.several
    if not depth:
        for name in rows.places:
            sch.add_unit_loop(loops_in_order(sch, name)[0])
        depth = 1
    around = [
        sch.fuse_siblings(*(sch.get_loops(name)[level] for name in rows.places))
        for level in range(depth)
    ]
    return around, within


def _side_by_side(sch: Schedule, name: str, row: PrimVar) -> None:
    """The rows innermost of what a block goes over, and of what it makes."""
    block, loops = block_path(sch.func, name)[1], loops_in_order(sch, name)
    others = [k for k, a in enumerate(block.axes) if a.var is not row]
    points = [k for k in others if block.axes[k].kind == "S"]
    own = next(k for k, a in enumerate(block.axes) if a.var is row)
    order = [*points, own, *(k for k in others if k not in points)]
    if order != sorted(order):
        sch.reorder(*(loops[k] for k in order))
        sch.reorder_block_iter_var(name, order)
    at = [r.begin for r in block.writes[0].ranges]
    inputs = tuple(PrimVar(f"i{k}") for k in range(len(at)))
    outputs: tuple[PrimExpr, ...] = (
        *(v for v, i in zip(inputs, at, strict=True) if i is not row),
        *(v for v, i in zip(inputs, at, strict=True) if i is row),
    )
    if outputs != inputs:
        sch.transform_layout(name, 0, IndexMap(inputs, outputs))


ATTENTION = group_by_steps(
    "attention",
    attention_of,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda found: found.written,
        private=lambda found: found.private,
        take=schedule_attention,
    ),
)
