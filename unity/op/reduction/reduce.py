"""Reductions over axes: sum, prod, max, min, mean, variance, any, all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array, DType, dtype
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Shape, TensorType, Type
from unity.op.accumulate import exact, mean_dtype, real, widened, working_dtype
from unity.op.argument import axes, tensor
from unity.op.attribute import FLAG, INTS
from unity.op.elementwise.unary import Accepts, accepts_dtype
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    axes_attr,
    flag_attr,
)
from unity.op.sampling import Sampler, sample

ResultDType: TypeAlias = Callable[[DType], DType]
"""The dtype of a result, of that of the operand."""
_PARAMS = (Param("x"), attr("axis", INTS, None), attr("keepdims", FLAG, False))
_CASES: tuple[tuple[tuple[int, ...], object, bool], ...] = (
    ((3, 4), None, False),
    ((3, 4, 2), (1,), False),
    ((3, 4, 2), (0, 2), True),
    ((2, 3), -1, True),
    ((5,), (0,), False),
    ((), None, False),
    ((2, 0, 3), (0,), False),
    ((2, 0, 3), (1,), False),
    ((2, 3), (), False),
)


def reduced_shape(shape: Shape, over: Sequence[int], keepdims: bool) -> Shape:
    """The shape left after reducing some axes."""
    if keepdims:
        return tuple(1 if i in over else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in over)


def infer_reduced(call: OpCall, x: TensorType, kind: DType | None) -> Type:
    """The type of `x` with the axes of the attribute ``axis`` reduced."""
    keepdims = call.flag("keepdims")
    if x.ndim is None:
        return TensorType(None, kind)
    over = axes(call, call.attrs["axis"], x.ndim, "axis")
    if not isinstance(x.shape, tuple):
        return TensorType(x.ndim if keepdims else x.ndim - len(over), kind)
    return TensorType(reduced_shape(x.shape, over, keepdims), kind)


class Reduction:
    """The loops of a reduction: kept axes from the output's index, the others reduce axes."""

    def __init__(self, x: te.Tensor, attrs: Attrs) -> None:
        self.x = x
        self.over = axes_attr(attrs, "axis", x.ndim)
        self.keepdims = flag_attr(attrs, "keepdims")

    def axes(self) -> tuple[te.ReduceAxis, ...]:
        """New reduce axes, one for each reduced dim."""
        return tuple(te.reduce_axis(self.x.shape[i], f"k{i}") for i in self.over)

    def index(
        self, out: Sequence[PrimExpr], reduced: Sequence[te.ReduceAxis]
    ) -> tuple[PrimExpr, ...]:
        """The index into `x` of an output's index and the reduce axes."""
        by_axis = {axis: r.var for axis, r in zip(self.over, reduced, strict=True)}
        kept = [i for i in range(self.x.ndim) if i not in by_axis]
        places = kept if self.keepdims else range(len(kept))
        outer = dict(zip(kept, (out[p] for p in places), strict=True))
        return tuple(by_axis[i] if i in by_axis else outer[i] for i in range(self.x.ndim))


def fold(
    r: Reduction,
    shape: Shape,
    how: str,
    element: Callable[[tuple[PrimExpr, ...], tuple[PrimExpr, ...]], PrimExpr],
    name: str,
) -> te.Tensor:
    """Reduce ``element(index into x, index of output)`` with the named combiner."""
    reduced = r.axes()

    def value(*out: PrimExpr) -> PrimExpr | te.Reduce:
        item = element(r.index(out, reduced), out)
        return te.reduce(how, (item,), reduced) if reduced else item

    return te.compute(shape, value, name)


def finish(t: te.Tensor, out: DType) -> te.Tensor:
    """The accumulated tensor in its result's dtype."""
    return t if t.dtype == out else te.compute(t.shape, lambda *i: te.cast(t[i], out), "cast")


def tensor_of(args: Sequence[ComputeArg]) -> te.Tensor:
    """The one tensor a compute rule got."""
    (x,) = args
    assert isinstance(x, te.Tensor)
    return x


def known(result: Type) -> tuple[Shape, DType]:
    """Shape and dtype of a result that a compute rule is asked for."""
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    assert result.dtype is not None
    return result.shape, result.dtype


def _rule(accepts: Accepts, result: ResultDType) -> Callable[[OpCall], Type]:
    def infer(call: OpCall) -> Type:
        x = tensor(call, 0)
        if x.dtype is not None and not accepts_dtype(accepts, x.dtype):
            wanted = "numbers" if accepts == "number" else f"of {accepts} dtype"
            raise call.error(f"'x' must be {wanted}, got {x.dtype}", "convert with astype")
        return infer_reduced(call, x, None if x.dtype is None else result(x.dtype))

    return infer


