"""Operators that make tensors: of one value, ranges, and triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, ceildiv, dim_max
from unity.ir.dtype import FLOAT32, INT64, Array, DType
from unity.ir.prim_expr import PrimExpr, Select, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type

from .argument import shape, tensor
from .attribute import COUNTER, DTYPE, SIZE, SIZES
from .reduction.reduce import known
from .registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, dtype_attr
from .sampling import Sampler, sample

_FULL = (Param("shape", "shape"), Param("fill_value"), attr("dtype", DTYPE, None))
_FILLED = (Param("shape", "shape"), attr("dtype", DTYPE, FLOAT32))
_FULL_LIKE = (Param("x"), Param("fill_value"), attr("dtype", DTYPE, None))
_LIKE = (Param("x"), attr("dtype", DTYPE, None))
_ARANGE = (
    attr("start", COUNTER),
    attr("end", COUNTER, None),
    attr("step", COUNTER, 1),
    attr("dtype", DTYPE, None),
)
_TRIANGLE = (Param("x"), attr("k", SIZE, 0))
_DIMS = (attr("values", SIZES), attr("dtype", DTYPE, INT64))


def _fill_dtype(call: OpCall, value: TensorType, default: DType | None) -> DType | None:
    if value.ndim not in (0, None):
        raise call.error(f"'fill_value' must be a scalar, got rank {value.ndim}")
    return default if call.attrs["dtype"] is None else call.dtype()


def _infer_full(call: OpCall) -> Type:
    value = tensor(call, 1)
    return TensorType(shape(call, 0).dims, _fill_dtype(call, value, value.dtype))


def _infer_full_like(call: OpCall) -> Type:
    x = tensor(call, 0)
    return TensorType(x.shape, _fill_dtype(call, tensor(call, 1), x.dtype))


def _infer_like(call: OpCall) -> Type:
    x = tensor(call, 0)
    return TensorType(x.shape, x.dtype if call.attrs["dtype"] is None else call.dtype())


def _compute_full(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    dims, out = known(result)
    value = args[-1]
    assert isinstance(value, te.Tensor)
    return te.compute(dims, lambda *_: te.cast(value[()], out), "full")


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _extents(args: Sequence[RefArg]) -> tuple[int, ...]:
    """The shape argument, or the shape of the tensor standing for it."""
    first = args[0]
    found = first.shape if isinstance(first, np.ndarray) else first
    return tuple(n for n in found if isinstance(n, int))


def _refer_full(args: Sequence[RefArg], attrs: Attrs) -> Array:
    arrays = _arrays(args)
    own = arrays[0].dtype  # of the value, or of the tensor that the result is like
    kind = own if attrs["dtype"] is None else dtype_attr(attrs).numpy
    return np.full(_extents(args), arrays[-1].astype(kind), kind)


def _constant(
    value: int,
) -> tuple[
    Callable[[Sequence[ComputeArg], Attrs, Type], te.Tensor],
    Callable[[Sequence[RefArg], Attrs], Array],
]:
    def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        dims, out = known(result)
        return te.compute(dims, lambda *_: imm(value, out), "fill")

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        like = _arrays(args)
        kind = like[0].dtype if attrs["dtype"] is None else dtype_attr(attrs).numpy
        return np.full(_extents(args), value).astype(kind)

    return compute, refer


def _range_of(attrs: Attrs) -> tuple[Dim | float, Dim | float, Dim | float]:
    start, end, step = attrs["start"], attrs["end"], attrs["step"]
    if end is None:
        start, end = 0, start
    assert isinstance(start, int | float | SymDim)
    assert isinstance(end, int | float | SymDim)
    assert isinstance(step, int | float | SymDim)
    return start, end, step


def _infer_arange(call: OpCall) -> Type:
    for name in ("start", "end", "step"):
        value = call.attrs[name]
        if value is None and name == "end":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | SymDim):
            raise call.error(f"{name!r} must be a number or a dim, got {value!r}")
    start, end, step = _range_of(call.attrs)
    whole = not any(isinstance(v, float) for v in (start, end, step))
    kind = (INT64 if whole else FLOAT32) if call.attrs["dtype"] is None else call.dtype()
    if kind.kind == "bool":
        raise call.error("can't count in bool")
    if not isinstance(step, int | float) or step == 0:
        raise call.error(f"'step' must be a number other than 0, got {step!r}")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        for name, value in (("start", start), ("end", end), ("step", step)):
            if isinstance(value, float) and not math.isfinite(value):
                raise call.error(f"{name!r} must be finite, got {value}")
        if isinstance(start, SymDim) or isinstance(end, SymDim):
            raise call.error("a range of floats needs known bounds", "count in integers, then cast")
        return TensorType((max(0, math.ceil((end - start) / step)),), kind)
    length = ceildiv(end - start, step) if step > 0 else ceildiv(start - end, -step)
    return TensorType((dim_max(length, 0),), kind)


def _compute_arange(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    dims, out = known(result)
    start, _, step = _range_of(attrs)
    if isinstance(start, float) or isinstance(step, float):
        assert isinstance(start, int | float)
        assert isinstance(step, int | float)
        wide = out if out.is_float and out.bits >= 32 else FLOAT32
        first, by = imm(start, wide), imm(step, wide)
        return te.compute(dims, lambda i: te.cast(first + te.cast(i, wide) * by, out), "arange")
    begin, stride = to_prim_expr(start), to_prim_expr(step)
    return te.compute(dims, lambda i: te.cast(begin + i * stride, out), "arange")


def _refer_arange(args: Sequence[RefArg], attrs: Attrs) -> Array:
    start, end, step = _range_of(attrs)
    assert isinstance(start, int | float)
    assert isinstance(end, int | float)
    assert isinstance(step, int | float)
    whole = not any(isinstance(v, float) for v in (start, end, step))
    kind = (INT64 if whole else FLOAT32) if attrs["dtype"] is None else dtype_attr(attrs)
    count = max(0, math.ceil((end - start) / step))
    return (start + np.arange(count) * step).astype(kind.numpy)


def _infer_triangle(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is not None and x.ndim < 2:
        raise call.error(f"'x' must have at least 2 axes, got {x.ndim}")
    k = call.attrs["k"]
    if isinstance(k, bool) or not isinstance(k, int | SymDim):
        raise call.error(f"'k' must be an int or a dim, got {k!r}")
    return x


def _triangle(name: str, lower: bool, reference: Callable[..., Array], doc: str) -> OpDef:
    def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        dims, out = known(result)
        (x,) = args
        k = attrs["k"]
        assert isinstance(x, te.Tensor)
        assert isinstance(k, int | SymDim)
        diagonal = to_prim_expr(k)

        def element(*i: PrimExpr) -> PrimExpr:
            edge = i[-2] + diagonal
            keep = i[-1] <= edge if lower else i[-1] >= edge
            return Select(keep, x[i], imm(0, out))

        return te.compute(dims, element, name)

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        (x,) = _arrays(args)
        return np.asarray(reference(x, attrs["k"])).astype(x.dtype)

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        return [
            sample(_TRIANGLE, (s.array((4, 4)),)),
            sample(_TRIANGLE, (s.array((2, 3, 5), "int32"),), k=1),
            sample(_TRIANGLE, (s.array((5, 3), "bool"),), k=-2),
            sample(_TRIANGLE, (s.array((0, 3)),)),
        ]

    return OpDef(
        name, _TRIANGLE, _infer_triangle, refer, doc,
        compute=compute, pattern="injective", samples=samples,
    )  # fmt: skip


def _dim_values(attrs: Attrs) -> tuple[Dim, ...]:
    values = attrs["values"]
    items = values if isinstance(values, tuple) else (values,)
    return tuple(v for v in items if isinstance(v, int | SymDim))


def _infer_dims(call: OpCall) -> Type:
    values = call.attrs["values"]
    items = values if isinstance(values, tuple) else (values,)
    if not all(isinstance(v, int | SymDim) and not isinstance(v, bool) for v in items):
        raise call.error(f"'values' must be dims, got {values!r}")
    return TensorType((len(items),) if isinstance(values, tuple) else (), call.dtype())


def _compute_dims(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    dims, out = known(result)
    values = [te.cast(to_prim_expr(v), out) for v in _dim_values(attrs)]

    def element(*i: PrimExpr) -> PrimExpr:
        if not values:
            return imm(0, out)
        return te.one_of(len(values), values.__getitem__, lambda n: i[0] < n)

    return te.compute(dims, element, "dims")


def _refer_dims(args: Sequence[RefArg], attrs: Attrs) -> Array:
    values = attrs["values"]
    return np.asarray(values if isinstance(values, int) else list(_dim_values(attrs))).astype(
        dtype_attr(attrs).numpy
    )


def _full_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_FULL, ((2, 3), s.array((), kind)), dtype=to)
        for kind, to in (("float32", None), ("int64", None), ("float32", DType("float16")),
                         ("bool", None), ("int32", DType("float32")))
    ] + [sample(_FULL, ((3, 0), s.array(()))), sample(_FULL, ((), s.array(())))]  # fmt: skip


def _filled_samples(seed: int) -> Sequence[Sample]:
    return [
        sample(_FILLED, (dims,), dtype=DType(kind))
        for dims, kind in (((2, 3), "float32"), ((0,), "int64"), ((), "bool"), ((4,), "bfloat16"))
    ]


def _like_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_LIKE, (s.array((2, 3)),)),
        sample(_LIKE, (s.array((4,), "int32"),), dtype=DType("float64")),
        sample(_LIKE, (s.array((0, 2), "bool"),)),
    ]


def _full_like_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_FULL_LIKE, (s.array((2, 3)), s.array(()))),
        sample(_FULL_LIKE, (s.array((2, 0), "int32"), s.array((), "int32"))),
        sample(_FULL_LIKE, (s.array((3,), "int32"), s.array(())), dtype=DType("float16")),
    ]


def _arange_samples(seed: int) -> Sequence[Sample]:
    return [
        sample(_ARANGE, (), start=5),
        sample(_ARANGE, (), start=2, end=11, step=3),
        sample(_ARANGE, (), start=7, end=-2, step=-2, dtype=DType("int32")),
        sample(_ARANGE, (), start=4, end=1),
        sample(_ARANGE, (), start=0.5, end=3.0, step=0.75),
        sample(_ARANGE, (), start=3, dtype=FLOAT32),
    ]


def _dims_samples(seed: int) -> Sequence[Sample]:
    return [
        sample(_DIMS, (), values=(3, 1, 4)),
        sample(_DIMS, (), values=7),
        sample(_DIMS, (), values=(), dtype=DType("int32")),
        sample(_DIMS, (), values=(5,), dtype=FLOAT32),
    ]


def _filled(name: str, value: int, doc: str) -> tuple[OpDef, OpDef]:
    compute, refer = _constant(value)
    return (
        OpDef(
            name,
            _FILLED,
            lambda call: TensorType(shape(call, 0).dims, call.dtype()),
            refer,
            f"{doc} Its `shape` may hold dims; `dtype` is any, bool included.",
            compute=compute,
            pattern="elementwise",
            samples=_filled_samples,
        ),
        OpDef(
            f"{name}_like",
            _LIKE,
            _infer_like,
            refer,
            f"{doc} Shaped like `x`, and of its dtype unless one is given.",
            compute=compute,
            pattern="elementwise",
            samples=_like_samples,
        ),
    )


OPS: tuple[OpDef, ...] = (
    OpDef(
        "full",
        _FULL,
        _infer_full,
        _refer_full,
        "A tensor of one value, cast to `dtype` (None: the value's own).",
        compute=_compute_full,
        pattern="elementwise",
        samples=_full_samples,
    ),
    OpDef(
        "full_like",
        _FULL_LIKE,
        _infer_full_like,
        _refer_full,
        "A tensor of one value shaped like `x`, of its dtype unless one is given.",
        compute=_compute_full,
        pattern="elementwise",
        samples=_full_like_samples,
    ),
    *_filled("zeros", 0, "A tensor of zeros."),
    *_filled("ones", 1, "A tensor of ones."),
    OpDef(
        "arange",
        _ARANGE,
        _infer_arange,
        _refer_arange,
        """``start, start + step, ...`` up to but not including `end`; ``arange(n)`` starts at 0.

        Bounds may be dims: the length is ``max(0, ceil((end - start) / step))``. The dtype is
        int64, or float32 if a bound is a float (R.arange).
        """,
        compute=_compute_arange,
        pattern="elementwise",
        samples=_arange_samples,
    ),
    _triangle("tril", True, np.tril, "The lower triangle ``j <= i + k`` of the last two axes."),
    _triangle("triu", False, np.triu, "The upper triangle ``j >= i + k`` of the last two axes."),
    OpDef(
        "dims",
        _DIMS,
        _infer_dims,
        _refer_dims,
        "A tensor of sizes: rank 0 of one dim, rank 1 of a tuple. What ``shape_to_tensor`` of known"
        " dims becomes when it must be computed.",
        compute=_compute_dims,
        pattern="elementwise",
        samples=_dims_samples,
    ),
)
