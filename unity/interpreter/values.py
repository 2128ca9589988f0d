"""Values of the graph level, and the check of a value against a type that binds its symbols.

A tensor is a numpy array, a shape a tuple of ints, a prim value a Python number, a text a str, a
dtype numpy's, a tuple a tuple, a function a `Closure`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np

from unity.errors import Span, UnityError
from unity.interpreter.sizes import Sizes, prim_of
from unity.ir.dims import Dim
from unity.ir.dtype import Array, dtype, scalar_fault
from unity.ir.graph import Function, Var
from unity.ir.module import ExternFunc
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)
from unity.op.registry import RefArg


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A graph function with the values of the vars and symbols around it."""

    name: str
    function: Function
    env: dict[Var, Value]
    sizes: Sizes


@dataclass(frozen=True, slots=True, eq=False)
class External:
    """A function of the host, as the module declares it."""

    extern: ExternFunc
    function: Callable[..., object]


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """An object that only functions of the host look into."""

    value: object


Literal: TypeAlias = int | float | bool | str | np.dtype[Any]
Callee: TypeAlias = "Closure | External | Callable[..., object]"
Value: TypeAlias = "Array | Literal | tuple[Value, ...] | Callee | Opaque"
Pending: TypeAlias = "list[tuple[PrimExpr, int, str]]"


def bind(type_: Type, value: Value, sizes: Sizes, where: str, span: Span | None = None) -> None:
    """Check a value against a type; symbols that have no value yet get theirs.

    Raises:
        UnityError: The value is of another type; the message says where, what was expected and got.
    """
    bind_all([(type_, value, where)], sizes, span)


def bind_result(
    type_: Type, value: Value, sizes: Sizes, where: str, span: Span | None = None
) -> None:
    """`bind` of what a function returns: symbols that it alone holds need not be determined.

    Of ``min(k, n)`` elements it has 0 where n is 0, whatever k is.
    """
    bind_all([(type_, value, where)], sizes, span, determined=False)


def bind_all(
    rows: list[tuple[Type, Value, str]],
    sizes: Sizes,
    span: Span | None = None,
    *,
    determined: bool = True,
) -> None:
    """`bind` of several values at once: a symbol may be given by any of them."""
    pending: Pending = []
    for type_, value, where in rows:
        _collect(type_, value, where, span, pending)
    while pending:
        left = [each for each in pending if not sizes.match(*each, span)]
        if len(left) == len(pending):
            if not determined:
                left = [(e, got, where) for e, got, where in left if not sizes.allows(e, got)]
                if not left:
                    return
            _, got, where = left[0]
            raise UnityError(f"{where} is {got}, which does not determine its symbols", span)
        pending = left


def _collect(type_: Type, value: Value, where: str, span: Span | None, pending: Pending) -> None:
    match type_:
        case ObjectType():
            return
        case TensorType(shape, dtype):
            if not isinstance(value, np.ndarray):
                raise UnityError(f"{where} should be a tensor, got {kind_of(value)}", span)
            if dtype is not None and value.dtype != dtype.numpy:
                raise UnityError(f"{where} should be of {dtype}, got {value.dtype}", span)
            _dims(shape, value.shape, where, span, pending)
        case ShapeType(dims):
            if not isinstance(value, tuple) or not all(isinstance(d, int) for d in value):
                raise UnityError(f"{where} should be a shape, got {kind_of(value)}", span)
            _dims(dims, tuple(d for d in value if isinstance(d, int)), where, span, pending)
        case PrimType(dtype, known):
            fault = scalar_fault(dtype, value)
            if fault is not None:
                raise UnityError(f"{where}: {fault}", span)
            if known is not None and isinstance(value, int | float):
                pending.append((prim_of(known), int(value), where))
        case TupleType(fields):
            if not isinstance(value, tuple) or len(value) != len(fields):
                raise UnityError(
                    f"{where} should be a tuple of {len(fields)}, got {kind_of(value)}", span
                )
            for i, (field, item) in enumerate(zip(fields, value, strict=True)):
                _collect(field, item, f"{where}[{i}]", span, pending)
        case FuncType():
            if not isinstance(value, Closure | External):
                raise UnityError(f"{where} should be a function, got {kind_of(value)}", span)
        case _:
            assert_never(type_)


