"""Specs and signatures as text, for reports and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from unity.runtime.bytecode import (
    FunctionCode,
    ObjectSpec,
    ScalarSpec,
    ShapeSpec,
    Spec,
    TensorSpec,
    TupleSpec,
)
from unity.runtime.bytecode.sizes import Size, size_text


def spec_text(spec: Spec, names: Sequence[str]) -> str:
    """A spec over the symbols' names: ``float32[n, 4]``."""
    match spec:
        case TensorSpec(kind, shape, rank):
            return f"{kind or 'any'}[{_dims(shape, rank, names)}]"
        case ShapeSpec(dims, rank):
            return f"shape({_dims(dims, rank, names)})"
        case ScalarSpec(kind, value):
            return kind if value is None else f"{kind}({size_text(value, names)})"
        case TupleSpec(fields):
            return f"({', '.join(spec_text(f, names) for f in fields)})"
        case ObjectSpec():
            return "object"
        case _:
            assert_never(spec)


def function_text(code: FunctionCode) -> str:
    """A function's name, parameters and result."""
    names = [s.name for s in code.symbols]
    params = ", ".join(f"{q.name}: {spec_text(q.spec, names)}" for q in code.params)
    return f"{code.name}({params}) -> {spec_text(code.result, names)}"


def _dims(dims: Sequence[Size] | None, rank: int | None, names: Sequence[str]) -> str:
    if dims is not None:
        return ", ".join(size_text(s, names) for s in dims)
    return "..." if rank is None else f"rank {rank}"
