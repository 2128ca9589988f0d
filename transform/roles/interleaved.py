"""Which axis is which in a product of narrow numbers with interleaved weights."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import Binary, Cast, Load
from unity.ir.stmt import Buffer
from unity.machine.dot_units import SIDE, group_of

from ..blocks.access import all_axes, known_of, moves_alone, place, step
from ..blocks.extents import count_of, number
from ..blocks.nest import Axis, Nest, Reduction

MOST_LANES = 4 * SIDE
"""Outputs of a block, at most."""


@dataclass(frozen=True, slots=True)
class InterleavedRoles:
    """Which axis is which.

    Attributes:
        image: The load of what is walked in pixels.
        weight: The load of a weight.
        depth: The groups of a block of inputs.
        group: The elements of a group.
        lane: The outputs of a block, innermost.
        block: The blocks of outputs, if there are several.
        pixel: The pixels of a line; how many may be unknown where that was asked for.
        line: The lines, if there are several; likewise.
        outer: The other spatial axes.
        steps: The other reduced ones.
        pitch: How many pixels a line is from the next; 0 where that is uneven.
    """

    image: Load
    weight: Load
    depth: Axis
    group: Axis
    lane: Axis
    block: Axis | None
    pixel: Axis
    line: Axis | None
    outer: tuple[Axis, ...]
    steps: tuple[Axis, ...]
    pitch: int

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return 1 if self.line is None else self.line.length

    @property
    def heavy(self) -> bool:
        """Whether weights are more than what they are applied to."""
        return _bytes(self.weight.buffer) > _bytes(self.image.buffer)


def _operands(reduction: Reduction) -> tuple[Load, Load] | None:
    match reduction.value:
        case Binary("mul", Cast(_, Load() as a), Cast(_, Load() as b)) if reduction.op == "add":
            plain = a.predicate is None and b.predicate is None
            return (a, b) if plain and a.dtype.bits < 32 else None
        case _:
            return None


def interleaved_roles(
    nest: Nest, reduction: Reduction, *, unknown: bool = False
) -> InterleavedRoles | None:
    """The roles, if a block of outputs lies innermost and groups of inputs are multiplied.

    Args:
        nest: The stage.
        reduction: Its sum.
        unknown: Whether pixels and lines may be axes of unknown extent; they are outer ones else.
    """
    operands = _operands(reduction)
    if operands is None or len(nest.axes) < 2 or len(reduction.axes) < 2:
        return None
    if any(number(a.extent) is None for a in reduction.axes):
        return None
    known = known_of(all_axes(nest))
    *others, lane = nest.axes
    width = number(lane.extent)
    if not width or width > MOST_LANES:
        return None
    if any(step(place(x, known), lane.var) != 1 for x in nest.stores()):
        return None
    for image, weight in (operands, operands[::-1]):
        size = group_of(image.dtype)
        at, there = place(image, known), place(weight, known)
        *_, group = reduction.axes
        depth = next((a for a in reduction.axes if step(there, a.var) == width * size), None)
        if depth is None or number(group.extent) != size:
            continue
        moves = [(step(at, v.var), step(there, v.var)) for v in (group, depth, lane)]
        if moves != [(1, 1), (size, width * size), (0, size)]:
            continue
        pixel = moves_alone(others, at, there, unknown=unknown)
        if pixel is None or not step(at, pixel.var):
            continue
        rest = [a for a in others if a is not pixel]
        line = moves_alone(rest, at, there, unknown=unknown)
        far = None if line is None else step(at, line.var)
        if far is None:
            line = None
        block = moves_alone(rest, there, at)
        near = step(at, pixel.var) or 1
        return InterleavedRoles(
            image,
            weight,
            depth,
            group,
            lane,
            block,
            pixel,
            line,
            tuple(a for a in rest if a not in (line, block)),
            tuple(a for a in reduction.axes if a not in (depth, group)),
            far // near if far is not None and far % near == 0 else 0,
        )
    return None


def _bytes(buffer: Buffer) -> int:
    """Those of a batch of unknown size counted once."""
    return count_of(buffer.shape) * buffer.dtype.bytes
