"""Attention's stages as blocks of a schedule: which loops they have in common, who makes what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Compare, Load, PrimVar, Select, imm
from unity.ir.stmt import Buffer
from unity.ir.visit import prim_loads
from unity.machine.target import Target

from ...blocks.access import depends
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path, loops_of, scope_path
from ...roles.attention import RowChain, row_chain
from ...roles.lanes import lanes_for
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ..rule import Results
from ..stages import Stages

MOST_VECTORS = 8
"""Vectors of rows that lie side by side, at most."""
UNIT, WITHIN, ALONG = -1, 1 << 10, 1 << 11
"""The places of loops of one iteration, of those within a block of rows, and along a row."""

Places = dict[str, list[int]]
"""For each block in order, where the loops over its axes are to stand."""


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
    def count(self) -> int | None:
        """How many rows there are that meet the same other operands; None where that is unknown."""
        return 1 if self.chain.row is None else number(self.chain.row.extent)

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
        if self.chain.row is None or len(self.turned) != 1:
            return [1]
        return [1] + [k * self.lanes for k in range(1, MOST_VECTORS + 1) if k * self.lanes > 1]

    @property
    def hides(self) -> bool:
        """Whether weights are 0 by where they lie: what a causal mask hides."""
        assert self.chain.tail.reduction is not None
        weights = {x.buffer for x in self.chain.tail.reduction.loads()}
        stores = [s for n in self.chain.middle.stages for s in n.stores() if s.buffer in weights]
        return any(
            isinstance(s.value, Select)
            and isinstance(s.value.condition, Compare)
            and s.value.orelse == imm(0, s.value.dtype)
            and not prim_loads(s.value.condition)
            and depends(s.value.condition, self.chain.inner.var)
            for s in stores
        )

    def place(self, axis: Axis) -> int:
        """Where a loop over an axis of the chain stands."""
        around = (*self.chain.outer, *(() if self.chain.row is None else (self.chain.row,)))
        if axis == self.chain.inner:
            return ALONG
        return around.index(axis) if axis in around else WITHIN


def attention_of(stages: Stages, target: Target) -> Attention | None:
    """Two products with stages over rows between them, if some stages begin with such."""
    chain = row_chain(stages.rest, {*stages.temporaries}, target)
    if chain is None:
        return None
    written = tuple(s for s in stages.rest[: len(chain.stages)] if isinstance(s, Nest))
    assert chain.head.reduction is not None
    rows = imm(1) if chain.row is None else chain.row.extent
    lanes = lanes_for(chain.head.reduction.value.dtype.bits, target.vector_bits, rows)
    return Attention(written, chain, frozenset(stages.private(len(written))), lanes)


def keep_in_place(sch: Schedule, found: Attention, results: Results) -> None:
    """Elements that are read last where others are made of them share one buffer with these."""
    makers: dict[Buffer, str] = {}
    for stage in found.chain.stages[:-1]:
        name = results.get(stage.name, stage.name)
        for store in stage.stores():
            host = found.chain.overwritten(store.buffer)
            if host is not None:
                sch.store_in(makers[host], 0, name, 0)
            makers[store.buffer] = name


def places_of(found: Attention, results: Results) -> Places:
    """For each block in order, where the loops over its axes are to stand."""
    places: Places = {}
    for nest, stage in zip(found.written, found.chain.stages, strict=True):
        own = _places(nest.axes, stage.axes, UNIT, found)
        if nest.reduction is None or stage.reduction is None:
            places[nest.name] = own
        else:
            sums = _places(nest.reduction.axes, stage.reduction.axes, WITHIN, found)
            places[nest.name] = own + sums
            places[results[nest.name]] = own
    return places


def _places(
    written: Sequence[Axis], axes: Sequence[Axis], unit: int, found: Attention
) -> list[int]:
    """The places of axes as they were written; `axes` are those of more than one point."""
    left = iter(axes)
    return [unit if number(a.extent) == 1 else found.place(next(left)) for a in written]


def axes_at(sch: Schedule, places: Places, place: int) -> dict[str, PrimVar]:
    """The axes of blocks whose loops are to stand at a place."""
    axes = {name: block_path(sch.func, name)[1].axes for name in places}
    return {n: axes[n][own.index(place)].var for n, own in places.items() if place in own}


def trim_hidden(sch: Schedule, along: Mapping[str, PrimVar]) -> None:
    """Stages go as far along rows as one of those in their block sees.

    Args:
        sch: A schedule, each stage's loops over all rows of a block and all keys.
        along: The axes of blocks, in order, that go along rows.
    """
    for name, var in reversed([*along.items()]):
        axes = block_path(sch.func, name)[1].axes
        at = next(k for k, a in enumerate(axes) if a.var is var)
        loop = loops_in_order(sch, name)[at]
        (sch.trim_neutral if axes[at].kind == "R" else sch.trim_unread)(loop)


def first_makers(sch: Schedule, places: Places) -> list[str]:
    """The first block that writes to each temporary."""
    *before, _ = places
    found: dict[Buffer, str] = {}
    for name in before:
        found.setdefault(block_path(sch.func, name)[1].writes[0].buffer, name)
    return [*found.values()]


def units_of(places: Places) -> int:
    """How many loops of one iteration all blocks have."""
    return min(own.count(UNIT) for own in places.values())


def placed(own: list[int], units: int) -> list[int]:
    """Where the loops over a block's axes stand, so many loops of one iteration in common."""
    order: list[int] = []
    for place in own:
        units -= place == UNIT
        inside = place == ALONG or (place == UNIT and units < 0)
        order.append(WITHIN if inside else place)
    return order


def loops_in_order(sch: Schedule, name: str) -> list[LoopRef]:
    """The loops of a block in the order of its axes."""
    path, block = block_path(sch.func, name)
    by_var = dict(
        zip([x.var for x in loops_of(scope_path(path))], sch.get_loops(name), strict=True)
    )
    return [by_var[a.value] for a in block.axes if isinstance(a.value, PrimVar)]
