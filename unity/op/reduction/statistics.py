"""Statistics over axes that other reductions and a sort give: std, median, sums that undo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import as_dim, equal, floordiv, product
from unity.ir.dtype import INT64, Array, dtype
from unity.ir.graph import Expr, Tuple
from unity.ir.types import Shape, TensorType, TupleType, Type
from unity.op.accumulate import mean_dtype, real, rounded
from unity.op.argument import float_tensor, number_tensor, shape, shape_text, tensor, type_text
from unity.op.attribute import FLAG, INTS
from unity.op.registry import (
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
    axes_attr,
    flag_attr,
)
from unity.op.sampling import Sampler, sample

from .reduce import infer_reduced

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (Param("x"), attr("axis", INTS, None), attr("keepdims", FLAG, False))
_TO = (Param("x"), Param("shape", "shape"))
_LIKE = (Param("x"), Param("like"))


# std and logsumexp


def _infer_float(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    return infer_reduced(call, x, x.dtype)


def _infer_std(call: OpCall) -> Type:
    x = number_tensor(call, 0)
    return infer_reduced(call, x, None if x.dtype is None else mean_dtype(x.dtype))


def _expand_std(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,) = args
    wide = e.widened(x)
    variance = e.op("variance", wide, axis=attrs["axis"], keepdims=attrs["keepdims"])
    return e.cast(e.op("sqrt", variance), mean_dtype(e.dtype_of(x)))


def _refer_std(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x = array_arg(args)
    over = axes_attr(attrs, "axis", x.ndim)
    found = np.std(real(x), axis=over, keepdims=flag_attr(attrs, "keepdims"))
    return np.asarray(found).astype(mean_dtype(dtype(x.dtype)).numpy)


def _expand_logsumexp(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    kind, x = e.dtype_of(args[0]), e.widened(args[0])
    over = axes_attr(attrs, "axis", e.rank_of(x))
    largest = e.op("max", x, axis=over, keepdims=True)
    # Where all are infinite, nothing is subtracted: their difference would be no number.
    shift = e.op("where", e.op("isfinite", largest), largest, e.number(0, x))
    total = e.op("sum", e.op("exp", e.op("subtract", x, shift)), axis=over, keepdims=True)
    found = e.cast(e.op("add", e.op("log", total), shift), kind)
    return found if attrs["keepdims"] is True else e.op("squeeze", found, axis=over)


def _refer_logsumexp(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x = array_arg(args)
    over, keepdims = axes_attr(attrs, "axis", x.ndim), flag_attr(attrs, "keepdims")
    if not over:
        return x
    top = np.max(real(x), axis=over, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(all="ignore"):
        total = np.log(np.sum(np.exp(real(x) - top), axis=over, keepdims=True)) + top
    return rounded(total if keepdims else np.squeeze(total, over), x)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    return [
        sample(_PARAMS, (s.array((a, b)),)),
        sample(_PARAMS, (s.array((a, b, c)),), axis=(1,)),
        sample(_PARAMS, (s.array((a, b, c), "float64"),), axis=(0, -1), keepdims=True),
        sample(_PARAMS, (s.array((a, b), "float16"),), axis=0),
    ]


def _std_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [*_samples(seed), sample(_PARAMS, (s.array(s.shape(2), "int32", -9, 9),), axis=1)]


# median


def _infer_median(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.dtype is not None and not (x.dtype.is_float or x.dtype.is_int):
        raise call.error(f"'x' must be numbers, got {x.dtype}", "convert with astype")
    axis = call.attrs["axis"]
    if isinstance(axis, tuple) and len(axis) == 1:
        raise call.error("'axis' must be an int, or several axes", f"write axis={axis[0]}")
    values = infer_reduced(call, x, x.dtype)
    if isinstance(x.shape, tuple):
        over = axes_attr(call.attrs, "axis", len(x.shape))
        if any(equal(x.shape[k], 0) for k in over):
            raise call.error(f"{type_text(x)} is empty over axis {axis}: it has no middle element")
    if not isinstance(axis, int):
        return values
    return TupleType((values, infer_reduced(call, x, INT64)))


def _expand_median(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,) = args
    dims = e.shape_of(x)
    over, axis = axes_attr(attrs, "axis", len(dims)), attrs["axis"]
    final = tuple(result.fields) if isinstance(result, TupleType) else (result,)
    shapes = [k.shape for k in final if isinstance(k, TensorType)]
    if not isinstance(axis, int):
        kept = tuple(k for k in range(len(dims)) if k not in over)
        rest = tuple(dims[k] for k in kept)
        x = e.op("permute_dims", x, axes=(*kept, *over)) if over else x
        x = e.op("reshape", x, (*rest, product(dims[k] for k in over)))
        order = e.op("argsort", x, axis=-1, dtype=INT64)
        along, count = len(rest), product(dims[k] for k in over)
    else:
        along, count = over[0], dims[over[0]]
        order = e.op("argsort", x, axis=along, dtype=INT64)
    middle = e.op("dims", floordiv(as_dim(count) - 1, 2), dtype=INT64)
    if e.dtype_of(x).is_float:
        # NaNs are last in order: the first of them is as many before the end as there are.
        nans = e.op("sum", e.cast(e.op("isnan", x), INT64), axis=along, keepdims=True)
        first = e.op("subtract", e.op("dims", count, dtype=INT64), nans)
        at = e.op("where", e.op("greater", nans, e.number(0, nans)), first, middle)
        place = e.op("gather_elements", order, at, axis=along)
    else:
        place = e.op("expand_dims", e.op("take", order, middle, axis=along), along)
    value = e.op("gather_elements", x, place, axis=along)
    found = [e.op("reshape", v, s) for v, s in zip((value, place), shapes, strict=False)]
    return Tuple(tuple(found)) if isinstance(result, TupleType) else found[0]


def _refer_median(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    x = array_arg(args)
    over, axis = axes_attr(attrs, "axis", x.ndim), attrs["axis"]
    shape = [n for k, n in enumerate(x.shape) if k not in over]
    count = math.prod(x.shape[k] for k in over)
    rows = np.moveaxis(x, over, range(x.ndim - len(over), x.ndim)).reshape(*shape, count)
    if not count:
        raise UnityError(f"median: shape {x.shape} is empty over axis {axis}")
    order = np.argsort(rows, axis=-1, kind="stable")
    nans = np.sum(rows != rows, axis=-1, keepdims=True)
    at = np.where(nans > 0, count - nans, (count - 1) // 2)
    place = np.take_along_axis(order, at, -1)[..., 0]
    value = np.take_along_axis(rows, place[..., None], -1)[..., 0]
    if flag_attr(attrs, "keepdims"):
        value, place = np.expand_dims(value, over), np.expand_dims(place, over)
    if isinstance(axis, int):
        return np.asarray(value), np.asarray(place, np.int64)
    return np.asarray(value)


def _median_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    return [
        sample(_PARAMS, (s.array((a, b)),)),
        sample(_PARAMS, (s.array((a, b, c)),), axis=1),
        sample(_PARAMS, (s.array((a, 5, c), "int32"),), axis=1, keepdims=True),
        sample(_PARAMS, (s.array((a, b, c), "float64"),), axis=(0, 2)),
        sample(_PARAMS, (s.array((7,)),), axis=-1),
    ]


# collapse_sum


def _collapsed(call: OpCall, x: TensorType, wanted: Shape | int | None) -> Type:
    if x.dtype is not None and not (x.dtype.is_float or x.dtype.is_int):
        raise call.error(f"'x' must be numbers, got {x.dtype}", "convert with astype")
    if not isinstance(x.shape, tuple) or not isinstance(wanted, tuple):
        rank = len(wanted) if isinstance(wanted, tuple) else wanted
        return TensorType(wanted if isinstance(wanted, tuple) else rank, x.dtype)
    own = x.shape[len(x.shape) - len(wanted) :]
    if len(wanted) > len(x.shape) or not all(
        equal(a, b) or equal(b, 1) for a, b in zip(own, wanted, strict=True)
    ):
        raise call.error(
            f"{type_text(x)} can't be summed to {shape_text(wanted)}",
            hint="each dim of the shape, counted from the last, must be x's or 1",
        )
    return TensorType(wanted, x.dtype)


def _infer_to(call: OpCall) -> Type:
    return _collapsed(call, tensor(call, 0), shape(call, 1).dims)


def _infer_like(call: OpCall) -> Type:
    return _collapsed(call, tensor(call, 0), tensor(call, 1).shape)


def _expand_collapse(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    x = args[0]
    assert isinstance(result, TensorType)
    if not isinstance(result.shape, tuple):
        what = "rank" if result.shape is None else "sizes (R.match_cast names them)"
        raise e.gap(f"a shape of unknown {what}")
    dims, wanted = e.shape_of(x), result.shape
    outer = len(dims) - len(wanted)
    over = [k for k in range(len(dims)) if k < outer]
    over += [outer + k for k, (a, b) in enumerate(zip(dims[outer:], wanted, strict=True)) if a != b]
    if over:
        x = e.op("sum", x, axis=tuple(over), keepdims=True)
    return e.op("reshape", x, wanted) if outer or not over else x


def _refer_collapse(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, target = array_arg(args), args[1]
    wanted = target.shape if isinstance(target, np.ndarray) else target
    dims = tuple(n for n in wanted if isinstance(n, int))
    outer = x.ndim - len(dims)
    over = (*range(outer), *(outer + k for k, n in enumerate(dims) if n == 1))
    wide = real(x) if x.dtype.kind == "f" else x
    return np.asarray(np.sum(wide, axis=over, dtype=wide.dtype)).reshape(dims).astype(x.dtype)


def _to_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    x = s.array((a, b, c))
    return [
        sample(_TO, (x, (b, c))),
        sample(_TO, (x, (a, 1, c))),
        sample(_TO, (s.array((a, b), "int32"), (1,))),
        sample(_TO, (x, (a, b, c))),
        sample(_TO, (x, ())),
    ]


def _like_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    x = s.array((a, b, c))
    return [
        sample(_LIKE, (x, s.array((b, c)))),
        sample(_LIKE, (x, s.array((a, 1, c), "int8"))),
        sample(_LIKE, (s.array((a, b), "float64"), s.array(()))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "std",
        _PARAMS,
        _infer_std,
        _refer_std,
        """The deviation over `axis` (all by default), the root of `R.variance` (R.std).

        It divides by the number of elements, as numpy does; torch divides by one less. Of integers
        it is a float64, as np.std.
        """,
        expand=_expand_std,
        samples=_std_samples,
    ),
    OpDef(
        "logsumexp",
        _PARAMS,
        _infer_float,
        _refer_logsumexp,
        """``log(sum(exp(x)))`` over `axis` (all by default), the largest one subtracted first.

        torch.logsumexp, ONNX ReduceLogSumExp.
        """,
        expand=_expand_logsumexp,
        samples=_samples,
    ),
    OpDef(
        "median",
        _PARAMS,
        _infer_median,
        _refer_median,
        """The middle element over `axis`, the lower one of two (R.median, torch.median).

        Where there is a NaN, the first of them. Over an axis without elements it is an error.
        `axis` is an int: ``(values, indices)``, the indices int64 along that axis; or several
        axes, or None for all of them: the values alone.
        """,
        expand=_expand_median,
        samples=_median_samples,
    ),
    OpDef(
        "collapse_sum_to",
        _TO,
        _infer_to,
        _refer_collapse,
        "x summed to a shape that broadcasts to x's: what undoes broadcasting in a gradient "
        "(R.collapse_sum_to).",
        expand=_expand_collapse,
        samples=_to_samples,
    ),
    OpDef(
        "collapse_sum_like",
        _LIKE,
        _infer_like,
        _refer_collapse,
        "`R.collapse_sum_to` the shape of `like`, another tensor of numbers (R.collapse_sum_like).",
        expand=_expand_collapse,
        samples=_like_samples,
    ),
)
