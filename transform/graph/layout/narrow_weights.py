"""Quantized weights that may stay integers of 8 bits or fewer: told by their values and scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import FLOAT32, INT8, Array, dtype
from unity.ir.graph import Call, Constant
from unity.op.contraction.matmul_packed import WORD_BITS, panels, words
from unity.op.elementwise.quantize import block_of
from unity.op.registry import dtype_attr, int_attr


def is_narrow(call: Call) -> bool:
    """Whether a call dequantizes a constant matrix to float32 that 8 bits hold without zeros."""
    match call.args:
        case (Constant(x), Constant(scale), Constant(zero)):
            pass
        case _:
            return False
    if scale.ndim > 1 or zero.ndim > 1:
        return False  # of blocks
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


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of integers whose scales belong to blocks of rows.

    Attributes:
        integers: From 0 on, in uint8.
        scale: One for each block of rows and column.
        shift: What is added to the scaled integers.
        bits: Of an integer: 4 or 8.
    """

    integers: Array
    scale: Array
    shift: Array
    bits: int

    def packed(self, width: int) -> tuple[Array, Array, Array]:
        """Words, scales and shifts in panels, as `matmul_words` takes them."""
        scale, shift = panels(self.scale, width), panels(self.shift, width)
        return words(self.integers, width, self.bits), scale, shift


def bits_of(call: Call) -> int | None:
    """How many bits hold a constant matrix whose scales belong to blocks of its rows or columns.

    None for other calls of `dequantize`, and blocks that no whole words hold.
    """
    match call.args:
        case (Constant(x), Constant(scale), Constant()):
            pass
        case _:
            return None
    of, block = dtype(x.dtype), block_of(call.attrs)
    kinds = {dtype(scale.dtype), dtype_attr(call.attrs, "out_dtype")}
    if x.ndim != 2 or scale.ndim != 2 or not block or kinds != {FLOAT32} or of.bits > INT8.bits:
        return None
    bits = 4 if of.bits <= 4 or _fits(x, 4) else 8
    depth = x.shape[int_attr(call.attrs, "axis")]
    return None if depth % block or block % (WORD_BITS // bits) else bits


def _fits(x: Array, bits: int) -> bool:
    low = -(1 << bits - 1) if dtype(x.dtype).kind == "int" else 0
    return not x.size or low <= int(x.min()) <= int(x.max()) < low + (1 << bits)


def blocks_of_rows(call: Call) -> Blocks | None:
    """The matrix, where the blocks are of its rows."""
    bits = bits_of(call)
    if bits is None or int_attr(call.attrs, "axis") % 2 != 0:
        return None
    x, scale, zero = (a.data for a in call.args if isinstance(a, Constant))
    offset = 1 << bits - 1 if dtype(x.dtype).kind == "int" else 0
    whole = (x.astype(np.int16) + offset).astype(np.uint8)
    factor = scale.astype(np.float32)
    point = zero.astype(np.float32) + np.float32(offset)
    return Blocks(whole, factor, np.broadcast_to(-factor * point, factor.shape), bits)