def _dims(
    dims: tuple[Dim, ...] | int | None,
    got: tuple[int, ...],
    where: str,
    span: Span | None,
    pending: Pending,
) -> None:
    if dims is None:
        return
    rank = dims if isinstance(dims, int) else len(dims)
    if rank != len(got):
        raise UnityError(f"{where} should have rank {rank}, got shape {got}", span)
    if not isinstance(dims, int):
        pending.extend(
            (prim_of(d), n, f"{where}, dim {axis},")
            for axis, (d, n) in enumerate(zip(dims, got, strict=True))
        )


def kind_of(value: Value) -> str:
    """What a value is, for messages."""
    match value:
        case np.ndarray():
            return f"a tensor of {value.dtype} and shape {value.shape}"
        case tuple():
            return f"a tuple of {len(value)}"
        case Closure() | External():
            return "a function"
        case bool() | int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value!r}"
        case Opaque(inside):
            return f"a {type(inside).__name__}"
        case _:
            return f"a {type(value).__name__}"


def as_value(raw: object) -> Value:
    """What a caller or an op's reference gave, as a value: numpy scalars become rank-0 arrays."""
    match raw:
        case (
            np.ndarray()
            | Closure()
            | External()
            | Opaque()
            | bool()
            | int()
            | float()
            | str()
            | np.dtype()
        ):
            return raw
        case np.generic():
            return np.asarray(raw)
        case tuple() | list():
            return tuple(as_value(item) for item in raw)
        case _ if callable(raw):
            return raw
        case _:
            raise UnityError(f"expected an array, a number or a tuple, got {type(raw).__name__}")


def as_given(type_: Type, raw: object) -> Value:
    """What a caller gave for a parameter; numpy's numbers are scalars where it takes one."""
    match type_, raw:
        case ObjectType(), list():
            return Opaque(raw)
        case ObjectType(), _:
            return from_host(raw)
        case PrimType(), np.generic():
            return as_value(raw.item())
        case TupleType(fields), tuple() | list() if len(raw) == len(fields):
            return tuple(as_given(t, v) for t, v in zip(fields, raw, strict=True))
        case _:
            return as_value(raw)


def from_host(raw: object) -> Value:
    """What a function of the host gave, or a caller for a parameter of any type."""
    if isinstance(raw, tuple | list):
        return tuple(map(from_host, raw))
    try:
        return as_value(raw)
    except UnityError:
        return Opaque(raw)


def to_host(value: Value) -> object:
    """A value as functions of the host take it."""
    if isinstance(value, tuple):
        return tuple(map(to_host, value))
    return value.value if isinstance(value, Opaque) else value


def conform(type_: Type, value: Value) -> Value:
    """A shape given as arrays becomes a tuple of ints, where the type says it is a shape."""
    match type_, value:
        case ShapeType(), np.ndarray():
            return tuple(int(d) for d in value)
        case ShapeType(), tuple():
            return tuple(int(d) if isinstance(d, np.ndarray) else d for d in value)
        case PrimType(dtype), np.ndarray():
            number = value.item()
            return bool(number) if dtype.kind == "bool" else number
        case TupleType(fields), tuple() if len(fields) == len(value):
            return tuple(conform(t, v) for t, v in zip(fields, value, strict=True))
        case _:
            return value


def reference_arg(value: Value, op: str, span: Span | None) -> RefArg:
    """A value as the reference of an operator takes it."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool | int | float):
        kinds: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}
        return np.asarray(value, dtype(kinds[type(value)]).numpy)
    if isinstance(value, tuple):
        numbers = tuple(v for v in value if isinstance(v, int))
        if len(numbers) == len(value):
            return numbers
        arrays = tuple(v for v in value if isinstance(v, np.ndarray))
        if len(arrays) == len(value):
            return arrays
    raise UnityError(f"{op} can't take {kind_of(value)}", span)
