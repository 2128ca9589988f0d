"""Interleaved weights without matrix tiles: dot products of groups in vector registers.

A tile of pixels by the registers of a block of outputs stays in registers; each group of inputs of
a pixel is multiplied into all of them. Threads share lines and blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import Binary, Cast, imm
from unity.machine.dot_units import DotUnit, dot_unit
from unity.machine.target import Target

from ...blocks.access import Reshaped, as_written, collapse
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Nest
from ...roles.interleaved import InterleavedRoles, interleaved_roles
from ...schedule.schedule import Schedule
from ...tactics.dot_tile import DotTile, dot_tile, rows_in_registers
from ...tactics.reshaping import reshape
from ...tactics.threads import share
from ...tactics.tile_sizes import even_size
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth


@dataclass(frozen=True, slots=True)
class GroupedPixels:
    """A sum over groups of inputs.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined.
        roles: The roles of its axes.
        unit: What adds up dot products.
        lanes: Sums of a register.
    """

    written: Nest
    shaped: Reshaped
    roles: InterleavedRoles
    unit: DotUnit
    lanes: int

    @property
    def vectors(self) -> int:
        """Registers of a block of outputs."""
        return self.roles.lane.length // self.lanes


@dataclass(frozen=True, slots=True)
class PixelLanes:
    """The decisions.

    Attributes:
        pixels: Pixels of a register tile.
        weights_last: Whether all blocks of outputs follow at each tile: its pixels stay in the
            first cache, and weights come from behind it in order.
        grain: Multiply-adds that are worth waking a thread for.
    """

    pixels: int
    weights_last: bool
    grain: int


def _match(nest: Nest, target: Target) -> GroupedPixels | None:
    """A stage whose weights lie in groups that the target multiplies in registers."""
    shaped = collapse(as_written(nest))
    reduction = shaped.nest.reduction
    roles = None if reduction is None else interleaved_roles(shaped.nest, reduction, unknown=True)
    if reduction is None or roles is None:
        return None
    match reduction.value:
        case Binary("mul", Cast(_, first)) if first is roles.image:
            pass
        case _:
            return None  # the unit takes what its lanes share first
    unit = dot_unit("lanes", roles.image.dtype, roles.weight.dtype, reduction.value.dtype)
    lanes = target.vector_bits // reduction.value.dtype.bits
    if unit is None or not unit.on(target) or roles.lane.length % lanes:
        return None
    return GroupedPixels(nest, shaped, roles, unit, lanes)


def _decide(found: GroupedPixels, target: Target) -> PixelLanes:
    most = rows_in_registers(found.vectors, target)
    pixels = even_size(found.roles.pixel.extent, most)
    last = found.roles.block is not None and not found.unit.adds
    return PixelLanes(pixels, last, target.machine.grain("multiply_adds"))


def _legal(found: GroupedPixels, _how: PixelLanes, target: Target) -> Neighbourhood:
    most, known = rows_in_registers(found.vectors, target), number(found.roles.pixel.extent)
    most = most if known is None else min(most, known)
    why = f"a pixel's sums take {found.vectors} of {target.vector_registers} registers"
    one = found.roles.block is None
    return {
        "pixels": Legal(range(1, most + 1), why),
        "weights_last": Legal((False,), "there is one block of outputs") if one else EITHER,
        "grain": worth("multiply-adds"),
    }


def schedule_pixels(sch: Schedule, found: GroupedPixels, how: PixelLanes, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    roles, nest, sums = found.roles, found.shaped.nest, found.written.name
    reshape(sch, found.written, found.shaped, result)
    assert nest.reduction is not None
    at = dict(zip([*nest.axes, *nest.reduction.axes], sch.get_loops(sums), strict=True))
    blocks = [] if roles.block is None else [roles.block]
    lines = [] if roles.line is None else [roles.line]
    tasks = [*roles.outer, *blocks, *lines]
    if roles.heavy:  # weights of a block are read once
        tasks = [*blocks, *roles.outer, *lines]
    tile, pixel = sch.split(at[roles.pixel], [None, how.pixels])
    vector, lane = sch.split(at[roles.lane], [None, found.lanes])
    steps = [at[a] for a in (*roles.steps, roles.depth)]
    around = [at[a] for a in tasks]
    places, pixels = [*around, tile], roles.pixel.extent
    counts = [a.extent for a in tasks]
    if how.weights_last and roles.block is not None:
        places = [*(at[a] for a in (*roles.outer, *lines)), tile, at[roles.block]]
        around, pixels = places, imm(how.pixels)
        counts.append(ceildiv(roles.pixel.extent, pixels))
    sch.reorder(*places, *steps, pixel, vector, lane)
    loops = DotTile(places[-1], steps, [pixel], vector, lane, at[roles.group])
    dot_tile(sch, sums, result, loops, found.unit, found.lanes)
    if around:
        each = [a.extent for a in nest.reduction.axes]
        work = product([*each, pixels, roles.lane.extent])
        share(sch, around, product(counts), work, how.grain)


INTERLEAVED_LANES = by_steps(
    "interleaved_lanes",
    _match,
    _decide,
    _legal,
    nest=lambda found: found.written,
    steps=schedule_pixels,
)
