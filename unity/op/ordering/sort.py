"""Sorting along an axis: argsort, sort, topk.

One order of indices serves all three, in `ordering/`: by digits (`radix.py`) for dtypes of up to 32
bits, a stable merge sort for wider ones. Of topk, few are selected in one pass (`selection.py`),
one is searched (`position.py`). NaN counts as greater than every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, always_ge, bounds, dim_text
from unity.ir.dtype import INT32, INT64, Array, DType
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.types import TensorType, TupleType, Type
from unity.op.argument import axis, tensor, type_text
from unity.op.attribute import DTYPE, FLAG, INT, SIZE
from unity.op.reduction.reduce import Reduction, known
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
    dtype_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

from .position import first_position
from .radix import has_keys, ordered
from .selection import MOST, selected

_SORT = (Param("x"), attr("axis", INT, -1), attr("descending", FLAG, False))
_ARGSORT = (*_SORT, attr("dtype", DTYPE, INT64))
_TOPK = (
    Param("x"),
    attr("k", SIZE),
    attr("axis", INT, -1),
    attr("largest", FLAG, True),
    attr("dtype", DTYPE, INT64),
)
_PASSES = 62
"""Doublings that any int64 length needs at most."""


def _along(call: OpCall, x: TensorType) -> int:
    if x.dtype is not None and x.dtype.kind == "bool":
        raise call.error("a bool tensor can't be sorted", 'convert with astype(x, "int8")')
    return 0 if x.ndim is None else axis(call, call.attrs["axis"], x.ndim)


def _index_dtype(call: OpCall) -> DType:
    found = call.dtype()
    if found not in (INT32, INT64):
        raise call.error(f"'dtype' must be int32 or int64, got {found}")
    return found


def _sort_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    _along(call, x)
    return x


def _argsort_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    _along(call, x)
    return TensorType(x.shape, _index_dtype(call))


def _topk_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    along, kind = _along(call, x), _index_dtype(call)
    k = call.attrs["k"]
    if not isinstance(k, int | SymDim) or isinstance(k, bool) or not always_ge(k, 0):
        raise call.error(f"k must be a dim that isn't negative, got {k!r}")
    if not isinstance(x.shape, tuple):
        return TupleType((TensorType(x.ndim, x.dtype), TensorType(x.ndim, kind)))
    if not always_ge(x.shape[along], k):
        raise call.error(
            f"k={dim_text(k)} may exceed the {dim_text(x.shape[along])} elements of "
            f"{type_text(x)} along axis {along}",
            None if isinstance(x.shape[along], int) else f'say dim("n", min={dim_text(k)})',
        )
    dims: tuple[Dim, ...] = (*x.shape[:along], k, *x.shape[along + 1 :])
    return TupleType((TensorType(dims, x.dtype), TensorType(dims, kind)))


@dataclass(frozen=True, slots=True)
class _Row:
    """One row to sort: where its elements are, and the order to put them in."""

    source: Buffer
    at: Callable[[PrimExpr], tuple[PrimExpr, ...]]
    descending: bool

    def precedes(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Whether the element numbered `a` goes strictly before the one numbered `b`."""
        first, second = (b, a) if self.descending else (a, b)
        x, y = Load(self.source, self.at(first)), Load(self.source, self.at(second))
        if not x.dtype.is_float:
            return x < y
        return te.or_(x < y, te.and_(te.isnan(y), te.not_(te.isnan(x))))


