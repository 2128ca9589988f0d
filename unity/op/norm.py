"""Normalization with given statistics (batch_norm), over axes (layer, rms, group, instance), and lrn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.convert import to_prim_expr
from unity.ir.dims import Dim, dim_text, equal, floordiv, floormod, product
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type

from .accumulate import exact, rounded, widened, working_dtype
from .argument import axes, axis, common_dtype, float_tensor, has, require_equal, type_text
from .registry import ComputeArg, OpDef, Param, RefArg, Sample, Site, int_attr, ints_attr
from .sampling import Sampler, sample
from .window import dims_of


def epsilon(attrs: Attrs) -> float:
    """What is added to a variance."""
    value = attrs["epsilon"]
    assert isinstance(value, int | float), value
    return float(value)


# batch_norm

_BATCH = (
    Param("x"),
    Param("gamma"),
    Param("beta"),
    Param("mean"),
    Param("variance"),
    Param("axis", "attr", 1),
    Param("epsilon", "attr", 1e-5),
)


def _channels(site: Site, x: TensorType, along: int, which: Sequence[int]) -> None:
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


def _batch_infer(site: Site) -> Type:
    x = float_tensor(site, 0)
    common_dtype(site, (x, float_tensor(site, 1), float_tensor(site, 2)))
    if x.ndim is not None:
        along = axis(site, site.attrs["axis"], x.ndim)
        _channels(site, x, along, range(1, 5))
    return x


def _batch_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, gamma, beta, mean, variance = args
    assert isinstance(x, te.Tensor) and isinstance(gamma, te.Tensor)
    assert isinstance(beta, te.Tensor) and isinstance(mean, te.Tensor)
    assert isinstance(variance, te.Tensor)
    along, eps = int_attr(attrs, "axis") % x.ndim, epsilon(attrs)
    wide = working_dtype(x.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        c = i[along]
        scale = te.cast(gamma[c], wide) * te.rsqrt(te.cast(variance[c], wide) + eps)
        shift = te.cast(beta[c], wide) - te.cast(mean[c], wide) * scale
        return te.cast(te.cast(x[i], wide) * scale + shift, x.dtype)

    return te.compute(x.shape, element, "batch_norm")


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    found: list[Array] = []
    for a in args:
        assert isinstance(a, np.ndarray)
        found.append(a)
    return found


def _batch_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, *vectors = _arrays(args)
    shape = [1] * x.ndim
    shape[int_attr(attrs, "axis")] = -1
    gamma, beta, mean, variance = (exact(v).reshape(shape) for v in vectors)
    return rounded((exact(x) - mean) / np.sqrt(variance + epsilon(attrs)) * gamma + beta, x)


def _batch_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def call(shape: tuple[int, ...], along: int = 1, kind: str = "float32") -> Sample:
        c = (shape[along],)
        vectors = [s.array(c, kind) for _ in range(3)] + [s.array(c, kind, 0.1, 4)]
        return sample(_BATCH, (s.array(shape, kind), *vectors), axis=along)

    n, c, h, w = s.shape(4)
    return [
        call((n, c, h, w)),
        call((n, c), kind="float64"),
        call((n, h, c), along=-1, kind="float16"),
        call((0, c, h)),
    ]


# statistics over axes


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
        total = te.compute(
            shape, lambda *i: te.sum(widened(x[index(i, k)]), axis=k), "total"
        )
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


def _over_axes(
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


def _normalize_reference(
    x: Array, over: tuple[int, ...], eps: float, *, centred: bool = True
) -> Array:
    wide = exact(x)
    if x.size == 0:
        return wide
    if centred:
        wide = wide - wide.mean(axis=over, keepdims=True)
    return np.asarray(wide / np.sqrt((wide * wide).mean(axis=over, keepdims=True) + eps))


# layer_norm, rms_norm

_LAYER = (
    Param("x"),
    Param("gamma"),
    Param("beta", default=None),
    Param("axes", "attr", -1),
    Param("epsilon", "attr", 1e-5),
)
_RMS = (Param("x"), Param("weight"), Param("axes", "attr", -1), Param("epsilon", "attr", 1e-5))


def _layer_infer(site: Site) -> Type:
    x = float_tensor(site, 0)
    affine = [float_tensor(site, i) for i in range(1, len(site.args))]
    common_dtype(site, (x, *affine))
    if x.ndim is None:
        return x
    over = axes(site, site.attrs["axes"], x.ndim)
    for i, v in enumerate(affine, 1):
        name = site.op.params[i].name
        if v.ndim is not None and v.ndim != len(over):
            raise site.error(
                f"{name!r} must have rank {len(over)}, one for each of the axes {over}, "
                f"got {type_text(v)}"
            )
        if isinstance(v.shape, tuple) and isinstance(x.shape, tuple):
            for d, extent in zip(over, v.shape, strict=True):
                require_equal(site, extent, x.shape[d], f"{name!r} along axis {d}")
    return x


def _normalized_axes(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    given = attrs["axes"]
    numbers = (given,) if isinstance(given, int) else ints_attr(attrs, "axes")
    return tuple(n % ndim for n in numbers)


def _affine_over(
    vectors: Sequence[ComputeArg], over: Sequence[int]
) -> Callable[[PrimExpr, tuple[PrimExpr, ...]], PrimExpr]:
    def affine(value: PrimExpr, i: tuple[PrimExpr, ...]) -> PrimExpr:
        at = tuple(i[d] for d in over)
        for position, v in enumerate(vectors):
            assert isinstance(v, te.Tensor)
            term = te.cast(v[at], value.dtype)
            value = value * term if position == 0 else value + term
        return value

    return affine


def _layer_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    over = _normalized_axes(attrs, x.ndim)
    return _over_axes(x, over, epsilon(attrs), _affine_over(vectors, over))


def _rms_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    over = _normalized_axes(attrs, x.ndim)
    return _over_axes(x, over, epsilon(attrs), _affine_over(vectors, over), centred=False)


def _spread(v: Array, over: Sequence[int], ndim: int) -> Array:
    """An array over some axes of another, shaped to broadcast with that."""
    order = sorted(range(len(over)), key=lambda position: over[position])
    shape = [1] * ndim
    for position, d in enumerate(over):
        shape[d] = v.shape[position]
    return exact(v).transpose(order).reshape(shape)


def _rows_reference(args: Sequence[RefArg], attrs: Attrs, *, centred: bool) -> Array:
    x, *vectors = _arrays(args)
    over = _normalized_axes(attrs, x.ndim)
    result = _normalize_reference(x, over, epsilon(attrs), centred=centred)
    for position, v in enumerate(vectors):
        term = _spread(v, over, x.ndim)
        result = result * term if position == 0 else result + term
    return rounded(result, x)


def _layer_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2)
    c = int(s.rng.integers(6, 20))

    def call(
        shape: tuple[int, ...], over: tuple[int, ...], kind: str = "float32", count: int = 2
    ) -> Sample:
        inner = tuple(shape[d] for d in over)
        vectors = [s.array(inner, kind) for _ in range(count)]
        return sample(_LAYER, (s.array(shape, kind), *vectors), axes=over)

    return [
        call((a, c), (-1,)),
        call((a, b, c), (-1,), count=1),
        call((a, b, c), (1, 2)),
        call((a, c, b), (2, 1), "float64"),
        call((c, b), (0,)),
        call((a, 17), (-1,), "float16"),
        call((0, c), (-1,)),
    ]


def _rms_samples(seed: int) -> Sequence[Sample]:
    return [
        sample(_RMS, s.args[:2], axes=s.attrs["axes"]) for s in _layer_samples(seed)
    ]


# group_norm, instance_norm

_INSTANCE = (
    Param("x"),
    Param("gamma"),
    Param("beta"),
    Param("channel_axis", "attr", 1),
    Param("epsilon", "attr", 1e-5),
)
_GROUP = (*_INSTANCE[:3], Param("num_groups", "attr"), *_INSTANCE[3:])


def _instance_infer(site: Site) -> Type:
    x = float_tensor(site, 0)
    common_dtype(site, (x, float_tensor(site, 1), float_tensor(site, 2)))
    if x.ndim is None:
        return x
    if x.ndim < 2:
        raise site.error(f"'x' must have rank 2 or more, got {type_text(x)}")
    along = axis(site, site.attrs["channel_axis"], x.ndim, "channel_axis")
    if along == 0:
        raise site.error("channel_axis is 0, which is the batch's")
    _channels(site, x, along, (1, 2))
    return x


def _group_infer(site: Site) -> Type:
    x = _instance_infer(site)
    groups = site.attrs["num_groups"]
    if not isinstance(groups, int) or groups < 1:
        raise site.error(f"num_groups must be a positive int, got {groups!r}")
    if isinstance(x, TensorType) and isinstance(x.shape, tuple):
        channels = x.shape[axis(site, site.attrs["channel_axis"], len(x.shape))]
        if not equal(floormod(channels, groups), 0):
            raise site.error(
                f"the {dim_text(channels)} channels don't provably divide into {groups} groups"
            )
    return x


def _instance_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    along = int_attr(attrs, "channel_axis") % x.ndim
    over = [d for d in range(1, x.ndim) if d != along]
    return _over_axes(x, over, epsilon(attrs), _affine_over(vectors, (along,)))


def _group_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    """The channels split into (group, channel in group), an instance norm, and joined again."""
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    along, groups = int_attr(attrs, "channel_axis") % x.ndim, int_attr(attrs, "num_groups")
    per_group = floordiv(dims_of(x)[along], groups)
    size = to_prim_expr(per_group)
    shape: list[Dim | PrimExpr] = [*x.shape[:along], groups, per_group, *x.shape[along + 1 :]]
    split = te.compute(
        shape,
        lambda *i: x[(*i[:along], i[along] * size + i[along + 1], *i[along + 2 :])],
        "split",
    )
    over = [d for d in range(1, split.ndim) if d != along]

    def affine(value: PrimExpr, i: tuple[PrimExpr, ...]) -> PrimExpr:
        flat = (i[along] * size + i[along + 1],)
        return _affine_over(vectors, (0,))(value, flat)

    normalized = _over_axes(split, over, epsilon(attrs), affine)
    return te.compute(
        x.shape,
        lambda *i: normalized[
            (*i[:along], i[along] // size, i[along] % size, *i[along + 1 :])
        ],
        "group_norm",
    )


def _group_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, gamma, beta = _arrays(args)
    along = int_attr(attrs, "channel_axis") % x.ndim
    groups = int_attr(attrs, "num_groups") if "num_groups" in attrs else x.shape[along]
    moved = np.moveaxis(x, along, 1)
    split = moved.reshape(len(x), groups, moved.shape[1] // groups, *moved.shape[2:])
    over = tuple(range(2, split.ndim))
    normal = _normalize_reference(split, over, epsilon(attrs)).reshape(moved.shape)
    back = np.moveaxis(normal, 1, along)
    return rounded(back * _spread(gamma, (along,), x.ndim) + _spread(beta, (along,), x.ndim), x)


def _instance_samples(seed: int) -> Sequence[Sample]:
    return [
        sample(_INSTANCE, s.args, channel_axis=s.attrs["channel_axis"])
        for s in _group_samples(seed)
    ]


def _group_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, h, w = s.shape(3, 2, 5)

    def call(shape: tuple[int, ...], groups: int, along: int = 1, kind: str = "float32") -> Sample:
        vectors = [s.array((shape[along],), kind) for _ in range(2)]
        return sample(
            _GROUP, (s.array(shape, kind), *vectors), num_groups=groups, channel_axis=along
        )

    return [
        call((n, 6, h, w), 3),
        call((n, 6, h), 1, kind="float64"),
        call((n, h, w, 4), 2, along=-1),
        call((n, 4, h, w), 4, kind="float16"),
        call((0, 4, h), 2),
    ]


# lrn

_LRN = (
    Param("x"),
    Param("size", "attr"),
    Param("axis", "attr", 1),
    Param("alpha", "attr", 1e-4),
    Param("beta", "attr", 0.75),
    Param("bias", "attr", 1.0),
)


def _float(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _lrn_infer(site: Site) -> Type:
    x = float_tensor(site, 0)
    size = site.attrs["size"]
    if not isinstance(size, int) or size < 1:
        raise site.error(f"size must be a positive int, got {size!r}")
    if x.ndim is not None:
        axis(site, site.attrs["axis"], x.ndim)
    return x


def _lrn_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    along, size = int_attr(attrs, "axis") % x.ndim, int_attr(attrs, "size")
    before, scale = (size - 1) // 2, _float(attrs, "alpha") / size
    k = te.reduce_axis(size, "k")
    extent = x.shape[along]

    def square(*i: PrimExpr) -> te.Reduce:
        at = i[along] + k.var - before
        value = widened(x[(*i[:along], at, *i[along + 1 :])])
        return te.sum(te.select(te.and_(at >= 0, at < extent), value * value, 0.0), axis=[k])

    squares = te.compute(x.shape, square, "squares")

    def element(*i: PrimExpr) -> PrimExpr:
        divisor = te.power(squares[i] * scale + _float(attrs, "bias"), _float(attrs, "beta"))
        return te.cast(widened(x[i]) / divisor, x.dtype)

    return te.compute(x.shape, element, "lrn")


def _lrn_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = _arrays(args)
    along, size = int_attr(attrs, "axis") % x.ndim, int_attr(attrs, "size")
    before, squares = (size - 1) // 2, exact(x) ** 2
    total = np.zeros_like(squares)
    for c in range(x.shape[along]):
        near = range(max(0, c - before), min(x.shape[along], c - before + size))
        at = (slice(None),) * along
        total[(*at, c)] = squares.take(list(near), axis=along).sum(axis=along)
    base = _float(attrs, "bias") + _float(attrs, "alpha") / size * total
    return rounded(exact(x) / base ** _float(attrs, "beta"), x)


def _lrn_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4)
    return [
        sample(_LRN, (s.array((n, c, h, w)),), size=3),
        sample(_LRN, (s.array((n, 6, h), "float64"),), size=4, alpha=0.5, bias=2.0),
        sample(_LRN, (s.array((n, h, c), "float16"),), size=5, axis=-1),
        sample(_LRN, (s.array((0, c)),), size=3),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.batch_norm",
        _BATCH,
        _batch_infer,
        _batch_reference,
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with given statistics.

        The vectors have shape ``(x.shape[axis],)``. This is inference: nothing is updated, and the
        result is one tensor (R.nn.batch_norm's first; ONNX BatchNormalization).
        """,
        compute=_batch_compute,
        pattern="broadcast",
        samples=_batch_samples,
    ),
    OpDef(
        "nn.layer_norm",
        _LAYER,
        _layer_infer,
        lambda args, attrs: _rows_reference(args, attrs, centred=True),
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over `axes`.

        gamma and beta (optional) have the shape of those axes (R.nn.layer_norm, ONNX
        LayerNormalization). Statistics are in float32 for narrower floats.
        """,
        compute=_layer_compute,
        pattern="reduction",
        samples=_layer_samples,
        precision="never",
    ),
    OpDef(
        "nn.rms_norm",
        _RMS,
        _layer_infer,
        lambda args, attrs: _rows_reference(args, attrs, centred=False),
        "``x / sqrt(mean(x * x) + epsilon) * weight`` over `axes` (R.nn.rms_norm, ONNX 23).",
        compute=_rms_compute,
        pattern="reduction",
        samples=_rms_samples,
        precision="never",
    ),
    OpDef(
        "nn.group_norm",
        _GROUP,
        _group_infer,
        _group_reference,
        """Normalization over each of `num_groups` groups of channels and all axes but the first.

        gamma and beta have shape ``(channels,)`` (R.nn.group_norm, ONNX GroupNormalization 21).
        """,
        compute=_group_compute,
        pattern="reduction",
        samples=_group_samples,
        precision="never",
    ),
    OpDef(
        "nn.instance_norm",
        _INSTANCE,
        _instance_infer,
        _group_reference,
        """Normalization of each channel over all axes but the first and `channel_axis`.

        gamma and beta have shape ``(channels,)`` (R.nn.instance_norm, ONNX
        InstanceNormalization).
        """,
        compute=_instance_compute,
        pattern="reduction",
        samples=_instance_samples,
        precision="never",
    ),
    OpDef(
        "nn.lrn",
        _LRN,
        _lrn_infer,
        _lrn_reference,
        """``x / (bias + alpha / size * s) ** beta``, s the sum of squares of `size` neighbours.

        Neighbours are along `axis`, ``(size - 1) // 2`` before and ``size // 2`` behind (ONNX LRN).
        """,
        compute=_lrn_compute,
        pattern="reduction",
        samples=_lrn_samples,
        tolerance=2e-5,
    ),
)
