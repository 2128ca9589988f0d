"""Where an element lies in memory: one index from those of a buffer's dimensions."""

from __future__ import annotations

from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Buffer


def flat_index(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The place of an element in memory, in elements: Horner's scheme when the buffer is compact.

    >>> from unity.ir.dtype import FLOAT32
    >>> from unity.ir.prim_expr import PrimVar
    >>> b = Buffer("b", (imm(4), imm(8)), FLOAT32)
    >>> flat_index(b, (imm(3), imm(5)))
    Imm(value=29, dtype=DType(name='int64', lanes=1))
    """
    total: PrimExpr = imm(0)
    if buffer.strides is not None:
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = add(total, multiply(index, stride))
        return total
    for index, extent in zip(indices, buffer.shape, strict=True):
        total = add(multiply(total, extent), index)
    return total
