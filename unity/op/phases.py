"""interleave_phases: channels that are the phases of a stride become neighbours in space."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.convert import to_prim_expr
from unity.ir.dims import as_dim, dim_text, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type

from .argument import tensor
from .arrange import array_of, moved
from .attribute import INTS
from .registry import OpCall, OpDef, Param, RefArg, Sample, attr, ints_attr
from .sampling import Sampler, sample

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
)