def _op(
    name: str,
    reference: Callable[..., Array],
    compute: Callable[[Sequence[ComputeArg], Attrs, Type], te.Tensor],
    accepts: Accepts,
    doc: str,
    tolerance: float = 1e-5,
    result: ResultDType = lambda kind: kind,
) -> OpDef:
    kinds = {
        "number": ("float32", "int32", "float16", "int64", "uint8", "float64"),
        "float": ("float32", "float64", "float16"),
        "bool": ("bool",),
        "int": ("int32",),
    }[accepts]

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        return [
            sample(_PARAMS, (s.array(shape, kind),), axis=axis, keepdims=keepdims)
            for i, (shape, axis, keepdims) in enumerate(_CASES)
            for kind in dict.fromkeys((kinds[0], kinds[i % len(kinds)]))
        ]

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        (x,) = args
        assert isinstance(x, np.ndarray)
        over = axes_attr(attrs, "axis", x.ndim)
        with np.errstate(all="ignore"):
            found = reference(exact(x), axis=over, keepdims=flag_attr(attrs, "keepdims"))
        return np.asarray(found).astype(result(dtype(x.dtype)).numpy)

    return OpDef(
        name,
        _PARAMS,
        _rule(accepts, result),
        refer,
        doc,
        compute=compute,
        pattern="reduction",
        samples=samples,
        tolerance=tolerance,
    )


def _fold_of(how: str) -> Callable[[Sequence[ComputeArg], Attrs, Type], te.Tensor]:
    def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        shape, out = known(result)
        x = tensor_of(args)
        return finish(fold(Reduction(x, attrs), shape, how, lambda i, o: widened(x[i]), how), out)

    return compute


def _count(r: Reduction, kind: DType) -> PrimExpr:
    """How many elements each output joins."""
    count: PrimExpr | int = 1
    for axis in r.over:
        count = r.x.shape[axis] * count
    return te.cast(count, kind)


def _mean(x: te.Tensor, r: Reduction, shape: Shape, wide: DType) -> te.Tensor:
    total = fold(r, shape, "sum", lambda i, o: te.cast(x[i], wide), "total")
    return te.compute(shape, lambda *i: total[i] / _count(r, wide), "mean")


def _compute_mean(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    shape, out = known(result)
    x = tensor_of(args)
    return finish(_mean(x, Reduction(x, attrs), shape, working_dtype(out)), out)


def _compute_variance(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    shape, out = known(result)
    x = tensor_of(args)
    r, wide = Reduction(x, attrs), working_dtype(out)
    mean = _mean(x, r, shape, wide)

    def squared(i: tuple[PrimExpr, ...], o: tuple[PrimExpr, ...]) -> PrimExpr:
        centred = te.cast(x[i], wide) - mean[o]
        return centred * centred

    total = fold(r, shape, "sum", squared, "squares")
    return finish(te.compute(shape, lambda *i: total[i] / _count(r, wide), "variance"), out)


def _ref_mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    count = np.prod([x.shape[i] for i in axis], dtype=np.float64)
    return np.asarray(np.divide(np.sum(real(x), axis=axis, keepdims=keepdims), count))


def _ref_variance(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    centred = np.subtract(real(x), _ref_mean(x, axis, True))
    return _ref_mean(np.square(centred), axis, keepdims)


def _ref_any(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.any(x, axis=axis, keepdims=keepdims))


def _ref_all(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.all(x, axis=axis, keepdims=keepdims))


def _ref_extreme(
    which: Callable[..., Array], lowest: bool
) -> Callable[[Array, tuple[int, ...], bool], Array]:
    """Numpy's max or min, with the identity where there is nothing to reduce."""

    def refer(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        kind = dtype(x.dtype)
        start = te.min_value(kind) if lowest else te.max_value(kind)
        return np.asarray(which(x, axis=axis, keepdims=keepdims, initial=start.value))

    return refer


_AXES = "over `axis` (None: all); `keepdims` leaves the reduced axes as 1"
OPS: tuple[OpDef, ...] = (
    _op("sum", np.sum, _fold_of("sum"), "number", f"The sum {_AXES}; integers wrap."),
    _op("prod", np.prod, _fold_of("prod"), "number", f"The product {_AXES}; integers wrap.", 1e-4),
    _op(
        "max",
        _ref_extreme(np.max, True),
        _fold_of("max"),
        "number",
        f"The largest element {_AXES}; NaN if there is one, the least value if there is none.",
    ),
    _op(
        "min",
        _ref_extreme(np.min, False),
        _fold_of("min"),
        "number",
        f"The smallest element {_AXES}; NaN if there is one, the greatest value if there is none.",
    ),
    _op(
        "mean",
        _ref_mean,
        _compute_mean,
        "number",
        f"The mean {_AXES}; NaN of nothing; of integers a float64, as np.mean.",
        result=mean_dtype,
    ),
    _op(
        "variance",
        _ref_variance,
        _compute_variance,
        "number",
        f"Mean squared deviation {_AXES}; of integers a float64, as np.var.",
        result=mean_dtype,
    ),
    _op("any", _ref_any, _fold_of("any"), "bool", f"Whether any element is true, {_AXES}."),
    _op("all", _ref_all, _fold_of("all"), "bool", f"Whether every element is true, {_AXES}."),
)
