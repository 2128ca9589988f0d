"""Elements in another order: permute_dims, flip, depth_to_space, space_to_depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import dim_text, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.argument import axes, ranked, tensor
from unity.op.attribute import INT, INTS, TEXT, optional
from unity.op.reduction.reduce import known
from unity.op.registry import (
    ComputeArg,
    ComputeRule,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

Index: TypeAlias = tuple[PrimExpr, ...]
_Move: TypeAlias = Callable[[te.Tensor, Attrs, Index], Index]

_PERMUTE = (Param("x"), attr("axes", INTS, None))
_FLIP = (Param("x"), attr("axis", optional(INTS), 0))
_DEPTH_TO_SPACE = (Param("x"), attr("block_size", INT), attr("mode", TEXT, "DCR"))
_SPACE_TO_DEPTH = (Param("x"), attr("block_size", INT))


def moved(move: _Move, name: str) -> ComputeRule:
    """A compute that reads one input element for each output element."""

    def rule(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        (x,) = args
        assert isinstance(x, te.Tensor)
        dims, _ = known(result)
        return te.compute(dims, lambda *i: x[move(x, attrs, i)], name)

    return rule


def array_of(args: Sequence[RefArg]) -> Array:
    """The first argument, an array."""
    x = args[0]
    assert isinstance(x, np.ndarray)
    return x


# permute_dims


def _order(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    given = attrs["axes"]
    if given is None:
        return tuple(reversed(range(ndim)))
    assert isinstance(given, tuple)
    return tuple(a % ndim for a in given if isinstance(a, int))


def _permute_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is None:
        return x
    given = call.attrs["axes"]
    if given is not None and (not isinstance(given, tuple) or len(given) != x.ndim):
        raise call.error(f"axes must name each of the {x.ndim} axes once, got {given!r}")
    if given is not None:
        axes(call, given, x.ndim)
    if not isinstance(x.shape, tuple):
        return x
    return TensorType(tuple(x.shape[a] for a in _order(call.attrs, x.ndim)), x.dtype)


def _permute_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    order = _order(attrs, x.ndim)
    return tuple(i[order.index(d)] for d in range(x.ndim))


def _permute_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_PERMUTE, (s.array(s.shape(2)),)),
        sample(_PERMUTE, (s.array(s.shape(4), "int64"),), axes=(0, 2, 1, 3)),
        sample(_PERMUTE, (s.array(s.shape(3), "float16"),), axes=(-1, 0, 1)),
        sample(_PERMUTE, (s.array(()),)),
        sample(_PERMUTE, (s.array((0, 3)),), axes=(1, 0)),
    ]


# flip


def _flip_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is not None:
        axes(call, call.attrs["axis"], x.ndim, "axis")
    return x


def _flip_axes(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    given = attrs["axis"]
    if given is None:
        return tuple(range(ndim))
    many = given if isinstance(given, tuple) else (given,)
    return tuple(a % ndim for a in many if isinstance(a, int))


def _flip_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    over = _flip_axes(attrs, x.ndim)
    return tuple(x.shape[d] - 1 - v if d in over else v for d, v in enumerate(i))


def _flip_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_FLIP, (s.array(s.shape(2)),)),
        sample(_FLIP, (s.array(s.shape(3), "int8"),), axis=(0, -1)),
        sample(_FLIP, (s.array((2, 0)),), axis=0),
    ]


# depth_to_space, space_to_depth


def _block(call: OpCall) -> int:
    size = call.attrs["block_size"]
    if not isinstance(size, int) or size < 1:
        raise call.error(f"block_size must be a positive int, got {size!r}")
    return size


def _depth_to_space_infer(call: OpCall) -> Type:
    x, size = ranked(call, 0, 4), _block(call)
    if call.attrs["mode"] not in ("DCR", "CRD"):
        raise call.error(f"mode must be 'DCR' or 'CRD', got {call.attrs['mode']!r}")
    if not isinstance(x.shape, tuple):
        return TensorType(4, x.dtype)
    n, c, h, w = x.shape
    if not equal(floormod(c, size * size), 0):
        raise call.error(f"the {dim_text(c)} channels don't provably divide by {size * size}")
    return TensorType((n, floordiv(c, size * size), h * size, w * size), x.dtype)


def _depth_to_space_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    size = int_attr(attrs, "block_size")
    n, c, h, w = i
    offset = h % size * size + w % size
    if attrs["mode"] == "DCR":
        channel = offset * (x.shape[1] // (size * size)) + c
    else:
        channel = c * (size * size) + offset
    return n, channel, h // size, w // size


def _depth_to_space_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, b = array_of(args), int_attr(attrs, "block_size")
    n, c, h, w = x.shape
    if attrs["mode"] == "DCR":
        split = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        split = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(n, c // (b * b), h * b, w * b)


def _depth_to_space_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4, 1, 3)
    return [
        sample(_DEPTH_TO_SPACE, (s.array((n, 4 * c, h, w)),), block_size=2),
        sample(_DEPTH_TO_SPACE, (s.array((n, 9 * c, h, w), "int8"),), block_size=3, mode="CRD"),
        sample(_DEPTH_TO_SPACE, (s.array((0, 4, h, w)),), block_size=2),
    ]


def _space_to_depth_infer(call: OpCall) -> Type:
    x, size = ranked(call, 0, 4), _block(call)
    if not isinstance(x.shape, tuple):
        return TensorType(4, x.dtype)
    n, c, h, w = x.shape
    for extent in (h, w):
        if not equal(floormod(extent, size), 0):
            raise call.error(f"the extent {dim_text(extent)} doesn't provably divide by {size}")
    return TensorType((n, c * (size * size), floordiv(h, size), floordiv(w, size)), x.dtype)


def _space_to_depth_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    size = int_attr(attrs, "block_size")
    n, c, h, w = i
    offset = c // x.shape[1]
    return n, c % x.shape[1], h * size + offset // size, w * size + offset % size


def _space_to_depth_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, b = array_of(args), int_attr(attrs, "block_size")
    n, c, h, w = x.shape
    split = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return split.reshape(n, c * b * b, h // b, w // b)


def _space_to_depth_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4, 1, 3)
    return [
        sample(_SPACE_TO_DEPTH, (s.array((n, c, 2 * h, 2 * w)),), block_size=2),
        sample(_SPACE_TO_DEPTH, (s.array((0, c, 2, 2), "float16"),), block_size=2),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "permute_dims",
        _PERMUTE,
        _permute_infer,
        lambda args, attrs: np.transpose(array_of(args), _order(attrs, array_of(args).ndim)),
        "Axes in another order, reversed by default (R.permute_dims, ONNX Transpose).",
        compute=moved(_permute_index, "permute_dims"),
        pattern="injective",
        samples=_permute_samples,
    ),
    OpDef(
        "flip",
        _FLIP,
        _flip_infer,
        lambda args, attrs: np.flip(array_of(args), _flip_axes(attrs, array_of(args).ndim)),
        "The order along `axis` (one or several) reversed (R.flip).",
        compute=moved(_flip_index, "flip"),
        pattern="injective",
        samples=_flip_samples,
    ),
    OpDef(
        "depth_to_space",
        _DEPTH_TO_SPACE,
        _depth_to_space_infer,
        _depth_to_space_reference,
        "``(n, c * b * b, h, w)`` to ``(n, c, h * b, w * b)``: ONNX DepthToSpace; mode CRD is "
        "R.nn.pixel_shuffle.",
        compute=moved(_depth_to_space_index, "depth_to_space"),
        pattern="injective",
        samples=_depth_to_space_samples,
    ),
    OpDef(
        "space_to_depth",
        _SPACE_TO_DEPTH,
        _space_to_depth_infer,
        _space_to_depth_reference,
        "``(n, c, h * b, w * b)`` to ``(n, b * b * c, h, w)``: ONNX SpaceToDepth.",
        compute=moved(_space_to_depth_index, "space_to_depth"),
        pattern="injective",
        samples=_space_to_depth_samples,
    ),
)
