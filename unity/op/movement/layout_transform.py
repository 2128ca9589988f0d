"""layout_transform: axes parted in blocks, turned and joined, as an index map says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import as_dim, equal, evaluate
from unity.ir.dtype import Array
from unity.ir.graph import Expr
from unity.ir.lattice import may_equal
from unity.ir.types import TensorType, Type
from unity.op.argument import tensor
from unity.op.attribute import NUMBER, TEXT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, array_arg, attr
from unity.op.sampling import Sampler, sample

from .index_map import IndexMap, read_index_map

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (Param("x"), attr("index_map", TEXT), attr("pad_value", NUMBER, 0.0))


def _infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    try:
        found = _map(call.attrs)
    except UnityError as error:
        raise call.error(error.message, error.hint) from None
    if x.ndim not in (None, len(found.names)):
        raise call.error(f"'x' has rank {x.ndim}, the map is of rank {len(found.names)}")
    if not isinstance(x.shape, tuple):
        return TensorType(len(found.joined), x.dtype)
    for axis, wanted in found.fixed().items():
        if not equal(x.shape[axis], wanted):
            hint = "R.match_cast says so, checked when it runs"
            raise call.error(
                f"the axis {found.names[axis]!r} must have {wanted} elements, for its factor in "
                f"the map, it has {x.shape[axis]}",
                hint if may_equal(x.shape[axis], wanted) else None,
            )
    return TensorType(found.result(x.shape), x.dtype)


def _map(attrs: Attrs) -> IndexMap:
    return read_index_map(str(attrs["index_map"]))


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,), found = args, _map(attrs)
    shape = e.shape_of(x)
    whole = found.whole(shape)
    if not all(map(equal, whole, shape)):
        widths = [w for n, m in zip(shape, whole, strict=True) for w in (0, as_dim(m - n))]
        padded = e.op("nn.pad", x, pad_width=tuple(widths), pad_value=attrs["pad_value"])
        x = padded if e.shape_of(padded) == whole else e.assert_shape(padded, whole)
    parted, order = found.parted(shape), found.order()
    if parted != whole:
        x = e.op("reshape", x, parted)
    if order != tuple(range(len(order))):
        x = e.op("permute_dims", x, axes=order)
    wanted = found.result(shape)
    return x if len(wanted) == len(parted) else e.op("reshape", x, wanted)


def _refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, found = array_arg(args), _map(attrs)
    whole = [evaluate(n, {}) for n in found.whole(x.shape)]
    filled = np.full(whole, attrs["pad_value"], x.dtype)
    filled[tuple(slice(n) for n in x.shape)] = x
    parted = filled.reshape([evaluate(n, {}) for n in found.parted(x.shape)])
    turned = parted.transpose(found.order())
    return np.ascontiguousarray(turned.reshape([evaluate(n, {}) for n in found.result(x.shape)]))


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    blocks = "n, c, h, w -> n, c // 4, h, w, c % 4"
    return [
        sample(_PARAMS, (s.array((a, 8, b, 2)),), index_map=blocks),
        sample(_PARAMS, (s.array((a, 7, b, 2)),), index_map=blocks, pad_value=2.0),
        sample(_PARAMS, (s.array((a, 2, 3, 4), "int32"),), index_map="n, c, h, b -> n, c*4+b, h"),
        sample(_PARAMS, (s.array((a, 9)),), index_map="i, j -> j // 4, i, j % 4"),
        sample(_PARAMS, (s.array((0, b)),), index_map="i, j -> j, i"),
        sample(_PARAMS, (s.array((0, 6)),), index_map="i, j -> i, j // 4, j % 4"),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "layout_transform",
        _PARAMS,
        _infer,
        _refer,
        """The same elements in another order of axes and blocks of axes.

        `index_map` says of each element where it comes: ``"n, c, h, w -> n, c // 4, h, w, c % 4"``
        gives ``(n, c / 4, h, w, 4)`` of ``(n, c, h, w)``, ``"n, c, h, w, b -> n, c * 4 + b, h, w"``
        undoes that, where the axis b has 4 elements. Each part of each axis stands once. The last
        block of an axis that is no multiple is filled up with `pad_value` (R.layout_transform,
        whose map is a function).
        """,
        expand=_expand,
        samples=_samples,
    ),
)
