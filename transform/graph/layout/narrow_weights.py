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
    wide = x.astype(np.int16)
    if np.any(zero):
        point = zero.astype(np.int16)
        wide = wide - (point.reshape(-1, *(1,) * (1 - axis % 2)) if point.ndim else point)
    fits = x.dtype == np.int8 and not np.any(zero)
    if not fits and wide.size and not -128 <= int(wide.min()) <= int(wide.max()) <= 127:
        return None
    return wide.astype(np.int8)
