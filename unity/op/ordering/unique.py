"""The different elements of a tensor, or slices along an axis, by sorting them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, equal, product
from unity.ir.dtype import BOOL, INT64, UINT8, Array
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import Shape, TensorType, TupleType, Type
from unity.op.argument import axis as axis_of
from unity.op.argument import tensor
from unity.op.attribute import FLAG, INT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, array_arg, attr
from unity.op.sampling import Sampler, sample

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (
    Param("x"),
    attr("sorted", FLAG, True),
    attr("return_index", FLAG, False),
    attr("return_inverse", FLAG, False),
    attr("return_counts", FLAG, False),
    attr("axis", INT, None),
)


@dataclass(frozen=True, slots=True)
class Unique:
    """What is different among rows.

    Attributes:
        first: Where each different row stands for the first time.
        inverse: For each row, which of the different ones it is.
        counts: How often each is there.
    """

    first: Expr
    inverse: Expr
    counts: Expr


def unique_rows(e: Emitter, rows: Expr, *, ascending: bool) -> Unique:
    """The different rows of a matrix, compared element by element.

    Args:
        e: Emits what finds them.
        rows: The matrix, of shape (rows, columns). NaNs are equal, as are the two zeros.
        ascending: Whether they come in ascending order, else as they stand first.
    """
    count = e.shape_of(rows)[0]
    if equal(count, 0):
        none = Constant(np.zeros(0, np.int64))
        return Unique(none, none, none)
    order = _order(e, _with_one_zero(e, rows))
    ranked = e.op("take", rows, order, axis=0)
    begins = _begins(e, ranked, count)
    group = e.op("subtract", e.op("cumsum", e.cast(begins, INT64), axis=0), _integer(1))
    places = e.op("reshape", e.op("nonzero", begins), (-1,))
    (found,) = e.shape_of(places)
    first = e.op("take", order, places, axis=0)
    ends = e.op("concat", (places, e.op("dims", (count,), dtype=INT64)), axis=0)
    numbers = e.op("arange", 0, found, 1, dtype=INT64)
    after = e.op("take", ends, e.op("add", numbers, _integer(1)), axis=0)
    counts = e.op("subtract", after, places)
    if not ascending:
        by_place = e.op("argsort", first, axis=0)
        first, counts = (e.op("take", v, by_place, axis=0) for v in (first, counts))
        group = e.op("take", e.op("argsort", by_place, axis=0), group, axis=0)
    nothing = e.op("zeros", (count,), dtype=INT64)
    return Unique(first, e.op("scatter_elements", nothing, order, group, axis=0), counts)


def _integer(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def _with_one_zero(e: Emitter, rows: Expr) -> Expr:
    """Numbers as they are sorted: bools as numbers, and 0 for -0."""
    kind = e.dtype_of(rows)
    if kind == BOOL:
        return e.cast(rows, UINT8)
    if not kind.is_float:
        return rows
    zero = e.number(0, rows)
    return e.op("where", e.op("equal", rows, zero), zero, rows)


def _order(e: Emitter, rows: Expr) -> Expr:
    """The order of rows: by their last column, then, stable, by each before it."""
    count, width = e.shape_of(rows)
    if width == 1:
        return e.op("argsort", e.op("reshape", rows, (count,)), axis=0)
    columns = e.op("flip", e.op("permute_dims", rows, axes=(1, 0)), axis=0)

    def sorted_by(inner: Emitter, order: Expr, column: Expr) -> Expr:
        moved = inner.op("argsort", inner.op("take", column, order, axis=0), axis=0)
        return inner.op("take", order, moved, axis=0)

    return e.scan(e.op("arange", 0, count, 1, dtype=INT64), columns, sorted_by)


def _begins(e: Emitter, ranked: Expr, count: Dim) -> Expr:
    """Which rows, in order, differ from the one before; the first does."""
    place = e.op("arange", 0, count, 1, dtype=INT64)
    before = e.op("maximum", e.op("subtract", place, _integer(1)), _integer(0))
    last = e.op("take", ranked, before, axis=0)
    differs = e.op("not_equal", ranked, last)
    if e.dtype_of(ranked).is_float:
        both = e.op("logical_and", e.op("isnan", ranked), e.op("isnan", last))
        differs = e.op("logical_and", differs, e.op("logical_not", both))
    return e.op("logical_or", e.op("any", differs, axis=(1,)), e.op("equal", place, _integer(0)))


# unique


def _flags(attrs: Attrs) -> list[str]:
    """What is given beside the elements."""
    return [n for n in ("index", "inverse", "counts") if attrs[f"return_{n}"] is True]


def _infer(call: OpCall) -> Type:
    x, given = tensor(call, 0), call.attrs["axis"]
    along = None if given is None or x.ndim is None else axis_of(call, given, x.ndim)
    found = call.fresh("unique")
    kind: TensorType
    rows: Shape | int = 1
    if given is None:
        kind = TensorType((found,), x.dtype)
    elif isinstance(x.shape, tuple) and along is not None:
        kind = TensorType((*x.shape[:along], found, *x.shape[along + 1 :]), x.dtype)
        rows = (x.shape[along],)
    else:
        kind = TensorType(x.ndim, x.dtype)
    beside = {
        "index": TensorType((found,), INT64),
        "inverse": TensorType(x.shape if given is None else rows, INT64),
        "counts": TensorType((found,), INT64),
    }
    flags = _flags(call.attrs)
    return TupleType((kind, *(beside[f] for f in flags))) if flags else kind


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,) = args
    given = attrs["axis"]
    axis, whole = 0, None
    if isinstance(given, int):
        axis = given % e.rank_of(x)
    else:
        whole = e.shape_of(x)
        x = e.op("reshape", x, (product(whole),))
    shape = e.shape_of(x)
    order = (axis, *(k for k in range(len(shape)) if k != axis))
    leading = e.op("permute_dims", x, axes=order) if axis else x
    width = product(d for k, d in enumerate(shape) if k != axis)
    rows = e.op("reshape", leading, (shape[axis], width))
    found = unique_rows(e, rows, ascending=attrs["sorted"] is True)
    values = x if equal(shape[axis], 0) else e.op("take", x, found.first, axis=axis)
    inverse = found.inverse
    if whole is not None and len(whole) != 1 and attrs["return_inverse"] is True:
        inverse = e.op("reshape", inverse, whole)
    beside = {"index": found.first, "inverse": inverse, "counts": found.counts}
    flags = _flags(attrs)
    return Tuple((values, *(beside[f] for f in flags))) if flags else values


def _reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    x = array_arg(args)
    given = attrs["axis"]
    axis = given % x.ndim if isinstance(given, int) else 0
    whole = x if isinstance(given, int) else x.reshape(-1)
    width = math.prod(n for k, n in enumerate(whole.shape) if k != axis)
    rows = np.moveaxis(whole, axis, 0).reshape(whole.shape[axis], width)
    seen: list[int] = []
    inverse = np.zeros(len(rows), np.int64)
    for k, row in enumerate(rows):
        same = (j for j, at in enumerate(seen) if np.array_equal(row, rows[at], _has_nan(x)))
        inverse[k] = next(same, len(seen))
        if inverse[k] == len(seen):
            seen.append(k)
    if attrs["sorted"] is True:
        shown: Array = rows[seen].astype(np.uint8) if x.dtype == np.bool_ else rows[seen]
        columns = np.where(shown == 0, 0, shown).T[::-1]  # both zeros are one
        order = np.lexsort(columns) if len(columns) else np.arange(len(seen))
        inverse = np.argsort(order)[inverse]
        seen = [seen[k] for k in order]
    first = np.asarray(seen, np.int64)
    beside = {
        "index": first,
        "inverse": inverse.astype(np.int64).reshape(x.shape if given is None else (-1,)),
        "counts": np.bincount(inverse, minlength=len(seen)).astype(np.int64),
    }
    flags = _flags(attrs)
    values = np.take(whole, first, axis)
    return (values, *(beside[f] for f in flags)) if flags else values


def _has_nan(x: Array) -> bool:
    return np.issubdtype(x.dtype, np.inexact)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    every = {f"return_{n}": True for n in ("index", "inverse", "counts")}
    floats = np.array([2, -0.0, np.nan, 0.0, 2, -np.inf, np.nan], np.float32)
    return [
        sample(_PARAMS, (s.array((11,), "int32", -2, 2),)),
        sample(_PARAMS, (s.array((3, 4), "int64", 0, 4),), **every),
        sample(_PARAMS, (floats,), **every),
        sample(_PARAMS, (floats,), sorted=False, return_inverse=True),
        sample(_PARAMS, (s.array((7, 2), "uint8", 0, 1),), axis=0, **every),
        sample(_PARAMS, (s.array((2, 8, 2), "bool"),), axis=-2, sorted=False, return_counts=True),
        sample(_PARAMS, (s.array((0,), "int32"),), **every),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "unique",
        _PARAMS,
        _infer,
        _reference,
        """The different elements of a tensor ``(unique,)``, or with `axis` its different slices.

        How many there are, `unique`, is a fresh symbol. They ascend if `sorted`, else they come as
        they stand first; NaNs are one, above all, and so are the two zeros. After them, as int64:
        with `return_index` where each stands first, ``(unique,)``, in row-major order; with
        `return_inverse` which of them each element is, of the shape of `x`, or each slice,
        ``(n,)``; with `return_counts` how often each is there, ``(unique,)`` (R.unique, ONNX
        Unique, np.unique). The sizes of `x` must be known, if only as symbols.
        """,
        expand=_expand,
        samples=_samples,
    ),
)
