"""Mean and variance over axes of a tensor, and the arguments of norms: what the norms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import floordiv
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType
from unity.op.accumulate import Real, real, widened, working_dtype
from unity.op.argument import float_tensor, require_equal, type_text
from unity.op.registry import ComputeArg, OpCall, RefArg
from unity.op.window import dims_of

Index: TypeAlias = tuple[PrimExpr, ...]


def epsilon(attrs: Attrs) -> float:
    """What is added to a variance."""
    value = attrs["epsilon"]
    assert isinstance(value, int | float), value
    return float(value)


def require_channels(call: OpCall, x: TensorType, along: int, which: Sequence[int]) -> None:
    """Check that the arguments `which` are vectors over an axis of x.

    Raises:
        UnityError: One is not.
    """
    for index in which:
        v = float_tensor(call, index)
        if v.ndim not in (1, None):
            name = call.op.params[index].name
            raise call.error(f"{name!r} must have rank 1, got {type_text(v)}")
        if isinstance(v.shape, tuple) and isinstance(x.shape, tuple):
            name = call.op.params[index].name
            require_equal(call, v.shape[0], x.shape[along], f"{name!r} along axis {along}")


def arrays(args: Sequence[RefArg]) -> list[Array]:
    """The arguments of a reference, all of them arrays."""
    found: list[Array] = []
    for a in args:
        assert isinstance(a, np.ndarray)
        found.append(a)
    return found


@dataclass(frozen=True, slots=True)
class Parts:
    """How a tensor falls into parts, each of which has its own statistics.

    Attributes:
        shape: The extents of the statistics.
        inside: The extents of a part.
        index: (which part, where in it) -> the tensor's index.
        part: The tensor's index -> which part.
    """

    shape: tuple[PrimExpr, ...]
    inside: tuple[PrimExpr, ...]
    index: Callable[[Index, Index], Index]
    part: Callable[[Index], Index]


def parts_over(x: te.Tensor, over: Sequence[int]) -> Parts:
    """One part for each index of the other axes."""
    kept = [d for d in range(x.ndim) if d not in over]

    def index(part: Index, inside: Index) -> Index:
        where = dict(zip((*kept, *over), (*part, *inside), strict=True))
        return tuple(where[d] for d in range(x.ndim))

    return Parts(
        tuple(x.shape[d] for d in kept),
        tuple(x.shape[d] for d in over),
        index,
        lambda i: tuple(i[d] for d in kept),
    )


def parts_of_groups(x: te.Tensor, along: int, groups: int) -> Parts:
    """One part for each index of the first axis and each of some groups along another."""
    size = to_prim_expr(floordiv(dims_of(x)[along], groups))
    rest = [d for d in range(1, x.ndim) if d != along]

    def index(part: Index, inside: Index) -> Index:
        n, group = part
        channel = group * size + inside[0]
        where = dict(zip((0, along, *rest), (n, channel, *inside[1:]), strict=True))
        return tuple(where[d] for d in range(x.ndim))

    return Parts(
        (x.shape[0], imm(groups)),
        (size, *(x.shape[d] for d in rest)),
        index,
        lambda i: (i[0], i[along] // size),
    )


def _mean(
    x: te.Tensor, parts: Parts, value: Callable[[PrimExpr, Index], PrimExpr], name: str
) -> te.Tensor:
    """The mean over each part of ``value(element, which part)``."""
    wide = working_dtype(x.dtype)
    k = [te.reduce_axis(extent, f"k{d}") for d, extent in enumerate(parts.inside)]
    inside = tuple(axis.var for axis in k)

    def total(*part: PrimExpr) -> te.Reduce:
        return te.sum(value(widened(x[parts.index(part, inside)]), part), axis=k)

    summed = te.compute(parts.shape, total, f"{name}_sum")
    count: PrimExpr = imm(1)
    for extent in parts.inside:
        count = count * extent
    return te.compute(parts.shape, lambda *part: summed[part] / te.cast(count, wide), name)


def normalized(
    x: te.Tensor,
    parts: Parts,
    eps: float,
    affine: Callable[[PrimExpr, Index], PrimExpr],
    *,
    centred: bool = True,
) -> te.Tensor:
    """``affine((x - mean) / sqrt(variance + eps), index)``.

    The mean counts as 0 unless `centred`.
    """
    mean = _mean(x, parts, lambda value, _: value, "mean") if centred else None

    def from_mean(value: PrimExpr, part: Index) -> PrimExpr:
        return value if mean is None else value - mean[part]

    def square(value: PrimExpr, part: Index) -> PrimExpr:
        distance = from_mean(value, part)
        return distance * distance

    variance = _mean(x, parts, square, "variance")
    scale = te.compute(parts.shape, lambda *part: te.rsqrt(variance[part] + eps), "scale")

    def element(*i: PrimExpr) -> PrimExpr:
        part = parts.part(i)
        return te.cast(affine(from_mean(widened(x[i]), part) * scale[part], i), x.dtype)

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
