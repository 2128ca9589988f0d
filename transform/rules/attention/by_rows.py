"""Attention of known rows, by steps: what lies between its products stays in the caches.

A block of rows is a kernel of its own (`blockize_body`). In it elements lie side by side by rows,
(inner, rows), so that lanes run over rows in the first product and the stages between; only the
first one's own operand is turned. Few rows go one by one, each with its lanes along it.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Buffer
from unity.machine.target import Target

from ...blocks.access import depends
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path, loops_of, scope_path
from ...roles.attention import RowChain, row_chain
from ...roles.lanes import lanes_for
from ...schedule.index_map import IndexMap
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.threads import share
from ..rows.by_row import ROWS
from ..rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from ..stages import Stages
from ..within import lay_out_within

VECTORS = 4
"""Vectors of rows in a block, at best."""
FEWEST_VECTORS = 3
"""The same at least, where there is another block."""
MOST_VECTORS = 8
"""The same at most."""
FEW = 4
"""Rows from which on a block pays."""
UNIT, WITHIN = -1, 1 << 10
"""The places of loops of one iteration, and of those within a block of rows."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Two products with stages over rows between them.

    Attributes:
        written: The stages as they were written.
        chain: The same over the same variables, axes of one point left out.
        private: The temporaries that no other stage uses.
        lanes: Rows in a vector.
    """

    written: tuple[Nest, ...]
    chain: RowChain
    private: frozenset[Buffer]
    lanes: int

    @property
    def count(self) -> int:
        """How many rows there are that meet the same other operands."""
        return 1 if self.chain.row is None else number(self.chain.row.extent) or 0

    @property
    def turned(self) -> list[Load]:
        """What the first product reads of its rows, at places that differ."""
        assert self.chain.head.reduction is not None
        row = self.chain.row
        loads = dict.fromkeys(self.chain.head.reduction.loads())
        return [] if row is None else [x for x in loads if depends(x, row.var)]

    @property
    def sizes(self) -> list[int]:
        """How many rows may go together."""
        one = [1] if number(self.chain.inner.extent) is not None else []
        widths = [k * self.lanes for k in range(1, MOST_VECTORS + 1)]
        if self.chain.row is None or len(self.turned) != 1:
            return one
        return one + [w for w in widths if w > 1 and self.count % w == 0]

    def place(self, axis: Axis) -> int:
        """Where a loop over an axis of the chain stands."""
        around = (*self.chain.outer, *(() if self.chain.row is None else (self.chain.row,)))
        return around.index(axis) if axis in around else WITHIN


@dataclass(frozen=True, slots=True)
class RowsTogether:
    """The decisions.

    Attributes:
        rows: Of a block; if it is one, the elements of a row lie side by side.
        grain: Multiply-adds that a task has at least.
    """

    rows: int
    grain: int


def _match(stages: Stages, target: Target) -> Attention | None:
    """A chain over rows whose number is known, and a multiple of those that go together."""
    chain = row_chain(stages.rest, {*stages.temporaries}, target)
    if chain is None or (chain.row is not None and number(chain.row.extent) is None):
        return None
    written = tuple(s for s in stages.rest[: len(chain.stages)] if isinstance(s, Nest))
    units = {sum(number(a.extent) == 1 for a in nest.axes) for nest in written[:-1]}
    assert chain.head.reduction is not None
    rows = imm(1) if chain.row is None else chain.row.extent
    lanes = lanes_for(chain.head.reduction.value.dtype.bits, target.vector_bits, rows)
    found = Attention(written, chain, frozenset(stages.private(len(written))), lanes)
    return found if len(units) == 1 and _rows(found) in found.sizes else None


def _rows(found: Attention) -> int:
    """Rows that go together: about as many as suit a register tile; 0 where none do."""
    if found.count < FEW:
        return 1
    least = min(found.count, FEWEST_VECTORS * found.lanes)
    fitting = [rows for rows in found.sizes if rows > 1 and rows >= least]
    return min(fitting, key=lambda rows: abs(rows - VECTORS * found.lanes), default=0)


def _decide(found: Attention, target: Target) -> RowsTogether:
    return RowsTogether(_rows(found), target.machine.grain("multiply_adds"))


def _legal(found: Attention, _decisions: RowsTogether, _target: Target) -> Neighbourhood:
    why = f"vectors of {found.lanes} that divide {found.count} rows, or one of known length"
    return {"rows": Legal(found.sizes, why), "grain": worth("multiply-adds")}


def schedule_attention(
    sch: Schedule, found: Attention, how: RowsTogether, results: Results
) -> None:
    """Lay out attention by steps of a schedule."""
    chain, together = found.chain, how.rows > 1
    _keep_in_place(sch, found, results)
    places = _places(found, results)
    if together:
        places = {**_turn(sch, found, places), **places}
    made = _first_makers(sch, places)
    turned = _rows_of(sch, found, places) if together else {}
    around = _rows_in_one_loop(sch, found, how.rows, places)
    for name in made:
        sch.set_scope(name, 0, "local")
        sch.store_at(name, 0, around[-1])
    rows = sch.blockize_body(around[-1])
    for name in made:
        sch.compact_buffer(name, 0)
    for name, row in turned.items():
        _side_by_side(sch, name, row)
    points = product([x.extent for x in (*chain.outer, *_several(found, how.rows))])
    steps = product([imm(2 * how.rows), chain.inner.extent, *(a.extent for a in chain.columns)])
    share(sch, around, points, steps, how.grain)
    lay_out_within(sch, rows.name, () if together else (ROWS,))


def _several(found: Attention, rows: int) -> list[Axis]:
    """The axis over blocks of rows, where there is more than one."""
    row = found.chain.row
    blocks = found.count // rows
    return [] if row is None or blocks == 1 else [Axis(row.var, imm(blocks))]


def _keep_in_place(sch: Schedule, found: Attention, results: Results) -> None:
    """Elements that are read last where others are made of them share one buffer with these."""
    makers: dict[Buffer, str] = {}
    for stage in found.chain.stages[:-1]:
        name = results.get(stage.name, stage.name)
        for store in stage.stores():
            host = found.chain.overwritten(store.buffer)
            if host is not None:
                sch.store_in(makers[host], 0, name, 0)
            makers[store.buffer] = name


def _places(found: Attention, results: Results) -> dict[str, list[int]]:
    """For each block in order, where the loops over its axes are to stand."""
    places: dict[str, list[int]] = {}
    for nest, stage in zip(found.written, found.chain.stages, strict=True):
        axes = iter(stage.axes)
        own = [UNIT if number(a.extent) == 1 else found.place(next(axes)) for a in nest.axes]
        if nest.reduction is None:
            places[nest.name] = own
        else:
            places[nest.name] = own + [WITHIN] * len(nest.reduction.axes)
            places[results[nest.name]] = own
    return places


def _first_makers(sch: Schedule, places: dict[str, list[int]]) -> list[str]:
    """The first block that writes to each temporary."""
    *before, _ = places
    found: dict[Buffer, str] = {}
    for name in before:
        found.setdefault(block_path(sch.func, name)[1].writes[0].buffer, name)
    return [*found.values()]


def _rows_of(sch: Schedule, found: Attention, places: dict[str, list[int]]) -> dict[str, PrimVar]:
    """The axes over rows of all blocks but those of the second product."""
    *before, _, _ = places
    at = len(found.chain.outer)
    return {n: block_path(sch.func, n)[1].axes[places[n].index(at)].var for n in before}


def _turn(sch: Schedule, found: Attention, places: dict[str, list[int]]) -> dict[str, list[int]]:
    """The first product reads a copy of its rows that is turned; the block that copies."""
    head = found.written[0].name
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
    sch: Schedule, found: Attention, rows: int, places: dict[str, list[int]]
) -> list[LoopRef]:
    """The loops that all blocks have in common, over blocks of rows at last."""
    units = min(each.count(UNIT) for each in places.values())
    at_row = len(found.chain.outer)
    several = bool(_several(found, rows))
    for name, own in places.items():
        left = units
        order: list[int] = []
        for place in own:
            left -= place == UNIT
            order.append(WITHIN if place == UNIT and left < 0 else place)
        loops = _loops(sch, name)
        wanted = [loop for _, loop in sorted(zip(order, loops, strict=True), key=lambda x: x[0])]
        if wanted != loops:
            sch.reorder(*wanted)
        if rows > 1 and several:
            sch.split(loops[order.index(at_row)], [None, rows])
    depth = units + at_row + several
    if not depth:
        for name in places:
            sch.add_unit_loop(_loops(sch, name)[0])
        depth = 1
    return [
        sch.fuse_siblings(*(sch.get_loops(name)[level] for name in places))
        for level in range(depth)
    ]


def _loops(sch: Schedule, name: str) -> list[LoopRef]:
    """The loops of a block in the order of its axes."""
    path, block = block_path(sch.func, name)
    by_var = dict(
        zip([x.var for x in loops_of(scope_path(path))], sch.get_loops(name), strict=True)
    )
    return [by_var[a.value] for a in block.axes if isinstance(a.value, PrimVar)]


def _side_by_side(sch: Schedule, name: str, row: PrimVar) -> None:
    """The rows innermost of what a block goes over, and of what it makes."""
    block, loops = block_path(sch.func, name)[1], _loops(sch, name)
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
    _match,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda found: found.written,
        private=lambda found: found.private,
        take=schedule_attention,
    ),
)
