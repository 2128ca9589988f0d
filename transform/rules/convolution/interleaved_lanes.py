"""Interleaved weights without matrix tiles: dot products of groups in vector registers.

A tile of pixels by the registers of a block of outputs stays in registers; each group of inputs of
a pixel is multiplied into all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith import simplify
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt, Store
from unity.ir.visit import substitute_prim
from unity.machine.dot_units import TILE_ROW_BYTES, group_of, has_dot
from unity.machine.target import Target

from ...blocks.extents import product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.interleaved import Roles, length_of
from ...schedule.marked import Access, lane_dot
from ...tactics.register_tile import Values, finished, loops
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tactics.tile_sizes import row_tiers

MOST_PIXELS = 12
"""Pixels of a tile, at most."""


def fits_lanes(reduction: Reduction, roles: Roles, target: Target) -> bool:
    """Whether the target adds up pairs of bfloat16 in registers of 512 bits."""
    given = (roles.image.dtype, roles.weight.dtype, reduction.value.dtype)
    able = has_dot(target, "lanes", *given) and target.vector_bits == 8 * TILE_ROW_BYTES
    lanes = target.vector_bits // FLOAT32.bits
    return given == (BFLOAT16, BFLOAT16, FLOAT32) and able and length_of(roles.lane) % lanes == 0


def lane_sums(
    nest: Nest, reduction: Reduction, roles: Roles, pixels: int, grain: int, target: Target
) -> Stmt:
    """The stage in tiles of so many pixels of a line, at most.

    Args:
        nest: The stage.
        reduction: Its reduction.
        roles: The roles of the axes.
        pixels: Pixels of a tile.
        grain: Multiply-adds that a task has at least.
        target: Tells the lanes.
    """
    lanes = target.vector_bits // FLOAT32.bits
    writer = _Writer(nest, reduction, roles, lanes)
    outer = [*roles.outer, *(a for a in (roles.block, roles.line) if a is not None)]
    if roles.heavy:  # weights of a block are read once
        outer = [*(a for a in (roles.block,) if a is not None), *roles.outer]
        outer += [a for a in (roles.line,) if a is not None]
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in outer]
    steps = product([a.extent for a in reduction.axes])
    work = simplify(multiply(steps, imm(length_of(roles.pixel) * length_of(roles.lane))))

    def body(point: Sequence[PrimExpr]) -> Stmt:
        values: Values = dict(zip((a.var for a in outer), point, strict=True))
        parts: list[Stmt] = []
        for tier in row_tiers(roles.pixel.extent, pixels):
            row = PrimVar("row")
            first = add(tier.begin, multiply(row, imm(tier.size)))
            parts.append(For(row, imm(0), tier.count, writer.tile(first, tier.size, values)))
        return sequence(parts)

    return parallel(domain, work, grain, body)


class _Writer:
    """Carries what all tiles have in common."""

    def __init__(self, nest: Nest, reduction: Reduction, roles: Roles, lanes: int) -> None:
        self.reduction = reduction
        self.roles = roles
        self.finish = with_init(reduction, nest.finish)
        self.lanes = lanes
        self.vectors = length_of(roles.lane) // lanes

    def tile(self, first: PrimExpr, pixels: int, values: Values) -> Stmt:
        """Some pixels of a line, all outputs of a block."""
        roles, lanes = self.roles, self.lanes
        count = pixels * self.vectors
        acc = Buffer("acc", (imm(count * lanes),), FLOAT32, scope="local")
        lane = PrimVar("lane")
        slots = [(add(imm(i * lanes), lane),) for i in range(count)]
        zero = sequence([Store(acc, slot, imm(0.0, FLOAT32)) for slot in slots])
        depth = Axis(PrimVar("depth"), roles.depth.extent)
        dots: list[Stmt] = []
        done: list[Stmt] = []
        for i in range(count):
            pixel, vector = divmod(i, self.vectors)
            here: Values = {**values, roles.pixel.var: add(first, imm(pixel))}
            at_step: Values = {**here, roles.depth.var: depth.var}
            dots.append(
                lane_dot(
                    _sum(acc, i * lanes),
                    self.left(at_step),
                    self.right(at_step, vector),
                    lanes,
                    group_of(BFLOAT16),
                )
            )
            value = Load(acc, slots[i])
            here[roles.lane.var] = add(imm(vector * lanes), lane)
            done.append(finished(self.reduction, value, self.finish, here))
        stmts = (
            For(lane, imm(0), imm(lanes), zero, "vectorized"),
            loops([*roles.steps, depth], sequence(dots)),
            For(lane, imm(0), imm(lanes), sequence(done), "vectorized"),
        )
        return Allocate(acc, Seq(stmts))

    def left(self, values: Values) -> Access:
        """The group of a pixel."""

        def at(x: Sequence[PrimVar]) -> Load:
            return _at(self.roles.image, {**values, self.roles.group.var: x[0]})

        return at

    def right(self, values: Values, vector: int) -> Access:
        """The groups of weights for a register of outputs."""
        roles = self.roles

        def at(x: Sequence[PrimVar]) -> Load:
            n, p = x
            lane = add(imm(vector * self.lanes), n)
            return _at(roles.weight, {**values, roles.lane.var: lane, roles.group.var: p})

        return at


def _sum(acc: Buffer, begin: int) -> Access:
    return lambda x: Load(acc, (add(imm(begin), x[0]),))


def _at(load: Load, values: Values) -> Load:
    found = substitute_prim(load, values)
    assert isinstance(found, Load)
    return found
