"""Mean and variance over axes of a tensor, and the arguments of norms: what the norms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.convert import to_prim_expr
from unity.ir.dims import product
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType

from .accumulate import Real, real, widened, working_dtype
from .argument import float_tensor, require_equal, type_text
from .registry import ComputeArg, RefArg, Site
from .window import dims_of


def epsilon(attrs: Attrs) -> float:
    """What is added to a variance."""
    value = attrs["epsilon"]
    assert isinstance(value, int | float), value
    return float(value)


def require_channels(site: Site, x: TensorType, along: int, which: Sequence[int]) -> None:
    """Check that the arguments `which` are vectors over an axis of x.

    Raises:
        UnityError: One is not.
    """
    for index in which:
        v = float_tensor(site, index)
        if v.ndim not in (1, None):
            name = site.op.params[index].name
            raise site.error(f"{name!r} must have rank 1, got {type_text(v)}")
        if isinstance(v.shape, tuple) and isinstance(x.shape, tuple):
            name = site.op.params[index].name
            require_equal(site, v.shape[0], x.shape[along], f"{name!r} along axis {along}")


def arrays(args: Sequence[RefArg]) -> list[Array]:
    """The arguments of a reference, all of them arrays."""
    found: list[Array] = []
    for a in args:
        assert isinstance(a, np.ndarray)
        found.append(a)
    return found


def _moments(
    x: te.Tensor, over: Sequence[int], *, centred: bool = True
) -> tuple[te.Tensor | None, te.Tensor, Callable[[Sequence[PrimExpr]], tuple[PrimExpr, ...]]]:
    """The mean (None unless `centred`) and mean square deviation from it over some axes.

    The third result takes an index of x to one of theirs.
    """
    wide = working_dtype(x.dtype)
    kept = [d for d in range(x.ndim) if d not in over]
    shape = [x.shape[d] for d in kept]
    dims = dims_of(x)
    count = te.cast(to_prim_expr(product(dims[d] for d in over)), wide)

    def index(outer: Sequence[PrimExpr], k: Sequence[te.ReduceAxis]) -> tuple[PrimExpr, ...]:
        where = dict(zip(kept, outer, strict=True)) | {
            d: t.var for d, t in zip(over, k, strict=True)
        }
        return tuple(where[d] for d in range(x.ndim))

    def reduce_axes() -> list[te.ReduceAxis]:
        return [te.reduce_axis(x.shape[d], f"k{d}") for d in over]

    def pick(i: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return tuple(i[d] for d in kept)

    mean: te.Tensor | None = None
    if centred:
        k = reduce_axes()
        total = te.compute(shape, lambda *i: te.sum(widened(x[index(i, k)]), axis=k), "total")
        mean = te.compute(shape, lambda *i: total[i] / count, "mean")
    k2 = reduce_axes()

    def square(*i: PrimExpr) -> te.Reduce:
        value = widened(x[index(i, k2)])
        if mean is not None:
            value = value - mean[i]
        return te.sum(value * value, axis=k2)

    squares = te.compute(shape, square, "squares")
    variance = te.compute(shape, lambda *i: squares[i] / count, "variance")
    return mean, variance, pick


def normalized(
    x: te.Tensor,
    over: Sequence[int],
    eps: float,
    affine: Callable[[PrimExpr, tuple[PrimExpr, ...]], PrimExpr],
    *,
    centred: bool = True,
) -> te.Tensor:
    """``affine((x - mean) / sqrt(variance + eps), index)``."""
    mean, variance, pick = _moments(x, over, centred=centred)
    scale = te.compute(variance.shape, lambda *i: te.rsqrt(variance[i] + eps), "scale")

    def element(*i: PrimExpr) -> PrimExpr:
        row = pick(i)
        value = widened(x[i])
        if mean is not None:
            value = value - mean[row]
        return te.cast(affine(value * scale[row], i), x.dtype)

    return te.compute(x.shape, element, "normalized")


def normalize_reference(
    x: Array, over: tuple[int, ...], eps: float, *, centred: bool = True
) -> Real:
    """The same in numpy, without the affine part."""
    wide = real(x)
    if x.size == 0:
        return wide
    if centred:
        wide = wide - wide.mean(axis=over, keepdims=True)
    squares = np.asarray((wide * wide).mean(axis=over, keepdims=True), np.float64)
    return wide / np.sqrt(squares + eps)


def affine_over(
    vectors: Sequence[ComputeArg], over: Sequence[int]
) -> Callable[[PrimExpr, tuple[PrimExpr, ...]], PrimExpr]:
    """``value * gamma + beta`` (or the first alone), vectors over some axes of an index."""

    def affine(value: PrimExpr, i: tuple[PrimExpr, ...]) -> PrimExpr:
        at = tuple(i[d] for d in over)
        for position, v in enumerate(vectors):
            assert isinstance(v, te.Tensor)
            term = te.cast(v[at], value.dtype)
            value = value * term if position == 0 else value + term
        return value

    return affine


def spread(v: Array, over: Sequence[int], ndim: int) -> Real:
    """An array over some axes of another, shaped to broadcast with that."""
    order = sorted(range(len(over)), key=lambda position: over[position])
    shape = [1] * ndim
    for position, d in enumerate(over):
        shape[d] = v.shape[position]
    return real(v).transpose(order).reshape(shape)