def _order(x: te.Tensor, along: int, *, descending: bool, first: int | None = None) -> te.Tensor:
    """The indices that sort each row, at least the first of them."""
    if has_keys(x.dtype):
        return ordered(x, along, descending=descending, first=first)

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        (source,), (target,) = inputs, outputs
        length = source.shape[along]
        places = [PrimVar(f"i{d}") for d in range(len(source.shape))]

        def at(n: PrimExpr) -> tuple[PrimExpr, ...]:
            return (*places[:along], n, *places[along + 1 :])

        now, later = Buffer("now", (length,), INT64), Buffer("later", (length,), INT64)
        heads = Buffer("heads", (imm(2),), INT64, scope="local")
        row = _Row(source, at, descending)
        n = PrimVar("n")
        stmt: Stmt = Seq(
            (
                For(n, imm(0), length, Store(now, (n,), n)),
                _merge_sort(row, now, later, heads),
                For(n, imm(0), length, Store(target, at(n), Load(now, (n,)))),
            )
        )
        for d in reversed(range(len(places))):
            if d != along:
                stmt = For(places[d], imm(0), source.shape[d], stmt)
        return Allocate(now, Allocate(later, Allocate(heads, stmt)))

    (found,) = te.extern([(x.shape, INT64)], [x], body, "order")
    return found


def _merge_sort(row: _Row, now: Buffer, later: Buffer, heads: Buffer) -> Stmt:
    """Runs of doubling width merged pairwise, from `now` to `later` and copied back."""
    length = now.shape[0]
    turn, width, pair, n = PrimVar("turn"), PrimVar("width"), PrimVar("pair"), PrimVar("n")
    pairs = (length + width * 2 - 1) // (width * 2)
    merged = For(pair, imm(0), pairs, _merge(row, now, later, heads, pair * 2 * width, width))
    copied = For(n, imm(0), length, Store(now, (n,), Load(later, (n,))))
    one_pass = Let(
        width, te.shift_left(imm(1), turn), IfThen(width < length, Seq((merged, copied)))
    )
    return For(turn, imm(0), imm(_PASSES), one_pass)


def _merge(
    row: _Row, now: Buffer, later: Buffer, heads: Buffer, begin: PrimExpr, width: PrimExpr
) -> Stmt:
    """Two neighbouring runs put in order; of equals those of the left run go first."""
    length = now.shape[0]
    low, middle, high, n = (PrimVar(v) for v in ("low", "middle", "high", "n"))
    left, right = Load(heads, (imm(0),)), Load(heads, (imm(1),))
    # A run that is used up is not looked into.
    from_left = te.select(
        left < middle,
        te.select(
            right < high,
            te.not_(row.precedes(Load(now, (right,)), Load(now, (left,)))),
            te.eq(imm(0), imm(0)),
        ),
        te.eq(imm(0), imm(1)),
    )

    def take(which: int) -> Stmt:
        head = Load(heads, (imm(which),))
        return Seq((Store(later, (n,), Load(now, (head,))), Store(heads, (imm(which),), head + 1)))

    steps = For(n, low, high - low, IfThen(from_left, take(0), take(1)))
    start = (Store(heads, (imm(0),), low), Store(heads, (imm(1),), middle))
    stmt: Stmt = Seq((*start, steps))
    stmt = Let(high, te.min_(low + width * 2, length), stmt)
    stmt = Let(middle, te.min_(low + width, length), stmt)
    return Let(low, begin, stmt)


def _one(args: Sequence[ComputeArg]) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    return x


def _picked(x: te.Tensor, order: te.Tensor, along: int, dims: Sequence[Dim]) -> te.Tensor:
    return te.compute(dims, lambda *i: x[(*i[:along], order[i], *i[along + 1 :])], "sorted")


def _sort_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x = _one(args)
    along = int_attr(attrs, "axis") % x.ndim
    order = _order(x, along, descending=attrs["descending"] is True)
    return _picked(x, order, along, known(result)[0])


def _argsort_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x = _one(args)
    along = int_attr(attrs, "axis") % x.ndim
    order = _order(x, along, descending=attrs["descending"] is True)
    dims, of = known(result)
    return order if of == INT64 else te.compute(dims, lambda *i: te.cast(order[i], of), "cast")


