"""Where the extreme of a long row is: found block by block, so that most is read only once.

The extremes of the blocks say which block holds the first element that equals that of the row; only
that one is searched. Rows that lie along memory are worth it: their blocks are whole lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity import te
from unity.ir.dims import Dim
from unity.ir.dtype import INT32, INT64, DType
from unity.ir.prim_expr import Imm, PrimExpr, imm
from unity.op.reduction.reduce import Reduction

Extreme: TypeAlias = Callable[[PrimExpr, Sequence[te.ReduceAxis]], te.Reduce]
BLOCK = 1024
"""Elements of a block."""
LEAST = 8 * BLOCK
"""Elements from which on a row is searched in blocks."""


def same(here: PrimExpr, wanted: PrimExpr) -> PrimExpr:
    """Whether an element is the extreme; NaN, if it is that."""
    hit: PrimExpr = te.eq(here, wanted)
    return te.select(te.isnan(wanted), te.isnan(here), hit) if here.dtype.is_float else hit


@dataclass(frozen=True, slots=True)
class LongRow:
    """Rows along the last axis of a tensor.

    Attributes:
        x: The tensor.
        shape: Of the result.
        length: Elements of a row, less than 2**31.
    """

    x: te.Tensor
    shape: Sequence[Dim | PrimExpr]
    length: int

    def position(self, extreme: Extreme, name: str) -> te.Tensor:
        """The first position of each row's extreme, int32.

        Args:
            extreme: `te.max` or `te.min`.
            name: Of the operator.
        """
        count, left = divmod(self.length, BLOCK)
        k = te.reduce_axis(BLOCK, "k")

        def of_block(*at: PrimExpr) -> te.Reduce:
            return extreme(self._element(at[:-1], at[-1] * BLOCK + k.var), [k])

        blocks = te.compute((*self.shape, count), of_block, f"{name}_blocks")
        b = te.reduce_axis(count, "b")
        best = te.compute(
            self.shape, lambda *out: extreme(blocks[(*out, b.var)], [b]), f"{name}_value"
        )
        if left:
            best = self._with_rest(best, extreme, name)
        some = te.reduce_axis(count, "b")

        def which(*out: PrimExpr) -> te.Reduce:
            hit = same(blocks[(*out, some.var)], best[out])
            last = imm(count, INT32)
            return te.min(te.select(hit, te.cast(some.var, INT32), last), [some])

        block = te.compute(self.shape, which, f"{name}_block")

        def begin_of(*out: PrimExpr) -> PrimExpr:
            begin = te.cast(block[out], INT64) * BLOCK
            return te.min_(begin, imm(self.length - BLOCK))  # a whole block, also at the end

        begin = te.compute(self.shape, begin_of, f"{name}_begin")
        i = te.reduce_axis(BLOCK, "i")

        def inside(*out: PrimExpr) -> te.Reduce:
            hit = same(self._element(out, begin[out] + i.var), best[out])
            return te.min(te.select(hit, te.cast(i.var, INT32), te.max_value(INT32)), [i])

        found = te.compute(self.shape, inside, f"{name}_inside")
        return te.compute(
            self.shape, lambda *out: found[out] + te.cast(begin[out], INT32), f"{name}_narrow"
        )

    def _with_rest(self, best: te.Tensor, extreme: Extreme, name: str) -> te.Tensor:
        """The extreme of all of a row, from that of its blocks."""
        count, left = divmod(self.length, BLOCK)
        j = te.reduce_axis(left, "j")
        rest = te.compute(
            self.shape,
            lambda *out: extreme(self._element(out, j.var + count * BLOCK), [j]),
            f"{name}_rest",
        )
        join = te.max_ if extreme is te.max else te.min_
        return te.compute(self.shape, lambda *out: join(best[out], rest[out]), f"{name}_best")

    def _element(self, out: Sequence[PrimExpr], at: PrimExpr) -> PrimExpr:
        return self.x[(*out[: self.x.ndim - 1], at)]


def first_position(
    x: te.Tensor, r: Reduction, shape: Sequence[Dim | PrimExpr], extreme: Extreme, name: str
) -> te.Tensor:
    """The first position of each extreme among what is reduced, int32 where that can count them.

    Args:
        x: The tensor.
        r: Over which axes, one or more.
        shape: Of the result.
        extreme: `te.max` or `te.min`; NaN is one, if there is any.
        name: Of the operator.
    """
    reduced = r.axes()
    of = _position_dtype(reduced)
    row = long_row(x, r, shape) if of == INT32 else None
    if row is not None:
        return row.position(extreme, name)

    def best(*out: PrimExpr) -> te.Reduce:
        return extreme(x[r.index(out, reduced)], reduced)

    found = te.compute(shape, best, f"{name}_value")
    again = r.axes()

    def position(*out: PrimExpr) -> te.Reduce:
        at: PrimExpr = imm(0)
        for axis in again:
            at = at * axis.domain.extent + axis.var
        hit = same(x[r.index(out, again)], found[out])
        return te.min(te.select(hit, te.cast(at, of), te.max_value(of)), again)

    return te.compute(shape, position, name if of == INT64 else f"{name}_narrow")


def _position_dtype(axes: Sequence[te.ReduceAxis]) -> DType:
    """The dtype to compare positions in: int32 has twice the lanes, where it can count them."""
    total = 1
    for axis in axes:
        extent = axis.domain.extent
        total *= int(extent.value) if isinstance(extent, Imm) else 0
    return INT32 if 0 < total < 1 << 31 else INT64


def long_row(x: te.Tensor, r: Reduction, shape: Sequence[Dim | PrimExpr]) -> LongRow | None:
    """The rows, if each runs along memory and is long."""
    if r.over != (x.ndim - 1,):
        return None
    extent = x.shape[-1]
    length = extent.value if isinstance(extent, Imm) else None
    if not isinstance(length, int) or length < LEAST:
        return None
    return LongRow(x, shape, length)
