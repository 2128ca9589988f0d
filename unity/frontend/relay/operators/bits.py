"""Products of integers of few bits, and numbers read as another dtype.

TVM packs the bits of both operands, one word of them for each, and counts those that both have.
What that counts is a product of the integers: unipolar weights stand for odd numbers around 0, of
which a single bit is -1 or 1.
"""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import INT32
from unity.ir.graph import Constant, Expr

from .convolutions import data_layout, paddings, steps
from .layouts import transform
from .linear import product, turned


def _low_bits(c: RelayCall, x: Expr, bits: int) -> Expr:
    if not 0 < bits <= 16:
        raise UnityError(f"integers of {bits} bits; expected 1 to 16")
    return c.op("bitwise_and", c.cast(x, INT32), (1 << bits) - 1)


def _weights(c: RelayCall, rank: int) -> Expr:
    weight, bits = c.tensor(1), c.integer("weight_bits")
    c.drop("pack_dtype")
    if len(c.shape_of(weight)) != rank:
        raise c.gap("a weight of packed bits: save the module before relay.build")
    found = _low_bits(c, weight, bits)
    if not c.flag("unipolar"):
        return found
    return c.op("subtract", c.op("multiply", found, 2), (1 << bits) - 1)


def _dense(c: RelayCall) -> Expr:
    c.drop("units")
    x = _low_bits(c, c.tensor(0), c.integer("data_bits"))
    found = product(c, x, turned(c, _weights(c, 2)), INT32)
    return c.cast(found, c.dtype_or("out_dtype", c.dtype_of(c.tensor(0))))


def _conv2d(c: RelayCall) -> Expr:
    c.drop("channels", "kernel_size")  # the weight has them
    layout = c.text("data_layout")
    x = _low_bits(c, c.tensor(0), c.integer("activation_bits"))
    weight = transform(c, _weights(c, 4), c.text("kernel_layout"), "OIHW")
    found = c.op(
        "nn.conv2d",
        transform(c, x, layout, data_layout(2)),
        weight,
        strides=steps(c, "strides", 2),
        padding=paddings(c.integers("padding"), 2),
    )
    found = transform(c, found, data_layout(2), layout)
    return c.cast(found, c.dtype_or("out_dtype", c.dtype_of(c.tensor(0))))


def _reinterpret(c: RelayCall) -> Expr:
    x, kind = c.known(0, "numbers read as another dtype"), c.attribute("dtype")
    wanted = c.dtype_or("dtype", c.dtype_of(c.tensor(0)))
    if kind is None or wanted.numpy.itemsize != x.dtype.itemsize:
        raise UnityError(f"{x.dtype} is not as wide as {wanted}")
    return Constant(np.asarray(x, order="C").view(wanted.numpy))


CONVERTERS: dict[str, Converter] = {
    "nn.bitserial_dense": _dense,
    "nn.bitserial_conv2d": _conv2d,
    "reinterpret": _reinterpret,
}
