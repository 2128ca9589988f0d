"""Quantized weights that may stay integers of 8 bits: told by their values and scales."""

from __future__ import annotations

import numpy as np

from unity.ir.dtype import FLOAT32, INT8, Array, dtype
from unity.ir.graph import Call, Constant
from unity.op.registry import dtype_attr, int_attr


def is_narrow(call: Call) -> bool:
    """Whether a call dequantizes a constant matrix to float32 that 8 bits hold without zeros."""
    match call.args:
        case (Constant(x), Constant(scale), Constant(zero)):
            pass
        case _:
            return False
    if x.ndim != 2 or {dtype(scale.dtype), dtype_attr(call.attrs, "out_dtype")} != {FLOAT32}:
        return False
    return centred(x, zero, int_attr(call.attrs, "axis")) is not None


def centred(x: Array, zero: Array, axis: int) -> Array | None:
    """Integers without their zero points in 8 bits; None for others."""
    if dtype(x.dtype).bits > INT8.bits:
        return None
    if not np.any(zero):
        return in_8_bits(x)
    point = zero.astype(np.int16)
    behind = x.ndim - 1 - axis % max(1, x.ndim)
    return in_8_bits(
        x.astype(np.int16) - (point.reshape(-1, *(1,) * behind) if point.ndim else point)
    )


def in_8_bits(x: Array) -> Array | None:
    """Integers in int8, where it holds them all."""
    if x.dtype == np.int8:
        return x
    if x.size and not -128 <= int(x.min()) <= int(x.max()) <= 127:
        return None
    return x.astype(np.int8)
