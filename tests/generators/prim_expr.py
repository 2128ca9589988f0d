"""Random prim expressions that are defined for every input: no division by zero, no bad shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from unity.ir.dtype import BOOL, INT64, DType
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Intrinsic,
    Not,
    PrimExpr,
    Select,
    imm,
)

_EXACT: tuple[BinaryOp, ...] = ("add", "sub", "mul", "min", "max")
_BITS: tuple[BinaryOp, ...] = ("and", "or", "xor")
_DIVIDE: tuple[BinaryOp, ...] = ("floordiv", "floormod", "truncdiv", "truncmod")
_SHIFT: tuple[BinaryOp, ...] = ("shl", "shr")
_COMPARE: tuple[CompareOp, ...] = ("eq", "ne", "lt", "le", "gt", "ge")
_SMOOTH = ("tanh", "sigmoid", "floor", "abs", "sin")


@dataclass
class Leaves:
    """What expressions are made of: values by dtype, beside literals."""

    of: dict[DType, list[PrimExpr]] = field(default_factory=dict[DType, list[PrimExpr]])

    def add(self, *values: PrimExpr) -> None:
        for value in values:
            self.of.setdefault(value.dtype, []).append(value)

    def dtypes(self) -> list[DType]:
        return list(self.of)


def literal(rng: Random, dtype: DType) -> Imm:
    """A literal that every dtype of the kind can hold."""
    if dtype == BOOL:
        return Imm(rng.random() < 0.5, BOOL)
    if dtype.is_float:
        return Imm(rng.choice((0.0, 1.0, -1.5, 0.25, 2.0)), dtype)
    low = 0 if dtype.kind == "uint" else -7
    return imm(rng.randint(low, 7), dtype)


def expression(
    rng: Random, leaves: Leaves, dtype: DType, depth: int, intrinsics: bool = True
) -> PrimExpr:
    """A random expression of a dtype.

    Args:
        rng: The choices.
        leaves: Values it may use.
        dtype: What it is of.
        depth: How deep it may nest.
        intrinsics: Whether functions such as tanh may occur, whose last bits depend on the machine.
    """

    def inner(of: DType = dtype) -> PrimExpr:
        return expression(rng, leaves, of, depth - 1, intrinsics)

    known = leaves.of.get(dtype, [])
    if depth <= 0 or rng.random() < 0.15:
        others = [d for d in leaves.dtypes() if d != BOOL]
        if known and rng.random() < 0.8:
            return rng.choice(known)
        if not known and others and dtype != BOOL and rng.random() < 0.7:
            return _converted(rng.choice(leaves.of[rng.choice(others)]), dtype)
        return literal(rng, dtype)
    if dtype == BOOL:
        return _condition(rng, leaves, depth, intrinsics)
    kind = rng.random()
    if kind < 0.15:
        return Select(inner(BOOL), inner(), inner())
    if kind < 0.25:
        others = [d for d in leaves.dtypes() if d not in (dtype, BOOL)]
        return _converted(inner(rng.choice(others)), dtype) if others else inner()
    if dtype.is_float:
        if intrinsics and kind < 0.4:
            return Intrinsic(rng.choice(_SMOOTH), (inner(),), dtype)
        return Binary(rng.choice(_EXACT), inner(), inner())
    if kind < 0.45:
        return Binary(rng.choice(_DIVIDE), inner(), imm(rng.randint(1, 5), dtype))
    if kind < 0.55:
        return Binary(rng.choice(_SHIFT), inner(), imm(rng.randint(0, 3), dtype))
    return Binary(rng.choice((*_EXACT, *_BITS)), inner(), inner())


def _converted(value: PrimExpr, dtype: DType) -> PrimExpr:
    """A cast that is defined for every value: floats reach integers through a small range."""
    if value.dtype == dtype:
        return value
    if value.dtype.is_float and not dtype.is_float:
        low = Imm(0.0 if dtype.kind == "uint" else -100.0, value.dtype)
        value = Binary("min", Binary("max", value, low), Imm(100.0, value.dtype))
        value = Select(Compare("eq", value, value), value, Imm(0.0, value.dtype))
    return Cast(dtype, value)


def _condition(rng: Random, leaves: Leaves, depth: int, intrinsics: bool) -> PrimExpr:
    kind = rng.random()
    if kind < 0.2:
        return Not(expression(rng, leaves, BOOL, depth - 1, intrinsics))
    if kind < 0.45:
        a, b = (expression(rng, leaves, BOOL, depth - 1, intrinsics) for _ in range(2))
        return Binary(rng.choice(_BITS), a, b)
    of = rng.choice([d for d in leaves.dtypes() if d != BOOL] or [INT64])
    a, b = (expression(rng, leaves, of, depth - 1, intrinsics) for _ in range(2))
    return Compare(rng.choice(_COMPARE), a, b)


def in_bounds(
    rng: Random, variables: Sequence[tuple[PrimExpr, PrimExpr]], extent: PrimExpr
) -> PrimExpr | None:
    """An index below `extent`, from variables with their extents; None if there is no way."""
    fitting = [v for v, n in variables if n == extent]
    if fitting and rng.random() < 0.85:
        chosen = rng.choice(fitting)
        return chosen if rng.random() < 0.75 else extent - 1 - chosen
    if isinstance(extent, Imm) and extent.value:
        size = int(extent.value)
        if variables and rng.random() < 0.5:
            return (rng.choice(variables)[0] * rng.randint(1, 3) + rng.randint(0, 3)) % size
        return imm(rng.randrange(size))
    return rng.choice(fitting) if fitting else None
