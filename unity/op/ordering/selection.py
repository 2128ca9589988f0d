"""The best few of each row, found in one pass: what `topk` does where k is small.

The best so far are kept in order. Most elements do not come before the last of them, which a block
of elements is asked at once; those of a block where some does are asked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity import te
from unity.ir.dims import Dim, bounds
from unity.ir.dtype import BOOL, INT32, INT64, DType
from unity.ir.prim_expr import Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, ForKind, IfThen, Let, PrimWhile, Seq, Stmt, Store
from unity.ir.symbols.convert import to_prim_expr

MOST = 128
"""Elements that are kept by moving them one by one; for more a sort is better."""
_LANES = 16
_BLOCK = 64
"""Elements asked at once: a few vectors."""


def precedes(a: PrimExpr, b: PrimExpr, *, descending: bool) -> PrimExpr:
    """Whether a value goes strictly before another; NaN is greater than every number."""
    x, y = (b, a) if descending else (a, b)
    if not x.dtype.is_float:
        return x < y
    return te.or_(x < y, te.and_(te.isnan(y), te.not_(te.isnan(x))))


def selected(
    x: te.Tensor, along: int, k: Dim, index: DType, *, descending: bool
) -> tuple[te.Tensor, te.Tensor]:
    """The first k of each row in order, and their indices; of equals the first comes first.

    Args:
        x: The tensor.
        along: The axis that a row runs along, of k elements or more.
        k: How many, at most a number that is known and at least 1.
        index: The dtype of the indices.
        descending: Whether the largest come first.
    """
    count, (_, most) = to_prim_expr(k), bounds(k)
    assert most is not None
    kept = imm(most)
    shape = [*x.shape[:along], count, *x.shape[along + 1 :]]

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        (source,), (values, indices) = inputs, outputs
        places = [PrimVar(f"i{d}") for d in range(len(source.shape))]

        def at(n: PrimExpr) -> tuple[PrimExpr, ...]:
            return (*places[:along], n, *places[along + 1 :])

        row = _Row(
            lambda n: Load(source, at(n)),
            Buffer("best", (kept,), source.dtype, scope="local"),
            Buffer("where", (kept,), INT64, scope="local"),
            Buffer("place", (imm(1),), INT64, scope="local"),
            Buffer("found", (imm(_LANES),), INT32, scope="local"),
            count,
            descending,
        )
        n = PrimVar("n")
        copied = (
            Store(values, at(n), Load(row.best, (n,))),
            Store(indices, at(n), te.cast(Load(row.where, (n,)), index)),
        )
        stmt: Stmt = Seq((*row.searched(source.shape[along]), For(n, imm(0), count, Seq(copied))))
        for buffer in (row.best, row.where, row.place, row.found):
            stmt = Allocate(buffer, stmt)
        for d in reversed(range(len(places))):
            if d != along:
                stmt = For(places[d], imm(0), source.shape[d], stmt, "parallel")
        return stmt

    dtypes = (x.dtype, index)
    values, indices = te.extern([(shape, d) for d in dtypes], [x], body, "topk")
    return values, indices


@dataclass(frozen=True, slots=True)
class _Row:
    """One row: its elements, the best so far in order and where they are."""

    element: Callable[[PrimExpr], PrimExpr]
    best: Buffer
    where: Buffer
    place: Buffer
    found: Buffer
    k: PrimExpr
    descending: bool

    def searched(self, extent: PrimExpr) -> list[Stmt]:
        """The first k elements put in order, then blocks, then what is left."""
        n, block, rest = PrimVar("n"), PrimVar("block"), PrimVar("n")
        blocks = (extent - self.k) // _BLOCK
        done = blocks * _BLOCK + self.k
        return [
            For(n, imm(0), self.k, self._inserted(n, n)),
            For(block, imm(0), blocks, self._block(block * _BLOCK + self.k)),
            For(rest, done, extent - done, self._asked(rest)),
        ]

    @property
    def _end(self) -> PrimExpr:
        """Where the last is; of none kept, a place that is not copied."""
        return te.max_(self.k - 1, imm(0))

    @property
    def _last(self) -> PrimExpr:
        return Load(self.best, (self._end,))

    def _before(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        return precedes(a, b, descending=self.descending)

    def _block(self, begin: PrimExpr) -> Stmt:
        last = PrimVar("last", self.best.dtype)
        lane, n = PrimVar("lane"), PrimVar("n")
        value: PrimExpr = imm(0, INT32)
        for first in range(0, _BLOCK, _LANES):
            some = self._before(self.element(begin + first + lane), last)
            value = te.max_(value, te.select(some, imm(1, INT32), imm(0, INT32)))
        stmts: list[Stmt] = [
            For(lane, imm(0), imm(_LANES), Store(self.found, (lane,), value), "vectorized")
        ]
        half = _LANES // 2
        while half:
            one = PrimVar("lane")
            both = te.max_(Load(self.found, (one,)), Load(self.found, (one + half,)))
            kind: ForKind = "vectorized" if half > 1 else "serial"
            stmts.append(For(one, imm(0), imm(half), Store(self.found, (one,), both), kind))
            half //= 2
        any_ = Compare("gt", Load(self.found, (imm(0),)), imm(0, INT32))
        each = For(n, imm(0), imm(_BLOCK), self._asked(begin + n))
        return Let(last, self._last, Seq((*stmts, IfThen(any_, each))))

    def _asked(self, n: PrimExpr) -> Stmt:
        """An element kept if it goes before the last."""
        return IfThen(self._before(self.element(n), self._last), self._inserted(n, self._end))

    def _inserted(self, n: PrimExpr, count: PrimExpr) -> Stmt:
        """An element put among the first `count`, which move up to make room."""
        value = PrimVar("value", self.best.dtype)
        place, zero = Load(self.place, (imm(0),)), imm(0)
        below = te.max_(place - 1, zero)
        moves = te.select(
            place > 0, self._before(value, Load(self.best, (below,))), imm(False, BOOL)
        )
        move = tuple(
            Store(buffer, (place,), Load(buffer, (place - 1,)))
            for buffer in (self.best, self.where)
        )
        down = Store(self.place, (zero,), place - 1)
        stmts = (
            Store(self.place, (zero,), count),
            PrimWhile(moves, Seq((*move, down))),
            Store(self.best, (place,), value),
            Store(self.where, (place,), n),
        )
        return Let(value, self.element(n), Seq(stmts))
