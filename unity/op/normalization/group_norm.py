"""Normalization over groups of channels: group_norm and instance_norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import dim_text, equal, floormod
from unity.ir.dtype import Array
from unity.ir.types import TensorType, Type
from unity.op.accumulate import rounded
from unity.op.argument import axis, common_dtype, float_tensor, type_text
from unity.op.attribute import INT, NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .moments import (
    affine_over,
    arrays,
    epsilon,
    normalize_reference,
    normalized,
    parts_of_groups,
    parts_over,
    require_channels,
    spread,
)

_INSTANCE = (
    Param("x"),
    Param("gamma"),
    Param("beta"),
    attr("channel_axis", INT, 1),
    attr("epsilon", NUMBER, 1e-5),
)
_GROUP = (*_INSTANCE[:3], attr("num_groups", INT), *_INSTANCE[3:])


def _instance_infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    common_dtype(call, (x, float_tensor(call, 1), float_tensor(call, 2)))
    if x.ndim is None:
        return x
    if x.ndim < 2:
        raise call.error(f"'x' must have rank 2 or more, got {type_text(x)}")
    along = axis(call, call.attrs["channel_axis"], x.ndim, "channel_axis")
    if along == 0:
        raise call.error("channel_axis is 0, which is the batch's")
    require_channels(call, x, along, (1, 2))
    return x


def _group_infer(call: OpCall) -> Type:
    x = _instance_infer(call)
    groups = call.attrs["num_groups"]
    if not isinstance(groups, int) or groups < 1:
        raise call.error(f"num_groups must be a positive int, got {groups!r}")
    if isinstance(x, TensorType) and isinstance(x.shape, tuple):
        channels = x.shape[axis(call, call.attrs["channel_axis"], len(x.shape))]
        if not equal(floormod(channels, groups), 0):
            raise call.error(
                f"the {dim_text(channels)} channels don't provably divide into {groups} groups"
            )
    return x


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    along = int_attr(attrs, "channel_axis") % x.ndim
    if "num_groups" in attrs:
        parts = parts_of_groups(x, along, int_attr(attrs, "num_groups"))
    else:
        parts = parts_over(x, [d for d in range(1, x.ndim) if d != along])
    return normalized(x, parts, epsilon(attrs), affine_over(vectors, (along,)))


def _group_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, gamma, beta = arrays(args)
    along = int_attr(attrs, "channel_axis") % x.ndim
    groups = int_attr(attrs, "num_groups") if "num_groups" in attrs else x.shape[along]
    moved = np.moveaxis(x, along, 1)
    split = moved.reshape(len(x), groups, moved.shape[1] // groups, *moved.shape[2:])
    over = tuple(range(2, split.ndim))
    normal = normalize_reference(split, over, epsilon(attrs)).reshape(moved.shape)
    back = np.moveaxis(normal, 1, along)
    return rounded(back * spread(gamma, (along,), x.ndim) + spread(beta, (along,), x.ndim), x)


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


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.group_norm",
        _GROUP,
        _group_infer,
        _group_reference,
        """Normalization over each of `num_groups` groups of channels and all axes but the first.

        gamma and beta have shape ``(channels,)`` (R.nn.group_norm, ONNX GroupNormalization 21).
        """,
        compute=_compute,
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
        compute=_compute,
        pattern="reduction",
        samples=_instance_samples,
        precision="never",
    ),
)
