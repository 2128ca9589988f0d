"""The operations that reductions combine values by: their neutral elements, and steps by them."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeGuard, get_args

from unity.ir.dtype import DType
from unity.ir.prim_expr import Binary, BinaryOp, Load, PrimExpr, imm
from unity.ir.stmt import Store
from unity.te import max_value, min_value

ReduceOp: TypeAlias = Literal["add", "mul", "min", "max", "fmin", "fmax", "and", "or"]
_REDUCE_OPS = frozenset(get_args(ReduceOp))

EXTREMES = ("min", "max", "fmin", "fmax")
"""Operations that give one of their operands, and so round nothing."""


def combines(op: BinaryOp) -> TypeGuard[ReduceOp]:
    """Whether an operation may take its operands in any order, and has a neutral element."""
    return op in _REDUCE_OPS


def neutral(op: ReduceOp, dtype: DType) -> PrimExpr:
    """What an operation leaves the other operand as it is with."""
    match op:
        case "add" | "or":
            return imm(0, dtype)
        case "mul":
            return imm(1, dtype)
        case "min" | "fmin":
            return max_value(dtype)
        case "and":
            return imm(1 if dtype.kind == "bool" else -1, dtype)
        case "max" | "fmax":
            return min_value(dtype)


def step_of(store: Store) -> tuple[ReduceOp, PrimExpr] | None:
    """How a statement adds to what is at its place, and what; None if it does not."""
    here = Load(store.buffer, store.indices)
    match store.value:
        case Binary(op, a, b) if combines(op) and here in (a, b):
            return op, b if a == here else a
        case _:
            return None
