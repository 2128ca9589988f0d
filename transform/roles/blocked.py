"""Blocked convolution and pooling: what each axis is to a tile, and which taps are written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import Poly, as_constant
from unity.ir.prim_expr import Load
from unity.ir.stmt import Buffer
from unity.ir.symbols.representative import IMAGE, representative_extent
from unity.machine.target import Target

from ..blocks.access import all_axes, known_of, moves_alone, place, step, stride
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, Reduction
from .padding import Edge

UNROLL = 4
"""Steps of the innermost loop in a row, at most."""
UNROLL_HEAVY = 8
"""The same where weights are more than what they are applied to, and come from far. A tile with a
border does better with `UNROLL`: it is written out for each part of the taps that see the padding,
and all of that would not stay in the nearest cache of instructions."""
MOST_PIXELS = 14
"""Pixels of a tile, at most."""
MOST_TAPS = 8
"""Taps along a line that are written out where pixels are the only thing loaded, at most."""


@dataclass(frozen=True, slots=True)
class BlockedRoles:
    """Which axis is which.

    Attributes:
        lane: The innermost one, as long as a register.
        block: Moves through the weights alone: blocks of outputs, if pixels have them in common.
        pixel: Moves through the other operand alone; of unknown extent, it is the tile's only one.
        line: Another such axis, where one line of pixels does not fill a tile.
        slow: The others that go before the blocks.
        fast: Those that go after them: of an unknown number, images that are fewer than weights.
        weight: The load of a weight, where weights are more than what they are applied to.
        many: Whether all weights are more than the second cache keeps, but fewer than what they are
            applied to.
        columns_last: Whether all blocks follow at each place: what they are computed from is too
            much for a cache to be read anew for each of them.
        steps: The reduced axes, the one whose steps may stand in a row last.
        most: How many may: none that read a pixel which another one reads too, for these would be
            kept in registers. All of them where there are registers for that.
        flat: The taps of the last axis, where all of them stand in a row.
    """

    lane: Axis
    block: Axis | None
    pixel: Axis
    line: Axis | None
    slow: tuple[Axis, ...]
    fast: tuple[Axis, ...]
    steps: tuple[Axis, ...]
    most: int
    flat: Flat | None = None
    weight: Load | None = None
    many: bool = False
    columns_last: bool = False

    @property
    def width(self) -> int:
        """Pixels that a row of the tile stands for: a whole line, or one."""
        return 1 if self.line is None else self.pixel.length

    @property
    def inside(self) -> tuple[Axis, ...]:
        """The axes along a tile."""
        return (self.pixel,) if self.line is None else (self.line, self.pixel)


@dataclass(frozen=True, slots=True)
class Flat:
    """Taps along a line that are written out: pixels that several of them read are loaded once.

    Attributes:
        taps: How many there are.
        step: From one pixel to the next.
        pace: From one tap to the next.
        weights: Whether there is a weight for each tap.
    """

    taps: int
    step: int
    pace: int
    weights: bool

    def loads(self, pixels: int) -> int:
        """Distinct loads of a line of pixels."""
        return len({p * self.step + t * self.pace for p in range(pixels) for t in range(self.taps)})


def blocked_roles(
    nest: Nest, reduction: Reduction, edges: Sequence[Edge], target: Target
) -> BlockedRoles | None:
    """Which axis is which, if lanes lie innermost and pixels are known."""
    if len(nest.axes) < 2:
        return None
    *others, lane = nest.axes
    if number(lane.extent) != target.vector_bits // reduction.value.dtype.bits:
        return None
    if any(number(a.extent) is None for a in reduction.axes):
        return None
    known = known_of(all_axes(nest))
    loads = reduction.loads()
    places = [place(x, known) for x in loads]
    steps = [step(index, lane.var) for index in places]
    if any(step(place(x, known), lane.var) != 1 for x in nest.stores()):
        return None
    if len(loads) == 1 and steps == [1]:
        pixel = moves_alone(others, places[0], Poly(), unknown=True)
        if pixel is None:
            return None
        flat = _flat(reduction, pixel, places[0], weights=False)
        most = UNROLL if flat is None else flat.taps
        outer = _without(others, pixel)
        return BlockedRoles(lane, None, pixel, None, outer, (), reduction.axes, most, flat)
    if len(loads) != 2 or 1 not in steps or any(s not in (0, 1) for s in steps):
        return None
    for image, weight in ((0, 1), (1, 0)):
        pixel = moves_alone(others, places[image], places[weight], unknown=True)
        if steps[weight] == 1 and pixel is not None:
            block = None if steps[image] else moves_alone(others, places[weight], places[image])
            line = moves_alone(_without(others, pixel), places[image], places[weight])
            line = line if (number(pixel.extent) or MOST_PIXELS) * 2 <= MOST_PIXELS else None
            outer = _without(others, pixel, block, line)
            known_line = number(pixel.extent) is not None
            heavy = _size(loads[weight].buffer) > _size(loads[image].buffer)
            again = 1 if block is None else block.length  # times an image is read, at most
            whole = again * _size(loads[image].buffer) <= _size(loads[weight].buffer)
            counted = [a for a in outer if number(a.extent) is not None]
            counted += [a for a in nest.axes[:1] if a in outer and a not in counted and whole]
            fast = tuple(a for a in outer if heavy and a in counted)
            slow = _without(outer, *fast)
            if steps[image]:
                flat = _flat(reduction, pixel, places[image], weights=True)
                most = UNROLL if flat is None else flat.taps
                return BlockedRoles(lane, None, pixel, line, slow, fast, reduction.axes, most, flat)
            limit = UNROLL_HEAVY if heavy else UNROLL
            reduced, most = _ordered(reduction, edges, places[image], pixel, limit)
            far = loads[weight] if heavy else None
            last = not heavy and (_bytes(loads[image]) > target.l2_kept or not known_line)
            many = block is not None and not heavy and _bytes(loads[weight]) > target.l2_kept
            return BlockedRoles(
                lane, block, pixel, line, slow, fast, reduced, most, None, far, many, last
            )
    return None


def _flat(reduction: Reduction, pixel: Axis, image: Poly, *, weights: bool) -> Flat | None:
    """How the taps of the last axis are written out; None where they are too many."""
    last = reduction.axes[-1]
    taps, apart, pace = last.length, step(image, pixel.var), step(image, last.var)
    if taps > MOST_TAPS or apart is None or pace is None:
        return None
    return Flat(taps, apart, pace, weights)


def _ordered(
    reduction: Reduction, edges: Sequence[Edge], image: Poly, pixel: Axis, limit: int
) -> tuple[tuple[Axis, ...], int]:
    """The reduced axes, last the one that most steps of may stand in a row, and how many."""
    apart = step(image, pixel.var)
    best, most = reduction.axes[-1], 0
    for axis in reversed(reduction.axes):
        moved = stride(image, axis.var)
        if apart is None or moved is None or any(e.tap is axis.var for e in edges):
            continue
        pace, free = as_constant(moved), min(limit, axis.length)
        if pace is not None:  # else planes of unknown size are apart
            free = next((n for n in range(1, free) if _meet(n * pace, apart)), free)
        if free > most:
            best, most = axis, free
    return (*(a for a in reduction.axes if a is not best), best), max(most, 1)


def _meet(distance: int, apart: int) -> bool:
    """Whether pixels of a tile that lie `apart` from each other may lie a distance apart."""
    return apart == 0 or (distance % apart == 0 and abs(distance // apart) < MOST_PIXELS)


def _without(axes: Sequence[Axis], *some: Axis | None) -> tuple[Axis, ...]:
    return tuple(a for a in axes if a not in some)


def _bytes(load: Load) -> int:
    return _size(load.buffer) * load.dtype.bytes


def _size(buffer: Buffer) -> int:
    """Elements as is usual, those of a batch of unknown size counted once."""
    batch, *others = buffer.shape
    sizes = (representative_extent(e, IMAGE) or 1 for e in others)
    return (number(batch) or 1) * math.prod(sizes)
