"""Values of a model while it is exported: tensors with operators, and ``ops``, all operators.

`Operand` is what Python's operators work on: values of the graph, and parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, SymDim
from unity.ir.dtype import Array, DType
from unity.ir.graph import Constant, Expr, Tuple, TupleGet, Var
from unity.ir.types import TensorType, TupleType
from unity.op.builder import GraphBuilder
from unity.op.call import bitwise, call_op
from unity.op.movement.slicing import Index, part_of
from unity.op.naming import instead_of_method
from unity.op.table import OPS
from unity.runtime.arrays.accept import accept

if TYPE_CHECKING:
    from .parameter import Parameter

Plain: TypeAlias = "Array | SymDim | float"
Given: TypeAlias = "Operand | Plain"
_NUMPYS = {"absolute": "abs", "remainder": "floor_mod"}
"""Functions of numpy that operators of another name compute."""


@dataclass(frozen=True, slots=True)
class Exporting:
    """What is exported.

    Attributes:
        builder: Grows the function.
        of: What a parameter is there.
        known: Variables that were made for values.
    """

    builder: GraphBuilder
    of: Callable[[Parameter], Expr]
    known: set[Var] = field(default_factory=set[Var])

    def value(self, var: Var) -> Value:
        """The value that a variable is."""
        self.known.add(var)
        return Value(var)


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


class Operand(ABC):
    """A tensor that operators of Python work on: each is an operator of the graph.

    Comparisons give tensors of bools as well. In dicts and sets it is found by identity.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def type(self) -> TensorType:
        """Its type."""

    @abstractmethod
    def expr(self) -> Expr:
        """What it is in the graph that is built now."""

    def reshape(self, *shape: int | SymDim) -> Value:
        """With other dims; one may be -1."""
        return ops.reshape(self, shape)

    def permute(self, *axes: int) -> Value:
        """With its axes in another order."""
        return ops.permute_dims(self, axes)

    def astype(self, dtype: str) -> Value:
        """With elements of another type."""
        return ops.astype(self, dtype)

    if not TYPE_CHECKING:  # a checker would believe that there is whatever is asked for

        def __getattr__(self, name: str) -> NoReturn:
            """No method: how `ops` are called instead of torch's methods of this name."""
            told = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("__"):
                raise AttributeError(told)
            hint = instead_of_method(name, "x", "ops")
            hint = hint or "it has operators, shape, ndim, dtype; ops are all operators"
            raise AttributeError(f"{told}\nhint: {hint}")

    def __add__(self, other: Given) -> Value:
        return ops.add(self, other)

    def __radd__(self, other: Plain) -> Value:
        return ops.add(other, self)

    def __sub__(self, other: Given) -> Value:
        return ops.subtract(self, other)

    def __rsub__(self, other: Plain) -> Value:
        return ops.subtract(other, self)

    def __mul__(self, other: Given) -> Value:
        return ops.multiply(self, other)

    def __rmul__(self, other: Plain) -> Value:
        return ops.multiply(other, self)

    def __truediv__(self, other: Given) -> Value:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Plain) -> Value:
        return ops.divide(other, self)

    def __floordiv__(self, other: Given) -> Value:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Plain) -> Value:
        return ops.floor_divide(other, self)

    def __mod__(self, other: Given) -> Value:
        return ops.floor_mod(self, other)

    def __rmod__(self, other: Plain) -> Value:
        return ops.floor_mod(other, self)

    def __pow__(self, other: Given) -> Value:
        return ops.power(self, other)

    def __rpow__(self, other: Plain) -> Value:
        return ops.power(other, self)

    def __matmul__(self, other: Operand | Array) -> Value:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Array) -> Value:
        return ops.matmul(other, self)

    def __neg__(self) -> Value:
        return ops.negative(self)

    def __abs__(self) -> Value:
        return ops.abs(self)

    def __pos__(self) -> Value:
        state = exporting()
        return state.value(state.builder.emit(self.expr()))

    def __and__(self, other: Operand | Array | int) -> Value:
        return _applied(bitwise([self.type.dtype], "and"), self, other)

    def __or__(self, other: Operand | Array | int) -> Value:
        return _applied(bitwise([self.type.dtype], "or"), self, other)

    def __xor__(self, other: Operand | Array | int) -> Value:
        return _applied(bitwise([self.type.dtype], "xor"), self, other)

    def __lshift__(self, other: Operand | Array | int) -> Value:
        return ops.left_shift(self, other)

    def __rshift__(self, other: Operand | Array | int) -> Value:
        return ops.right_shift(self, other)

    def __invert__(self) -> Value:
        return _applied(bitwise([self.type.dtype], "not"), self)

    def __eq__(self, other: object) -> Any:
        return _compared("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _compared("not_equal", self, other)

    def __lt__(self, other: Given) -> Value:
        return _compared("less", self, other)

    def __le__(self, other: Given) -> Value:
        return _compared("less_equal", self, other)

    def __gt__(self, other: Given) -> Value:
        return _compared("greater", self, other)

    def __ge__(self, other: Given) -> Value:
        return _compared("greater_equal", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise UnityError(
            f"{self!r} is a tensor of a graph: it is not true or false while that is built",
            hint="choose elements by ops.where; branch by unity.GraphBuilder.if_; compare sizes; "
            "`a is b` asks whether two are the same one",
        )

    def __float__(self) -> float:
        raise self._no_number("float", "x.astype('float32') converts its elements")

    def __int__(self) -> int:
        raise self._no_number("int", "x.astype('int64') converts its elements")

    def __index__(self) -> int:
        raise self._no_number("an index", "x.shape tells sizes; ops.take takes by a tensor")

    def __complex__(self) -> complex:
        raise self._no_number("complex", "Unity has no complex numbers")

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise self._no_number("round", "ops.round rounds its elements, to even at halves")

    def _no_number(self, what: str, instead: str) -> UnityError:
        """What is raised where Python asks for a number."""
        told = f"{self!r} is a tensor of a graph: it is no number while that is built"
        return UnityError(f"{what}: {told}", hint=instead)

    def __len__(self) -> int:
        """How many parts there are along the first axis.

        Raises:
            UnityError: It has no axis, or how many is not known.
        """
        shape = _shape_of(self)
        if not shape or not isinstance(shape[0], int):
            raise UnityError(
                f"len: {self!r} has no known number of parts",
                hint="x.shape[0] is the symbol, which sizes of operators may be" if shape else None,
            )
        return shape[0]

    def __getitem__(self, at: Index | tuple[Index, ...]) -> Value:
        """A part of it: integers, slices forward, ``...`` and None, as numpy has them.

        Raises:
            UnityError: It is something else, or more than there is.
        """
        operand: Operand = self
        made = part_of(_shape_of(self), at, take="ops.take").of(operand, _applied)
        state = exporting()
        return made if isinstance(made, Value) else state.value(state.builder.emit(made.expr()))

    def __setitem__(self, at: object, value: object) -> NoReturn:
        raise UnityError(
            f"{self!r} is a tensor of a graph: no part of it can be assigned",
            hint="ops.where, ops.slice_scatter and ops.index_put give a changed one",
        )

    def __iter__(self) -> Iterator[Value]:
        """Its parts along the first axis.

        Raises:
            UnityError: How many there are is not known.
        """
        return (self[k] for k in range(len(self)))

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> Value:
        """A function of numpy, as ``array * x`` and ``np.exp(x)`` call it: the operator.

        Raises:
            UnityError: There is no such operator.
        """
        name = _NUMPYS.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or options or name not in OPS:
            raise UnityError(
                f"np.{ufunc.__name__} does not calculate with {self!r}",
                hint="call an operator: ops.exp(x), ops.sum(x, axis=0) ...",
            )
        return _applied(name, *inputs)

    def __array__(self, *args: object, **named: object) -> object:  # NoReturn: an ArrayLike
        raise UnityError(
            f"{self!r} is a tensor of a graph: it has no numbers while that is built",
            hint="call operators on it (ops.mean, not np.mean), and run what export gives",
        )


def _compared(name: str, x: Operand, other: object) -> Value:
    """A comparison by elements."""
    if other is None or isinstance(other, str):
        raise UnityError(
            f"{x!r} is compared with {other!r}",
            hint="with a tensor or a number; `x is None` asks for None",
        )
    return _applied(name, x, other)


def _shape_of(x: Operand) -> tuple[Dim, ...]:
    """The dims of an operand.

    Raises:
        UnityError: Its rank is not known.
    """
    shape = x.type.shape
    if not isinstance(shape, tuple):
        raise UnityError(f"the shape of {x!r} is not known", hint="match_cast says what it is")
    return shape


class Value(Operand):
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

    def expr(self) -> Expr:
        """Its variable.

        Raises:
            UnityError: It is a value of another export.
        """
        if self.var not in exporting().known:
            raise UnityError(
                f"{self!r} is a value of another export: it is none of this graph",
                hint="keep parameters and arrays in attributes, not values that forward computed",
            )
        return self.var

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Its dims; unknown ones are symbols.

        Raises:
            UnityError: Its rank is not known.
        """
        return _shape_of(self)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def dtype(self) -> DType | None:
        """Its elements' type."""
        return self.type.dtype

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
        given = [_argument(a) for a in args]
        named = {k: _argument(v) for k, v in attrs.items()}
        call = call_op(self._prefix, *given, span=None, signatures=None, **named)
        made = values_of(state, state.builder.emit(call))
        return cast("Value", made)


ops = Operators()


def values_of(state: Exporting, var: Var) -> Value | tuple[Value, ...]:
    """A tensor, or the tensors of a tuple."""
    if isinstance(var.type, TupleType):
        fields = range(len(var.type.fields))
        return tuple(state.value(state.builder.emit(TupleGet(var, k))) for k in fields)
    return state.value(var)


def expr_of(value: object) -> Expr:
    """What a model returned, as an expression.

    Raises:
        UnityError: It is no value, nor a tuple or list of values.
    """
    match value:
        case Operand():
            return value.expr()
        case tuple() | list():
            return Tuple(tuple(expr_of(v) for v in value))
        case _:
            raise UnityError(
                f"forward returned {type(value).__name__}",
                hint="a unity.nn.Value, or a tuple of them",
            )


def _argument(value: object) -> object:
    """An argument of an operator, as the builder takes it."""
    match value:
        case Operand():
            return value.expr()
        case tuple() | list() if any(isinstance(v, Operand) for v in value):
            return tuple(map(_argument, value))
        case np.ndarray():
            return Constant(value)
        case _ if hasattr(value, "__dlpack__"):
            found, _ = accept(value, None, "an operand")
            return Constant(np.array(found, copy=True, order="C"))
        case _:
            return value


def _applied(name: str, *args: object) -> Value:
    """A call of an operator by its name."""
    return Operators(name)(*args)
