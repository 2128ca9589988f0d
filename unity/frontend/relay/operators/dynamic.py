"""Operators of Relay's ``dyn`` namespace: what others have as attributes they take as tensors.

Where the tensors are known, as they are once shapes are, these are the others.
"""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from .creation import one_hot
from .image import resize, upsampled
from .ordering import sparse_to_dense, topk
from .padding import padded
from .shaping import expanded, reshaped_by_codes, squeezed, tiled
from .slicing import sliced


def _ints(c: RelayCall, index: int, what: str) -> tuple[int, ...]:
    return tuple(int(v) for v in c.known(index, what).reshape(-1))


def _reshape(c: RelayCall) -> Expr:
    c.drop("newshape")
    c.only("reverse", False)
    zero = c.flag("allowzero")
    return reshaped_by_codes(c, c.tensor(0), _ints(c, 1, "a shape"), allows_zero=zero)


def _tile(c: RelayCall) -> Expr:
    c.drop("reps")
    return tiled(c, c.tensor(0), _ints(c, 1, "how often to repeat"))


def _broadcast_to(c: RelayCall) -> Expr:
    c.drop("shape", "dtype")
    return c.op("broadcast_to", c.tensor(0), _ints(c, 1, "a shape"))


def _filled(value: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        c.drop("shape")
        kind = c.dtype_or("dtype", FLOAT32)
        return c.op("full", _ints(c, 0, "a shape"), Constant(np.asarray(value, kind.numpy)))

    return convert


def _full(c: RelayCall) -> Expr:
    c.drop("shape")
    value = c.tensor(0)
    kind = c.dtype_or("dtype", c.dtype_of(value))
    return c.op("full", _ints(c, 1, "a shape"), c.cast(value, kind))


def _one_hot(c: RelayCall) -> Expr:
    c.drop("depth")
    kind = c.dtype_or("dtype", c.dtype_of(c.tensor(1)))
    return one_hot(c, int(c.scalar(3, "a depth")), c.integer("axis"), kind)


def _strided_slice(c: RelayCall) -> Expr:
    c.drop("begin", "end", "strides", "axes")
    begin, end = _ints(c, 1, "where a slice begins"), _ints(c, 2, "where a slice ends")
    strides = _ints(c, 3, "the strides of a slice") if len(c.operands) > 3 else ()
    over = tuple(range(len(begin)))
    return sliced(c, c.tensor(0), over, begin, end, strides, c.text("slice_mode"))


def _sparse_to_dense(c: RelayCall) -> Expr:
    return sparse_to_dense(c, _ints(c, 3, "a shape"))


def _expand_dims(c: RelayCall) -> Expr:
    c.drop("axis")
    axis = int(c.scalar(1, "an axis"))
    return expanded(c, c.tensor(0), axis, c.integer("num_newaxis"))


def _squeeze(c: RelayCall) -> Expr:
    c.drop("axis")
    return squeezed(c, c.tensor(0), _ints(c, 1, "axes"))


def _topk(c: RelayCall) -> Expr:
    c.drop("k")
    return topk(c, int(c.scalar(1, "how many there are to be")))


def _pad(c: RelayCall) -> Expr:
    c.drop("pad_width", "pad_value")
    widths = _ints(c, 1, "how much to pad")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    if len(pairs) != c.rank():
        raise UnityError(f"pads {len(pairs)} axes of a tensor of rank {c.rank()}")
    value = c.tensor(2) if len(c.operands) > 2 else None
    return padded(c, c.tensor(0), pairs, c.text("pad_mode"), value)


def _resize2d(c: RelayCall) -> Expr:
    c.drop("size")
    return resize(c, _ints(c, 1, "a size"), 2)


def _upsampling(axes: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        c.drop(*(f"scale_{a}" for a in axes))
        return upsampled(c, [c.scalar(i, "a scale") for i in range(1, len(axes) + 1)])

    return convert


CONVERTERS: dict[str, Converter] = {
    "dyn.reshape": _reshape,
    "dyn.tile": _tile,
    "dyn.broadcast_to": _broadcast_to,
    "dyn.zeros": _filled(0),
    "dyn.ones": _filled(1),
    "dyn.full": _full,
    "dyn.one_hot": _one_hot,
    "dyn.strided_slice": _strided_slice,
    "dyn.sparse_to_dense": _sparse_to_dense,
    "dyn.expand_dims": _expand_dims,
    "dyn.squeeze": _squeeze,
    "dyn.topk": _topk,
    "dyn.nn.pad": _pad,
    "dyn.image.resize2d": _resize2d,
    "dyn.nn.upsampling": _upsampling("hw"),
    "dyn.nn.upsampling3d": _upsampling("dhw"),
}
