"""Where an element lies in memory: one index from those of a buffer's dimensions."""

from __future__ import annotations

from unity.ir.prim_expr import Broadcast, PrimExpr, Ramp, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Buffer


def flat_index(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The place of an element in memory, in elements: Horner's scheme when the buffer is compact.

    >>> from unity.ir.dtype import FLOAT32
    >>> from unity.ir.prim_expr import PrimVar
    >>> b = Buffer("b", (imm(4), imm(8)), FLOAT32)
    >>> flat_index(b, (imm(3), imm(5)))
    Imm(value=29, dtype=DType(name='int64', lanes=1))

    Of lanes along one dimension it is the lanes' places:

    >>> flat_index(b, (Ramp(imm(1), imm(2), 2), imm(5)))
    Ramp(base=Imm(value=13, dtype=DType(name='int64', lanes=1)), \
stride=Imm(value=16, dtype=DType(name='int64', lanes=1)), lanes=2)
    """
    total: PrimExpr = imm(0)
    if buffer.strides is not None:
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = _plus(total, _times(index, stride))
        return total
    for index, extent in zip(indices, buffer.shape, strict=True):
        total = _plus(_times(total, extent), index)
    return total


def _plus(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A sum of numbers and lanes; of lanes at equal distances it is such lanes."""
    if a.dtype.lanes == b.dtype.lanes == 1:
        return add(a, b)
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    first, second = _ramp(a, lanes), _ramp(b, lanes)
    if first is not None and second is not None:
        (base, step), (other, more) = first, second
        return Ramp(add(base, other), add(step, more), lanes)
    return add(_wide(a, lanes), _wide(b, lanes))


def _times(a: PrimExpr, number: PrimExpr) -> PrimExpr:
    if isinstance(a, Ramp):
        return Ramp(multiply(a.base, number), multiply(a.stride, number), a.lanes)
    return multiply(a, _wide(number, a.dtype.lanes))


def _ramp(e: PrimExpr, lanes: int) -> tuple[PrimExpr, PrimExpr] | None:
    """Base and stride of lanes at equal distances."""
    if isinstance(e, Ramp):
        return e.base, e.stride
    if isinstance(e, Broadcast):
        return e.value, imm(0)
    return (e, imm(0)) if e.dtype.lanes < lanes else None


def _wide(e: PrimExpr, lanes: int) -> PrimExpr:
    return e if e.dtype.lanes == lanes else Broadcast(e, lanes)