def _topk_compute(
    args: Sequence[ComputeArg], attrs: Attrs, result: Type
) -> tuple[te.Tensor, te.Tensor]:
    x = _one(args)
    assert isinstance(result, TupleType)
    along = int_attr(attrs, "axis") % x.ndim
    dims, of = known(result.fields[1])
    k = attrs["k"]
    assert isinstance(k, int | SymDim)
    largest = attrs["largest"] is True
    if k == 1 and (largest or not x.dtype.is_float):  # the least is NaN only where all are
        r = Reduction(x, Attrs({"axis": (along,), "keepdims": True}))
        best = first_position(x, r, dims, te.max if largest else te.min, "topk")
        values = te.compute(dims, lambda *i: x[(*i[:along], best[i], *i[along + 1 :])], "values")
        return values, te.compute(dims, lambda *i: te.cast(best[i], of), "indices")
    _, most = bounds(k)
    if most is not None and 1 <= most <= MOST:
        return selected(x, along, k, of, descending=largest)
    order = _order(x, along, descending=largest, first=k if isinstance(k, int) else None)
    indices = te.compute(dims, lambda *i: te.cast(order[i], of), "indices")
    return _picked(x, order, along, dims), indices


def _order_of(x: Array, along: int, *, descending: bool) -> npt.NDArray[np.int64]:
    if not descending:
        return np.argsort(x, axis=along, kind="stable")
    backwards = np.argsort(np.flip(x, along), axis=along, kind="stable")
    return np.flip(x.shape[along] - 1 - backwards, along)


def _sort_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, along = array_arg(args), int_attr(attrs, "axis")
    order = _order_of(x, along, descending=attrs["descending"] is True)
    return np.take_along_axis(x, order, along)


def _argsort_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    order = _order_of(
        array_arg(args), int_attr(attrs, "axis"), descending=attrs["descending"] is True
    )
    return order.astype(dtype_attr(attrs).numpy)


def _topk_reference(args: Sequence[RefArg], attrs: Attrs) -> tuple[Array, Array]:
    x, along = array_arg(args), int_attr(attrs, "axis") % array_arg(args).ndim
    order = _order_of(x, along, descending=attrs["largest"] is True)
    best = order[(*(slice(None),) * along, slice(int_attr(attrs, "k")))]
    return np.take_along_axis(x, best, along), best.astype(dtype_attr(attrs).numpy)


def _arrays(seed: int) -> list[tuple[Array, int]]:
    """Arrays with ties, NaN, lengths that are no power of two; and an axis of each."""
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 4)
    odd = s.array((a, 7))
    odd[0, 3] = np.nan
    return [
        (odd, -1),
        (s.array((9, b), "int32", -2, 2), 0),
        (s.array((a, 6, b), "float16"), 1),
        (s.array((13,), "uint8", 0, 5), 0),
        (s.array((0, 4)), 1),
        (s.array((3, 1), "float64"), -1),
    ]


def _sort_samples(params: tuple[Param, ...]) -> Callable[[int], Sequence[Sample]]:
    return lambda seed: [
        sample(params, (x,), axis=along, descending=down)
        for x, along in _arrays(seed)
        for down in (False, True)
    ]


def _topk_samples(seed: int) -> Sequence[Sample]:
    found = [
        sample(_TOPK, (x,), axis=along, k=min(3, x.shape[along]), largest=largest)
        for x, along in _arrays(seed)
        for largest in (False, True)
    ]
    return [*found, sample(_TOPK, (np.arange(4.0),), k=0), sample(_TOPK, (np.arange(4),), k=4)]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "sort",
        _SORT,
        _sort_infer,
        _sort_reference,
        "Each row along `axis` sorted (R.sort). NaN is greatest.",
        compute=_sort_compute,
        samples=_sort_samples(_SORT),
    ),
    OpDef(
        "argsort",
        _ARGSORT,
        _argsort_infer,
        _argsort_reference,
        "The indices that sort each row along `axis`, equals in their order (R.argsort).",
        compute=_argsort_compute,
        samples=_sort_samples(_ARGSORT),
    ),
    OpDef(
        "topk",
        _TOPK,
        _topk_infer,
        _topk_reference,
        """The k largest (or smallest) along `axis` in order, and their indices (ONNX TopK, R.topk).

        k is a dim that provably does not exceed the extent. Of equals the first in x comes first.
        """,
        compute=_topk_compute,
        samples=_topk_samples,
    ),
)
