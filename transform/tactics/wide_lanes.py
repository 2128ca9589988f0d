"""Reductions of narrow floats over blocks longer than a register: in float32, lane by lane.

A block of 32 numbers in bfloat16 fills a register as it lies in memory, and two as it is computed.
"""

from __future__ import annotations

from dataclasses import replace

from unity.ir.dtype import FLOAT32, DType
from unity.ir.prim_expr import Cast, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ..blocks.extents import number
from ..blocks.nest import Axis, Nest
from .register_tile import Values


def in_wide_lanes(nest: Nest, target: Target) -> Nest:
    """The stage with lanes of one register innermost; itself where nothing narrow is read."""
    reduction = nest.reduction
    if reduction is None or not any(_is_narrow(x.dtype) for x in reduction.loads()):
        return nest
    return _split(_widened(nest), target)


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < FLOAT32.bits


def _widened(nest: Nest) -> Nest:
    """With the least or greatest of narrow numbers told in float32, which is exact."""
    reduction = nest.reduction
    assert reduction is not None
    if not _is_narrow(reduction.value.dtype) or reduction.op not in ("min", "max"):
        return nest
    result = PrimVar("result", FLOAT32)
    wide = replace(reduction, value=Cast(FLOAT32, reduction.value), result=result)
    neutral = reduction.init == reduction.identity
    wide = replace(wide, init=wide.identity if neutral else Cast(FLOAT32, reduction.init))
    stored = Cast(reduction.value.dtype, result)
    finish = substitute_stmt(nest.finish, {reduction.result: stored})
    return replace(nest, reduction=wide, finish=finish)


def _split(nest: Nest, target: Target) -> Nest:
    """With an innermost axis of two registers as two axes, the outer one before the pixels."""
    reduction = nest.reduction
    assert reduction is not None
    lanes = target.vector_bits // reduction.value.dtype.bits
    if len(nest.axes) < 2 or number(nest.axes[-1].extent) != 2 * lanes:
        return nest
    *others, pixel, block = nest.axes
    part, lane = Axis(PrimVar("part"), imm(2)), Axis(PrimVar(block.var.name), imm(lanes))
    values: Values = {block.var: add(multiply(part.var, imm(lanes)), lane.var)}
    split = replace(
        reduction,
        value=substitute_prim(reduction.value, values),
        init=substitute_prim(reduction.init, values),
    )
    finish = substitute_stmt(nest.finish, values)
    return replace(nest, axes=(*others, part, pixel, lane), reduction=split, finish=finish)
