"""Operators on quantized tensors: sums of products in int32, and others by requantizing.

Products are of integers without their zero points, so that a convolution's padding is what stands
for 0. A zero point of 0 leaves the operands in eight bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import FLOAT32, INT8, INT32
from unity.ir.graph import Constant, Expr

from .convolutions import convolution, data_layout, transposed_convolution
from .elementwise import limits
from .fixed_point import multiplied
from .layouts import primal, transform
from .linear import product, turned
from .pools import pooled
from .quantized import (
    Quantization,
    centred,
    dequantized,
    known_quantization,
    narrowed,
    quantization,
    quantized,
    rescaled,
)
from .shaping import joined


def _factors(c: RelayCall, axis: int) -> tuple[Expr, Expr]:
    """Data and weight without their zero points; the weight may have one a channel on an axis.

    Calls have both zero points before the scales; the names that TVM registers say otherwise, so
    the zero points are told by being integers.
    """
    x, weight = c.tensor(0), c.tensor(1)
    places = [i for i in range(2, len(c.operands)) if c.dtype_of(c.tensor(i)).is_int]
    if len(places) != 2:
        raise UnityError("takes two zero points, in int32, and two scales")
    own, other = (c.known(i, "a zero point").reshape(-1).astype(np.int64) for i in places)
    if own.size != 1:
        raise c.gap("a zero point of the data for each channel")
    if not own.any() and not other.any() and c.dtype_of(x) == c.dtype_of(weight):
        return x, weight
    return centred(c, x, [int(z) for z in own], 0), centred(
        c, weight, [int(z) for z in other], axis
    )


def _dense(c: RelayCall) -> Expr:
    x, weight = _factors(c, 0)
    c.drop("units")
    return product(c, x, turned(c, weight), c.dtype_or("out_dtype", INT32))


def _batch_matmul(c: RelayCall) -> Expr:
    a, b = _factors(c, 0)
    left = turned(c, a) if c.flag("transpose_a") else a
    right = turned(c, b) if c.flag("transpose_b") else b
    return product(c, left, right, c.dtype_or("out_dtype", INT32))


def _conv2d(c: RelayCall) -> Expr:
    x, weight = _factors(c, primal(c.text("kernel_layout")).index("O"))
    found = convolution(c, x, weight, 2, c.dtype_or("out_dtype", INT32))
    return transform(c, found, data_layout(2), c.text("out_layout") or c.text("data_layout"))


def _conv2d_transpose(c: RelayCall) -> Expr:
    x, weight = _factors(c, primal(c.text("kernel_layout")).index("O"))
    found = transposed_convolution(c, x, weight, 2, c.dtype_or("out_dtype", INT32))
    return transform(c, found, data_layout(2), c.text("out_layout") or c.text("data_layout"))


@dataclass(frozen=True, slots=True)
class _Operand:
    """Quantized integers, perhaps with a scale for each place along an axis."""

    value: Expr
    quantization: Quantization
    axis: int


def _in_output_scale(c: RelayCall, x: _Operand, new: Quantization) -> Expr:
    """Integers in int32 in the quantization of the result."""
    if x.quantization == new:
        return c.cast(x.value, INT32)
    return rescaled(c, x.value, x.quantization, new, x.axis, INT32)


def _operands(c: RelayCall) -> tuple[_Operand, _Operand, Quantization]:
    sides: list[_Operand] = []
    for i, name in enumerate(("lhs_axis", "rhs_axis")):
        x, found = c.tensor(i), quantization(c, 2 + 2 * i, 3 + 2 * i, "an operand")
        rank = len(c.shape_of(x))
        axis = c.axis(c.integer(name), rank) if rank else 0 * c.integer(name)
        _require_along(c, x, found, axis)
        sides.append(_Operand(x, found, axis))
    out = quantization(c, 6, 7, "the output")
    if len(out.scales) != 1:
        raise c.gap("an output with a scale for each channel")
    return sides[0], sides[1], out


def _require_along(c: RelayCall, x: Expr, of: Quantization, axis: int) -> None:
    """Refuse more scales or zero points than one, if an axis has another number of places."""
    shape = c.shape_of(x)
    extent = shape[axis] if shape else 1
    for what, count in (("scales", len(of.scales)), ("zero points", len(of.zeros))):
        if count > 1 and isinstance(extent, int) and extent != count:
            raise UnityError(f"{count} {what} along an axis of {extent}")


def _sum(name: str) -> Converter:
    """The sum or difference of operands in the result's quantization."""

    def convert(c: RelayCall) -> Expr:
        lhs, rhs, out = _operands(c)
        a, b = _in_output_scale(c, lhs, out), _in_output_scale(c, rhs, out)
        found = c.op(name, *c.of(a, b))
        zero = out.zeros[0]
        if zero:  # both operands hold it: it is once too much, or lacking
            found = c.op("subtract" if name == "add" else "add", found, zero)
        return narrowed(c, found, c.dtype_of(c.tensor(0)))

    return convert


def _multiply(c: RelayCall) -> Expr:
    lhs, rhs, out = _operands(c)
    a, b = (centred(c, x.value, x.quantization.zeros, x.axis) for x in (lhs, rhs))
    found = c.op("multiply", *c.of(a, b))
    rank = len(c.shape_of(found))
    many = [x for x in (lhs, rhs) if len(x.quantization.scales) > 1]
    behind = {len(c.shape_of(x.value)) - x.axis for x in many}  # axes are counted from the back
    if len(behind) > 1:
        raise c.gap("scales for each channel along two axes")
    one, other = (np.asarray(x.quantization.scales, np.float32) for x in (lhs, rhs))
    product = Quantization(tuple(float(s) for s in one * other), (0,))
    axis = rank - behind.pop() if behind else 0
    return rescaled(c, found, product, out, axis, c.dtype_of(c.tensor(0)))


