"""Channels that become pixels, and pixels channels: pixel_shuffle, pixel_unshuffle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import dim_text, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.types import TensorType, Type
from unity.op.argument import (
    tensor,
    type_text,
)
from unity.op.attribute import INT
from unity.op.registry import (
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

from .arrange import Index, moved

_SHUFFLE = (Param("x"), attr("upscale_factor", INT))
_UNSHUFFLE = (Param("x"), attr("downscale_factor", INT))


# pixel_shuffle and pixel_unshuffle


def _factor(call: OpCall, name: str) -> int:
    found = call.integer(name)
    if found < 1:
        raise call.error(f"{name!r} must be at least 1, got {found}")
    return found


def _shuffle_infer(call: OpCall) -> Type:
    x, r = tensor(call, 0), _factor(call, "upscale_factor")
    if x.ndim is not None and x.ndim < 3:
        raise call.error(f"'x' must have three axes or more, got {type_text(x)}")
    if not isinstance(x.shape, tuple):
        return x
    *head, c, h, w = x.shape
    if not equal(floormod(c, r * r), 0):
        raise call.error(f"the {dim_text(c)} channels don't provably divide by {r * r}")
    return TensorType((*head, floordiv(c, r * r), h * r, w * r), x.dtype)


def _shuffle_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    r = int_attr(attrs, "upscale_factor")
    *head, c, h, w = i
    return (*head, c * (r * r) + h % r * r + w % r, h // r, w // r)


def _shuffle_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, r = array_arg(args), int_attr(attrs, "upscale_factor")
    *head, c, h, w = x.shape
    parts = x.reshape(math.prod(head), c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*head, c // (r * r), h * r, w * r)


def _shuffle_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h = s.shape(3, 1, 3)
    return [
        sample(_SHUFFLE, (s.array((n, 4 * c, h, 3)),), upscale_factor=2),
        sample(_SHUFFLE, (s.array((9, h, 2), "int8"),), upscale_factor=3),
    ]


def _unshuffle_infer(call: OpCall) -> Type:
    x, r = tensor(call, 0), _factor(call, "downscale_factor")
    if x.ndim is not None and x.ndim < 3:
        raise call.error(f"'x' must have three axes or more, got {type_text(x)}")
    if not isinstance(x.shape, tuple):
        return x
    *head, c, h, w = x.shape
    for extent in (h, w):
        if not equal(floormod(extent, r), 0):
            raise call.error(f"the extent {dim_text(extent)} doesn't provably divide by {r}")
    return TensorType((*head, c * (r * r), floordiv(h, r), floordiv(w, r)), x.dtype)


def _unshuffle_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    r = int_attr(attrs, "downscale_factor")
    *head, c, h, w = i
    return (*head, c // (r * r), h * r + c // r % r, w * r + c % r)


def _unshuffle_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, r = array_arg(args), int_attr(attrs, "downscale_factor")
    *head, c, h, w = x.shape
    parts = x.reshape(math.prod(head), c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*head, c * r * r, h // r, w // r)


def _unshuffle_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h = s.shape(3, 1, 3)
    return [
        sample(_UNSHUFFLE, (s.array((n, c, 2 * h, 4)),), downscale_factor=2),
        sample(_UNSHUFFLE, (s.array((c, 3, 3 * h), "int8"),), downscale_factor=3),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.pixel_shuffle",
        _SHUFFLE,
        _shuffle_infer,
        _shuffle_reference,
        """``(..., c * r * r, h, w)`` to ``(..., c, h * r, w * r)`` for `upscale_factor` r.

        Channels that follow one another become neighbours (R.nn.pixel_shuffle, ONNX DepthToSpace
        of mode CRD).
        """,
        compute=moved(_shuffle_index, "pixel_shuffle"),
        pattern="injective",
        samples=_shuffle_samples,
    ),
    OpDef(
        "nn.pixel_unshuffle",
        _UNSHUFFLE,
        _unshuffle_infer,
        _unshuffle_reference,
        "``(..., c, h * r, w * r)`` to ``(..., c * r * r, h, w)``, what undoes `nn.pixel_shuffle` "
        "(torch's pixel_unshuffle).",
        compute=moved(_unshuffle_index, "pixel_unshuffle"),
        pattern="injective",
        samples=_unshuffle_samples,
    ),
)
