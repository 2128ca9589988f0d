"""Types as annotations: ``f32[Tensor, n, 128]``, ``R.Shape(n, 4)``."""

from __future__ import annotations

from typing import assert_never

from unity.ir.dims import Dim
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

from .literals import SymbolNames, dim_in, element_text


def type_text(t: Type, renamed: SymbolNames) -> str:
    """The annotation of a type."""
    match t:
        case TensorType(shape, dtype):
            element = "R.any_dtype" if dtype is None else element_text(dtype)
            return f"{element}[Tensor, {_tensor_shape(shape, renamed)}]"
        case ShapeType(dims):
            return f"R.Shape({_dims(dims, renamed)})"
        case PrimType(dtype, None):
            return f'R.Prim("{dtype}")'
        case PrimType(dtype, value):
            assert value is not None
            return f'R.Prim("{dtype}", {dim_in(value, renamed)})'
        case TupleType(fields):
            return f"R.Tuple({', '.join(type_text(f, renamed) for f in fields)})"
        case FuncType(params, result, pure):
            inner = ", ".join(type_text(p, renamed) for p in params)
            impure = "" if pure else ", pure=False"
            return f"R.Func([{inner}], {type_text(result, renamed)}{impure})"
        case ObjectType():
            return "R.Object"
        case _:
            assert_never(t)


def _tensor_shape(shape: tuple[Dim, ...] | int | None, renamed: SymbolNames) -> str:
    return "()" if shape == () else _dims(shape, renamed)


def _dims(dims: tuple[Dim, ...] | int | None, renamed: SymbolNames) -> str:
    match dims:
        case None:
            return "..."
        case int():
            return f"R.rank({dims})"
        case _:
            return ", ".join(dim_in(d, renamed) for d in dims)