def _concatenate(c: RelayCall) -> Expr:
    parts = c.fields(0)
    given = [
        known_quantization(_known(c, s), _known(c, z))
        for s, z in zip(c.fields(1), c.fields(2), strict=True)
    ]
    out = quantization(c, 3, 4, "the output")
    kind = c.dtype_of(parts[0])
    scaled = [
        p if q == out else rescaled(c, p, q, out, 0, kind)
        for p, q in zip(parts, given, strict=True)
    ]
    return joined(c, scaled, c.integer("axis"))


def _known(c: RelayCall, value: Expr) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if not isinstance(value, Constant):
        raise c.gap("a scale known only at run time")
    return value.data


def _unary(name: str) -> Converter:
    """A function of reals between dequantizing and quantizing, both in float32."""

    def convert(c: RelayCall) -> Expr:
        x = c.tensor(0)
        if c.dtype_of(x).bits != 8:
            raise c.gap(f"elements of {c.dtype_of(x)}")
        scale, out_scale = (c.reshaped(c.cast(c.tensor(i), FLOAT32), ()) for i in (1, 3))
        zero, out_zero = (c.reshaped(c.cast(c.tensor(i), INT32), ()) for i in (2, 4))
        real = dequantized(c, x, scale, zero)
        return quantized(c, c.op(name, real), out_scale, out_zero, c.dtype_of(x))

    return convert


def _leaky_relu(c: RelayCall) -> Expr:
    """Negative integers times alpha in fixed point, with their zero point's share."""
    x, alpha = c.tensor(0), c.real("alpha")
    old, new = quantization(c, 1, 2, "the input"), quantization(c, 3, 4, "the output")
    if old != new:
        raise c.gap("an output in another quantization than the input")
    wide, zero = c.cast(x, INT32), Constant(np.asarray(new.zeros[0], np.int32))
    part = multiplied(c, wide, [alpha], 0)
    rest = multiplied(c, zero, [1 - alpha], 0)
    below = c.op("add", part, rest)
    found = c.op("where", c.op("less", wide, zero), below, wide)
    return narrowed(c, found, c.dtype_of(x))


def _avg_pool2d(c: RelayCall) -> Expr:
    x = c.tensor(0)
    old, new = quantization(c, 1, 2, "the input"), quantization(c, 3, 4, "the output")
    found = pooled(c, _in_output_scale(c, _Operand(x, old, 0), new), "avg", 2)
    found = transform(c, found, data_layout(2), c.text("out_layout") or c.text("layout"))
    return narrowed(c, found, c.dtype_of(x))


_BITS, _POWER, _TOP = 8, 8, 30


def _softmax(c: RelayCall) -> Expr:
    """Softmax in integers: powers of two by shifts, the rest of the exponent a line.

    Algorithm 1 of I-ViT (arXiv:2207.01405), which TVM takes for it, to the bit.
    """
    x = c.tensor(0)
    if c.dtype_of(x) != INT8:
        raise c.gap(f"elements of {c.dtype_of(x)}")
    axis = c.axis(c.integer("axis"), c.rank())
    old, new = quantization(c, 1, 2, "the input"), quantization(c, 3, 4, "the output")
    one = int(np.clip(np.floor(np.float32(1) / np.float32(old.scales[0]) + 0.5), *limits(INT32)))
    if one < 1:
        raise UnityError("the scale of the input is too large")
    own = centred(c, x, old.zeros, 0)
    below = c.op("subtract", own, c.op("max", own, axis=(axis,), keepdims=True))
    # Times log2(e), about 1 + 1/2 - 1/16.
    base = c.op(
        "subtract",
        c.op("add", below, c.op("right_shift", below, 1)),
        c.op("right_shift", below, 4),
    )
    whole = c.op("divide", base, -one)
    rest = c.op("subtract", base, c.op("multiply", whole, -one))
    line = c.op("add", c.op("right_shift", rest, 1), one)
    power = c.op("left_shift", line, c.op("subtract", _int32(_POWER), whole))
    total = c.op("sum", power, axis=(axis,), keepdims=True)
    share = c.op("multiply", c.op("divide", _int32(1 << _TOP), total), power)
    found = c.op("right_shift", share, _TOP - (_BITS - 1))
    unit = Quantization((1 / (1 << (_BITS - 1)),), (0,))
    return rescaled(c, found, unit, new, 0, INT8)


def _int32(value: int) -> Constant:
    return Constant(np.asarray(value, np.int32))


CONVERTERS: dict[str, Converter] = {
    "qnn.dense": _dense,
    "qnn.batch_matmul": _batch_matmul,
    "qnn.conv2d": _conv2d,
    "qnn.conv2d_transpose": _conv2d_transpose,
    "qnn.add": _sum("add"),
    "qnn.subtract": _sum("subtract"),
    "qnn.multiply": _multiply,
    "qnn.concatenate": _concatenate,
    "qnn.leaky_relu": _leaky_relu,
    "qnn.avg_pool2d": _avg_pool2d,
    "qnn.softmax": _softmax,
    **{
        f"qnn.{name}": _unary(ours)
        for name, ours in {
            "abs": "abs",
            "erf": "erf",
            "exp": "exp",
            "hardswish": "nn.hardswish",
            "log": "log",
            "rsqrt": "rsqrt",
            "sigmoid": "sigmoid",
            "sqrt": "sqrt",
            "tanh": "tanh",
        }.items()
    },
}
