"""Scalar and vector arithmetic in the exact dtype.

How a value is held while a kernel is interpreted: a scalar integer is a Python int within its
dtype's range, a scalar bool a bool, a scalar float a numpy (or ml_dtypes) scalar, a vector of any
kind a 1-d numpy array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import FLOAT32, DType
from unity.ir.prim_expr import DIVISIONS, BinaryOp, CompareOp

Held: TypeAlias = Any
"""A scalar or a vector; which one the dtype of the expression tells."""
BinaryFn: TypeAlias = Callable[[Held, Held], Held]
UnaryFn: TypeAlias = Callable[[Held], Held]

COMPARE: dict[CompareOp, BinaryFn] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def hold(value: Held, dtype: DType) -> Held:
    """A number or numpy value of any kind as it is held for `dtype`, in range already."""
    if dtype.lanes > 1:
        return np.broadcast_to(np.asarray(value).astype(dtype.numpy), (dtype.lanes,))
    match dtype.kind:
        case "bool":
            return bool(value)
        case "int" | "uint" | "handle":
            return int(value)
        case "float" | "bfloat" | "float8" | "float4":
            return dtype.numpy.type(value)


def holder(dtype: DType) -> UnaryFn:
    """`hold` for one scalar dtype, without the choice at each call."""
    match dtype.kind:
        case "bool":
            return bool
        case "int" | "uint" | "handle":
            return int
        case "float" | "bfloat" | "float8" | "float4":
            return lambda value: value


def wrapper(dtype: DType) -> UnaryFn:
    """Brings a Python integer into the range of an integer dtype, modulo a power of two."""
    mask, half = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
    if dtype.kind == "int":
        return lambda v: v if -half <= v < half else ((v + half) & mask) - half
    return lambda v: v & mask


def binary(op: BinaryOp, dtype: DType) -> BinaryFn:
    """The function of an operation on a dtype."""
    if dtype.lanes > 1:
        return _vector(op, dtype)
    if dtype.kind == "bool":
        return _BOOL.get(op) or _reject(op, dtype)
    if dtype.is_float:
        return _FLOAT.get(op) or _reject(op, dtype)
    exact, wrap = _INT.get(op) or _reject(op, dtype), wrapper(dtype)
    if op in _GROWS:
        return _GROWS[op](wrap, -1 << (dtype.bits - 1) if dtype.kind == "int" else 0, _most(dtype))
    if op in ("shl", "shr"):
        bits = dtype.bits
        return lambda a, b: wrap(exact(a, _shift_amount(b, bits)))
    return lambda a, b: wrap(exact(a, b))


def _most(dtype: DType) -> int:
    """The greatest integer of a dtype."""
    return (1 << (dtype.bits - (dtype.kind == "int"))) - 1


def _add(wrap: UnaryFn, least: int, most: int) -> BinaryFn:
    def add(a: int, b: int) -> int:
        v = a + b
        return v if least <= v <= most else int(wrap(v))

    return add


def _sub(wrap: UnaryFn, least: int, most: int) -> BinaryFn:
    def sub(a: int, b: int) -> int:
        v = a - b
        return v if least <= v <= most else int(wrap(v))

    return sub


def _mul(wrap: UnaryFn, least: int, most: int) -> BinaryFn:
    def mul(a: int, b: int) -> int:
        v = a * b
        return v if least <= v <= most else int(wrap(v))

    return mul


_GROWS: dict[BinaryOp, Callable[[UnaryFn, int, int], BinaryFn]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
}
"""What indices are made of: the result is nearly always in range, which is asked in place."""


def _reject(op: BinaryOp, dtype: DType) -> BinaryFn:
    raise UnityError(f"{op!r} is not defined on {dtype}")


def _shift_amount(b: int, bits: int) -> int:
    if not 0 <= b < bits:
        raise UnityError(f"a shift by {b} of a value of {bits} bits")
    return b


def _divisor(b: int) -> int:
    if b == 0:
        raise UnityError("an integer is divided by zero")
    return b


def _truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(_divisor(b))
    return quotient if (a < 0) == (b < 0) else -quotient


_INT: dict[BinaryOp, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // _divisor(b),
    "floormod": lambda a, b: a % _divisor(b),
    "truncdiv": _truncdiv,
    "truncmod": lambda a, b: a - b * _truncdiv(a, b),
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
_BOOL: dict[BinaryOp, BinaryFn] = {
    "add": operator.or_,  # numpy's meaning of arithmetic on bools
    "mul": operator.and_,
    "min": operator.and_,
    "max": operator.or_,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def _float_min(a: Held, b: Held) -> Held:
    return a if a < b or a != a else b


def _float_max(a: Held, b: Held) -> Held:
    return a if a > b or a != a else b


def _float_fmin(a: Held, b: Held) -> Held:
    return a if a <= b or b != b else b


def _float_fmax(a: Held, b: Held) -> Held:
    return a if a >= b or b != b else b


_FLOAT: dict[BinaryOp, BinaryFn] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncdiv": lambda a, b: type(a)(np.trunc(a / b)),
    "truncmod": np.fmod,
    "min": _float_min,
    "max": _float_max,
    "fmin": _float_fmin,
    "fmax": _float_fmax,
}
_VECTOR: dict[BinaryOp, BinaryFn] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}


def _vector(op: BinaryOp, dtype: DType) -> BinaryFn:
    """Lane by lane: numpy's function where it has the scalar's meaning."""
    scalar = binary(op, dtype.element)  # also rejects what the dtype has not
    whole = _VECTOR.get(op)
    divides = op in DIVISIONS
    if whole is None or (divides and not dtype.is_float) or op in ("shl", "shr"):
        element = dtype.element

        def by_lane(a: Held, b: Held) -> Held:
            left, right = np.broadcast_arrays(a, b)
            lanes = [
                scalar(hold(x, element), hold(y, element)) for x, y in zip(left, right, strict=True)
            ]
            return np.array(lanes, dtype.numpy)

        return by_lane
    return whole


def caster(source: DType, target: DType) -> UnaryFn:
    """A conversion by numpy's rules."""
    if source == target:
        return lambda v: v
    if target.kind == "bool" and target.lanes == 1:
        return lambda v: bool(v != 0)
    if target.is_int and source.is_float and source.bits < FLOAT32.bits:
        # ml_dtypes' own give 0 where a number does not fit, as numpy's do not
        whole = caster(FLOAT32.with_lanes(source.lanes), target)
        return lambda v: whole(np.asarray(v).astype(np.float32)[()])
    if target.lanes > 1:
        return lambda v: np.asarray(v).astype(target.numpy)
    if source.is_float:
        back = holder(target)
        return lambda v: back(v.astype(target.numpy))
    if target.is_float:
        through = source.numpy
        return lambda v: np.asarray(v, through).astype(target.numpy)[()]
    wrap = wrapper(target)
    return lambda v: wrap(int(v))
