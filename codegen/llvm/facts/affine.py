"""Facts about index expressions that choose an instruction: ramps, signs, places in a buffer."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from unity.arith.wrapping import wraps
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Imm,
    Intrinsic,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)


@dataclass(frozen=True, slots=True)
class Affine:
    """The lanes ``base, base + stride, ...``; the stride is a number where it is constant."""

    base: PrimExpr
    stride: int | PrimExpr


def as_ramp(e: PrimExpr) -> Affine | None:
    """A vector of indices as a ramp, seen through sums and products with uniform values."""
    match e:
        case Ramp(base, Imm(stride)):
            return Affine(base, int(stride))
        case Ramp(base, stride):
            return Affine(base, stride)
        case Broadcast(value):
            return Affine(value, 0)
        case Imm(value, dtype):
            return Affine(imm(int(value), dtype.element), 0)
        case Binary("add" | "sub" as op, a, b):
            x, y = _or_uniform(a), _or_uniform(b)
            if x is None or y is None:
                return None
            step = _combine(op, x.stride, y.stride)
            return None if step is None else Affine(_sum(op, x.base, y.base), step)
        case Binary("mul", a, b):
            x, y = _or_uniform(a), _or_uniform(b)
            if x is None or y is None:
                return None
            if x.stride == 0:
                x, y = y, x
            if y.stride != 0:
                return None
            return Affine(Binary("mul", x.base, y.base), _scale(x.stride, y.base))
        case _:
            return None


def _sum(op: str, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if isinstance(b, Imm) and b.value == 0:
        return a
    return Binary("add" if op == "add" else "sub", a, b)


def _or_uniform(e: PrimExpr) -> Affine | None:
    return Affine(e, 0) if e.dtype.lanes == 1 else as_ramp(e)


def _combine(op: str, a: int | PrimExpr, b: int | PrimExpr) -> int | PrimExpr | None:
    if isinstance(a, int) and isinstance(b, int):
        return a + b if op == "add" else a - b
    if b == 0:
        return a
    return b if a == 0 and op == "add" else None


def _scale(stride: int | PrimExpr, factor: PrimExpr) -> int | PrimExpr:
    if stride == 0:
        return 0
    if isinstance(stride, int):
        if isinstance(factor, Imm):
            return stride * int(factor.value)
        return factor if stride == 1 else Binary("mul", factor, imm(stride))
    return Binary("mul", stride, factor)


@dataclass(frozen=True, slots=True)
class Near:
    """The lanes ``base + offset`` for an offset each; `base` None where there is nothing to add."""

    base: PrimExpr | None
    offsets: tuple[int, ...]


def as_near(e: PrimExpr) -> Near | None:
    """A vector of indices as a uniform value and a number for each lane.

    >>> as_near(Binary("floordiv", Ramp(imm(4), imm(1), 4), Broadcast(imm(2), 4)))
    Near(base=None, offsets=(2, 2, 3, 3))
    """
    match e:
        case Ramp(base, Imm(int() as stride), lanes):
            return _near(base, tuple(i * stride for i in range(lanes)))
        case Broadcast(value, lanes):
            return _near(value, (0,) * lanes)
        case Binary("add", a, b):
            x, y = as_near(a), as_near(b)
            if x is None or y is None:
                return None
            total = y.base if x.base is None else x.base
            if x.base is not None and y.base is not None:
                total = Binary("add", x.base, y.base)
            return Near(total, tuple(p + q for p, q in zip(x.offsets, y.offsets, strict=True)))
        case Binary("floordiv" | "floormod" | "mul" as op, a, Broadcast(Imm(int() as by))):
            x = as_near(a)
            if x is None or x.base is not None or by <= 0:
                return None
            return Near(None, tuple(_whole(op, p, by) for p in x.offsets))
        case _:
            return None


def _near(base: PrimExpr, offsets: tuple[int, ...]) -> Near:
    if isinstance(base, Imm):
        return Near(None, tuple(int(base.value) + p for p in offsets))
    return Near(base, offsets)


def _whole(op: str, a: int, b: int) -> int:
    return a // b if op == "floordiv" else a % b if op == "floormod" else a * b


def is_nonnegative(e: PrimExpr, variables: AbstractSet[PrimVar]) -> bool:
    """Whether an integer is certainly not negative, given the variables that are not."""
    if e.dtype.kind == "uint":
        return True
    match e:
        case Imm(value):
            return value >= 0
        case SizeVar():
            return True
        case PrimVar():
            return e in variables
        case Binary("add" | "mul") if e.dtype.bits < 64 or wraps(e):
            return False
        case Binary("add" | "mul" | "floordiv" | "truncdiv" | "min" | "and", a, b):
            return is_nonnegative(a, variables) and is_nonnegative(b, variables)
        case Binary("floormod", _, b):
            return is_nonnegative(b, variables)
        case Binary("truncmod" | "shr", a, _):
            return is_nonnegative(a, variables)
        case Binary("max", a, b):
            return is_nonnegative(a, variables) or is_nonnegative(b, variables)
        case Ramp(base, stride):
            return is_nonnegative(base, variables) and is_nonnegative(stride, variables)
        case Broadcast(value):
            return is_nonnegative(value, variables)
        case Select(_, a, b):
            return is_nonnegative(a, variables) and is_nonnegative(b, variables)
        case Cast(_, value):
            return value.dtype.kind in ("uint", "bool") and e.dtype.bits > value.dtype.bits
        case Intrinsic("popcount" | "clz", _):
            return True
        case _:
            return False


def is_within(e: Load) -> bool:
    """Whether what is read lies at constant places inside its buffer."""
    match e.buffer.shape, e.indices:
        case (Imm(int() as size),), (Imm(int() as at),):
            return 0 <= at < size
        case (Imm(int() as size),), (Ramp(Imm(int() as at), Imm(int() as by), lanes),):
            return 0 <= at < size and 0 <= at + by * (lanes - 1) < size
        case _:
            return False
