"""Values of a model while it is exported: tensors with operators, and ``ops``, all operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, SymDim
from unity.ir.dtype import Array, DType
from unity.ir.graph import Constant, Expr, Tuple, TupleGet, Var
from unity.ir.types import TensorType, TupleType
from unity.op.builder import GraphBuilder
from unity.op.call import call_op
from unity.op.movement.slicing import Index, part_of
from unity.op.table import OPS

from .parameter import Parameter

Operand: TypeAlias = "Value | Parameter | Array | float"


@dataclass(frozen=True, slots=True)
class Exporting:
    """What is exported.

    Attributes:
        builder: Grows the function.
        of: What a parameter is there.
    """

    builder: GraphBuilder
    of: Callable[[Parameter], Expr]


CURRENT: ContextVar[Exporting | None] = ContextVar("CURRENT", default=None)


def exporting() -> Exporting:
    """What is exported now.

    Raises:
        UnityError: Nothing is.
    """
    found = CURRENT.get()
    if found is None:
        raise UnityError(
            "operators of unity.nn make a graph: there are no numbers outside of an export",
            hint="call them in a module's forward; model.export(...) runs it",
        )
    return found


class Value:
    """A tensor of the graph that a model becomes.

    Args:
        var: Its variable.
    """

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        self.var = var

    @property
    def type(self) -> TensorType:
        """Its type.

        Raises:
            UnityError: It is no tensor.
        """
        if not isinstance(self.var.type, TensorType):
            raise UnityError(f"{self.var.name} is no tensor, it is {self.var.type}")
        return self.var.type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Its dims; unknown ones are symbols.

        Raises:
            UnityError: Its rank is not known.
        """
        shape = self.type.shape
        if not isinstance(shape, tuple):
            raise UnityError(f"the shape of {self.var.name} is not known: {self.var.type}")
        return shape

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def dtype(self) -> DType | None:
        """Its elements' type."""
        return self.type.dtype

    def reshape(self, *shape: int | SymDim) -> Value:
        """With other dims; one may be -1."""
        return ops.reshape(self, shape)

    def permute(self, *axes: int) -> Value:
        """With its axes in another order."""
        return ops.permute_dims(self, axes)

    def astype(self, dtype: str) -> Value:
        """With elements of another type."""
        return ops.astype(self, dtype)

    def __add__(self, other: Operand) -> Value:
        return ops.add(self, other)

    def __radd__(self, other: Operand) -> Value:
        return ops.add(other, self)

    def __sub__(self, other: Operand) -> Value:
        return ops.subtract(self, other)

    def __rsub__(self, other: Operand) -> Value:
        return ops.subtract(other, self)

    def __mul__(self, other: Operand) -> Value:
        return ops.multiply(self, other)

    def __rmul__(self, other: Operand) -> Value:
        return ops.multiply(other, self)

    def __truediv__(self, other: Operand) -> Value:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return ops.divide(other, self)

    def __matmul__(self, other: Value | Parameter) -> Value:
        return ops.matmul(self, other)

    def __neg__(self) -> Value:
        return ops.negative(self)

    def __bool__(self) -> bool:
        raise UnityError(
            f"{self.var.name} is a tensor of a graph: it is not true or false while that is built",
            hint="compare sizes, or choose by ops.where",
        )

    def __getitem__(self, at: Index | tuple[Index, ...]) -> Value:
        """A part of it: integers, slices forward, ``...`` and None, as numpy has them."""
        return part_of(self.shape, at).of(self, _applied)

    def __iter__(self) -> Iterator[Value]:
        """Its parts along the first axis.

        Raises:
            UnityError: How many there are is not known.
        """
        count = self.shape[0] if self.shape else 0
        if not self.shape or not isinstance(count, int):
            raise UnityError(f"{self!r} has no known number of parts", hint="index it")
        return (self[k] for k in range(count))

    def __repr__(self) -> str:
        return f"Value({self.var.name}: {self.var.type})"


class Operators:
    """Operators by name: ``ops.matmul(x, y)``, ``ops.nn.softmax(x, axis=-1)``.

    Parameters are those of the language's ``R``; arrays become constants. Operators that have
    several results give a tuple of values (a type checker sees a value, which may be unpacked).

    Args:
        prefix: Of the names.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Operators:
        """An operator, or a family of them."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Operators(f"{self._prefix}.{name}" if self._prefix else name)

    def __dir__(self) -> list[str]:
        """What there is behind the prefix."""
        start = f"{self._prefix}." if self._prefix else ""
        return sorted({n.removeprefix(start).partition(".")[0] for n in OPS if n.startswith(start)})

    def __call__(self, *args: object, **attrs: object) -> Value:
        """A call of the operator.

        Raises:
            UnityError: There is no such operator, or the arguments don't fit.
        """
        state = exporting()
        given = [_operand(state, a) for a in args]
        named = {k: _operand(state, v) for k, v in attrs.items()}
        call = call_op(self._prefix, *given, span=None, signatures=None, **named)
        made = values_of(state.builder, state.builder.emit(call))
        return cast("Value", made)


ops = Operators()


def values_of(builder: GraphBuilder, var: Var) -> Value | tuple[Value, ...]:
    """A tensor, or the tensors of a tuple."""
    if isinstance(var.type, TupleType):
        fields = range(len(var.type.fields))
        return tuple(Value(builder.emit(TupleGet(var, k))) for k in fields)
    return Value(var)


def expr_of(value: object) -> Expr:
    """What a model returned, as an expression.

    Raises:
        UnityError: It is no value, nor a tuple or list of values.
    """
    match value:
        case Value():
            return value.var
        case Parameter():
            return exporting().of(value)
        case tuple() | list():
            return Tuple(tuple(expr_of(v) for v in value))
        case _:
            raise UnityError(
                f"forward returned {type(value).__name__}",
                hint="a unity.nn.Value, or a tuple of them",
            )


def _operand(state: Exporting, value: object) -> object:
    """An argument of an operator, as the builder takes it."""
    match value:
        case Value():
            return value.var
        case Parameter():
            return state.of(value)
        case tuple() | list() if any(isinstance(v, Value | Parameter) for v in value):
            return tuple(_operand(state, v) for v in value)
        case np.ndarray():
            return Constant(value)
        case _:
            return value


def _applied(name: str, *args: object) -> Value:
    """A call of an operator by its name."""
    return Operators(name)(*args)
