"""Quantizing, dequantizing, requantizing: ``real = scale * (integer - zero point)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.sampling import half_away
from unity.ir.dtype import FLOAT32, FLOAT64, INT32, Array, DType
from unity.ir.graph import Constant, Expr

from .elementwise import clipped, limits
from .fixed_point import multiplied


@dataclass(frozen=True, slots=True)
class Quantization:
    """Known scales and zero points: one of each, or one for each place along an axis."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]


def quantization(c: RelayCall, scale: int, zero: int, what: str) -> Quantization:
    """What two operands say."""
    return known_quantization(
        c.known(scale, f"the scale of {what}"), c.known(zero, f"the zero point of {what}")
    )


def known_quantization(scale: Array, zero: Array) -> Quantization:
    """What a scale and a zero point say."""
    scales = tuple(float(s) for s in scale.astype(np.float32).reshape(-1))
    if any(not s > 0 for s in scales):
        raise UnityError("a scale is not above 0")
    return Quantization(scales, tuple(int(z) for z in zero.reshape(-1)))


def narrowed(c: RelayCall, x: Expr, out: DType) -> Expr:
    """Integers as another dtype's, those that it lacks the nearest that it has."""
    if out == c.dtype_of(x):
        return x
    low, high = limits(out)
    return c.cast(clipped(c, x, low, high), out)


def centred(c: RelayCall, x: Expr, zeros: Sequence[int], axis: int) -> Expr:
    """Integers as int32 without their zero points."""
    wide = c.cast(x, INT32)
    if not any(zeros):
        return wide
    return c.op("subtract", wide, vector(c, np.asarray(zeros, np.int32), axis, x))


def vector(c: RelayCall, values: Array, axis: int, x: Expr) -> Constant:
    """One value, or one for each place along an axis of a tensor."""
    if values.size == 1:
        return Constant(values.reshape(()))
    shape = c.shape_of(x)
    if isinstance(shape[axis], int) and shape[axis] != values.size:
        raise UnityError(f"{values.size} scales or zero points along an axis of {shape[axis]}")
    return Constant(values.reshape(-1, *(1,) * (len(shape) - axis - 1)))


def rescaled(
    c: RelayCall,
    x: Expr,
    old: Quantization,
    new: Quantization,
    axis: int,
    out: DType,
    rounding: str = "UPWARD",
    compute: str = "int64",
) -> Expr:
    """Quantized integers in another quantization, whose scale is one for all.

    Args:
        c: The call.
        x: The integers.
        old: Their quantization, perhaps one for each place along `axis`.
        new: That of the result.
        axis: An axis, counted from the front.
        out: The dtype of the result.
        rounding: ``UPWARD``: halves up; ``TONEAREST``: halves away from zero.
        compute: In what it is computed; ``int64`` is a multiplication in fixed point.
    """
    if rounding not in ("UPWARD", "TONEAREST"):
        raise c.gap(f"rounding={rounding!r}")
    if compute in ("float32", "float64"):
        return _rescaled_in_floats(c, x, old, new, axis, out, rounding, compute)
    if compute != "int64":
        raise c.gap(f"compute_dtype={compute!r}")
    found = centred(c, x, old.zeros, axis)
    if old.scales != new.scales:
        ratios = [s / new.scales[0] for s in old.scales]
        found = multiplied(c, found, ratios, axis, upward=rounding == "UPWARD")
    if new.zeros[0]:
        found = c.op("add", found, new.zeros[0])
    return narrowed(c, found, out)


def _rescaled_in_floats(
    c: RelayCall,
    x: Expr,
    old: Quantization,
    new: Quantization,
    axis: int,
    out: DType,
    rounding: str,
    compute: str,
) -> Expr:
    kind = FLOAT32 if compute == "float32" else FLOAT64
    found = c.cast(x, kind)
    if any(old.zeros):
        zeros = np.asarray(old.zeros).astype(kind.numpy)
        found = c.op("subtract", found, vector(c, zeros, axis, x))
    if old.scales != new.scales:
        ratios = np.asarray([s / new.scales[0] for s in old.scales]).astype(kind.numpy)
        found = c.op("multiply", found, vector(c, ratios, axis, x))
    if new.zeros[0]:
        found = c.op("add", found, float(new.zeros[0]))
    upward = rounding == "UPWARD"
    rounded = c.op("floor", c.op("add", found, 0.5)) if upward else half_away(c, found)
    return narrowed(c, c.cast(rounded, INT32), out)


def channel(c: RelayCall, x: Expr) -> int:
    """The attribute ``axis``, counted from the front; a scalar has none."""
    rank = len(c.shape_of(x))
    return c.axis(c.integer("axis"), rank) if rank else c.integer("axis") * 0


def _requantize(c: RelayCall) -> Expr:
    x = c.tensor(0)
    old, new = quantization(c, 1, 2, "the input"), quantization(c, 3, 4, "the output")
    rounding, compute = c.text("rounding"), c.text("compute_dtype")
    return rescaled(
        c,
        x,
        old,
        new,
        channel(c, x),
        c.dtype_or("out_dtype", c.dtype_of(x)),
        "UPWARD" if rounding == "None" else rounding,
        "int64" if compute == "None" else compute,
    )


def _placed(c: RelayCall, index: int, axis: int, x: Expr) -> Expr:
    """A scale or zero point, known or not, in the place of its axis."""
    value = c.tensor(index)
    shape = c.shape_of(value)
    if shape in ((), (1,)):
        return c.reshaped(value, ())
    return c.along(value, axis, len(c.shape_of(x)))


def _quantize(c: RelayCall) -> Expr:
    x = c.tensor(0)
    axis = channel(c, x)
    scale, zero = _placed(c, 1, axis, x), _placed(c, 2, axis, x)
    return quantized(c, x, scale, zero, c.dtype_or("out_dtype", INT32))


def quantized(c: RelayCall, x: Expr, scale: Expr, zero: Expr, out: DType) -> Expr:
    """Reals as integers: the zero point is added before halves are rounded away from zero."""
    kind = c.dtype_of(x)
    at = c.op("add", c.op("divide", x, c.cast(scale, kind)), c.cast(zero, kind))
    low, high = limits(out)
    rounded = half_away(c, at)
    if out.bits < 32:
        rounded = c.op("clip", rounded, min=float(low), max=float(high))
    return c.cast(rounded, out)


def _dequantize(c: RelayCall) -> Expr:
    x = c.tensor(0)
    axis, out = channel(c, x), c.dtype_or("out_dtype", FLOAT32)
    scale, zero = (_one(c, i) for i in (1, 2))
    alone = all(c.shape_of(p) == () for p in (scale, zero))
    return dequantized(c, x, scale, zero, -1 if alone else axis, out)


def _one(c: RelayCall, index: int) -> Expr:
    """A scale or zero point: one, or a vector."""
    value = c.tensor(index)
    return c.reshaped(value, ()) if c.shape_of(value) == (1,) else value


def dequantized(
    c: RelayCall, x: Expr, scale: Expr, zero: Expr, axis: int = -1, out: DType = FLOAT32
) -> Expr:
    """Integers as reals; scales and zero points that are vectors lie along an axis."""
    return c.op("dequantize", x, scale, zero, axis=axis, out_dtype=out)


CONVERTERS: dict[str, Converter] = {
    "qnn.requantize": _requantize,
    "qnn.quantize": _quantize,
    "qnn.dequantize": _dequantize,
}
