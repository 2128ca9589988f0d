"""Strides: channels that are phases of one become neighbours in space; a signal becomes frames."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import as_dim, dim_text, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.argument import tensor
from unity.op.attribute import INT, INTS
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, attr, int_attr, ints_attr
from unity.op.sampling import Sampler, sample
from unity.op.window import Window

from .arrange import array_of, moved

_PARAMS = (Param("x"), attr("strides", INTS))


def _infer(call: OpCall) -> Type:
    x, strides = tensor(call, 0), call.attrs["strides"]
    if not isinstance(strides, tuple) or not all(isinstance(s, int) and s > 0 for s in strides):
        raise call.error(f"strides must be positive ints, got {strides!r}")
    if x.ndim is not None and x.ndim != len(strides) + 2:
        raise call.error(f"strides must be {x.ndim - 2} ints, one for each spatial axis: {strides}")
    if not isinstance(x.shape, tuple):
        return TensorType(x.ndim, x.dtype)
    steps = ints_attr(call.attrs, "strides")
    n, c, *extents = x.shape
    if not equal(floormod(c, prod(steps)), 0):
        raise call.error(f"the {dim_text(c)} channels don't provably divide by {prod(steps)}")
    made = (as_dim(e * s) for e, s in zip(extents, steps, strict=True))
    return TensorType((n, floordiv(c, prod(steps)), *made), x.dtype)


def _index(x: te.Tensor, attrs: Attrs, i: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    strides = ints_attr(attrs, "strides")
    phase = to_prim_expr(0)
    for v, s in zip(i[2:], strides, strict=True):
        phase = phase * s + v % s
    steps = (v // s for v, s in zip(i[2:], strides, strict=True))
    return i[0], i[1] * prod(strides) + phase, *steps


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, strides = array_of(args), ints_attr(attrs, "strides")
    rank, (n, c), extents = len(strides), x.shape[:2], x.shape[2:]
    made = c // prod(strides)
    order = [d for axis in range(rank) for d in (2 + rank + axis, 2 + axis)]
    beside = x.reshape(n, made, *strides, *extents).transpose(0, 1, *order)
    return beside.reshape(n, made, *(e * s for e, s in zip(extents, strides, strict=True)))


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4, 1, 3)
    return [
        sample(_PARAMS, (s.array((n, 6 * c, h, w)),), strides=(2, 3)),
        sample(_PARAMS, (s.array((n, 4 * c, w), "int8"),), strides=(4,)),
        sample(_PARAMS, (s.array((n, 4 * c, h, 2, w)),), strides=(2, 1, 2)),
        sample(_PARAMS, (s.array((0, 4, h, w)),), strides=(2, 2)),
    ]


_FRAMES = (Param("x"), attr("length", INT), attr("step", INT), attr("dilation", INT, 1))


def _window(attrs: Attrs) -> Window:
    length, step, dilation = (int_attr(attrs, n) for n in ("length", "step", "dilation"))
    return Window(length, step, dilation=dilation)


def _infer_frames(call: OpCall) -> Type:
    x = tensor(call, 0)
    for name in ("length", "step", "dilation"):
        if int_attr(call.attrs, name) < 1:
            raise call.error(f"{name!r} must be at least 1, got {call.attrs[name]}")
    if x.ndim == 0:
        raise call.error("'x' must have an axis, got a scalar")
    if not isinstance(x.shape, tuple):
        return TensorType(None if x.ndim is None else x.ndim + 1, x.dtype)
    *others, extent = x.shape
    window = _window(call.attrs)
    if isinstance(extent, int) and isinstance(window.reach, int) and extent < window.reach:
        raise call.error(f"a frame reaches over {window.reach}, and 'x' has {extent}")
    return TensorType((*others, window.steps(extent), window.kernel), x.dtype)


def _frames_index(_x: te.Tensor, attrs: Attrs, i: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    *others, frame, nth = i
    return *others, frame * int_attr(attrs, "step") + nth * int_attr(attrs, "dilation")


def _frames_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, window = array_of(args), _window(attrs)
    count, length = window.steps(x.shape[-1]), window.kernel
    assert isinstance(count, int)
    assert isinstance(length, int)
    at = np.arange(count)[:, None] * window.stride + np.arange(length) * window.dilation
    return x[..., at]


def _frames_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 1, 4)
    return [
        sample(_FRAMES, (s.array((a, 11)),), length=4, step=3),
        sample(_FRAMES, (s.array((a, b, 9), "int8"),), length=3, step=1, dilation=2),
        sample(_FRAMES, (s.array((7,)),), length=7, step=5),
        sample(_FRAMES, (s.array((0, 8)),), length=2, step=4),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "interleave_phases",
        _PARAMS,
        _infer,
        _reference,
        "``(n, c * s0 * s1, h, w)`` to ``(n, c, h * s0, w * s1)`` for the strides ``(s0, s1)``, "
        "over any number of spatial axes: what `ConvertTransposed` makes.",
        compute=moved(_index, "interleave_phases"),
        pattern="injective",
        samples=_samples,
    ),
    OpDef(
        "frames",
        _FRAMES,
        _infer_frames,
        _frames_reference,
        "``(..., n)`` to ``(..., frames, length)``: element k of frame f is "
        "``x[f * step + k * dilation]``, as a convolution's windows lie (what `ConvertFrames` "
        "makes; torch.Tensor.unfold).",
        compute=moved(_frames_index, "frames"),
        pattern="injective",
        samples=_frames_samples,
    ),
)
