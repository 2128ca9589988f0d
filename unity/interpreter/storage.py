"""Memory of interpreted programs: poisoned when fresh, strided where a buffer says so.

Fresh memory holds NaN, or a bit pattern no program would compute, so that a read before the first
write shows in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, DType

ARENA_POISON = 0xFF  # NaN in every IEEE format, -1 in every signed integer
_INT_POISON = 0xA5


def fresh(shape: Sequence[int], dtype: DType) -> Array:
    """An uninitialised tensor, poisoned."""
    result = np.empty(tuple(shape), dtype.numpy)
    if dtype.is_float:
        result.fill(np.nan)
    elif dtype.bits < 8 or dtype.kind == "bool":  # a pattern that is a value of the type
        result.fill(1)
    else:
        result.reshape(-1).view(np.uint8).fill(_INT_POISON)
    return result


def fresh_strided(shape: Sequence[int], strides: Sequence[int], dtype: DType) -> Array:
    """An uninitialised tensor with strides in elements."""
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if prod(shape) else 0
    flat = fresh((span,), dtype)
    in_bytes = tuple(s * flat.itemsize for s in strides)
    return np.lib.stride_tricks.as_strided(flat, tuple(shape), in_bytes)


def fresh_arena(nbytes: int) -> Array:
    """An uninitialised arena."""
    return np.full(nbytes, ARENA_POISON, np.uint8)


def arena_view(arena: Array, offset: int, shape: Sequence[int], dtype: DType) -> Array:
    """A tensor stored in an arena at a byte offset: the same memory.

    Raises:
        UnityError: It does not fit, or is not aligned for its dtype.
    """
    nbytes = prod(shape) * dtype.bytes
    if offset < 0 or offset + nbytes > arena.nbytes:
        raise UnityError(
            f"a view of {nbytes} bytes at offset {offset} leaves the arena of {arena.nbytes} bytes"
        )
    if offset % dtype.bytes:
        raise UnityError(f"a view of {dtype} at offset {offset} is not aligned")
    return arena[offset : offset + nbytes].view(dtype.numpy).reshape(tuple(shape))
