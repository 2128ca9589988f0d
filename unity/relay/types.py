"""Types under the names that scripts of Relay use."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.schema.dtypes import named
from unity.ir import types
from unity.ir.dtype import DType


class Any:
    """An unknown dim; no two need be equal."""

    def __repr__(self) -> str:
        """As Relay's text has it."""
        return "?"


Dim = int | str | Any | None


def dtype_of(value: object) -> DType:
    """The dtype that a script says: a name, or numpy's.

    Raises:
        UnityError: It is none.
    """
    name = value if isinstance(value, str) else str(getattr(value, "__name__", value))
    found = named(name)
    if found is None:
        raise UnityError(f"{value!r} is no dtype", hint='"float32", "int8" ...')
    return found


def tensor_type(shape: Sequence[Dim] = (), dtype: object = "float32") -> syntax.TensorType:
    """The type of a tensor.

    >>> from unity import relay
    >>> relay.TensorType((relay.Any(), 3)).shape
    (None, 3)
    """
    return syntax.TensorType(tuple(map(_dim, shape)), dtype_of(dtype))


def _dim(size: Dim) -> syntax.Dim:
    match size:
        case None | Any():
            return None
        case str():
            return size
        case _:
            if not hasattr(size, "__index__") or size < 0:
                raise UnityError(f"{size!r} is no size", hint="an int, or relay.Any()")
            return int(size)


def scalar_type(dtype: object) -> syntax.TensorType:
    """The type of a scalar."""
    return tensor_type((), dtype)


def tuple_type(fields: Sequence[syntax.Type]) -> syntax.TupleType:
    """The type of a tuple."""
    return syntax.TupleType(tuple(fields))


def func_type(arg_types: Sequence[syntax.Type], ret_type: syntax.Type) -> syntax.FunctionType:
    """The type of a function."""
    return syntax.FunctionType(tuple(arg_types), ret_type)


@dataclass(frozen=True, slots=True)
class CheckedType:
    """What is known of an expression's type; a tensor's, where it is no subclass.

    Attributes:
        shape: The extents; None for those that are not known.
        dtype: The dtype's name.
    """

    shape: tuple[int | None, ...] = ()
    dtype: str = ""

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The extents, all of which must be known."""
        known = tuple(d for d in self.shape if d is not None)
        if len(known) < len(self.shape):
            raise UnityError(f"the shape {self.shape} is not known", hint="it has unknown dims")
        return known

    def declared(self) -> syntax.Type:
        """It as a type that a variable is declared with."""
        return tensor_type(self.shape, self.dtype)

    def __str__(self) -> str:
        dims = ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"Tensor[({dims}{',' * (len(self.shape) == 1)}), {self.dtype}]"


@dataclass(frozen=True, slots=True)
class CheckedTuple(CheckedType):
    """The type of a tuple."""

    fields: tuple[CheckedType, ...] = ()

    def declared(self) -> syntax.Type:
        """It as a type that a variable is declared with."""
        return tuple_type([f.declared() for f in self.fields])

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class CheckedFunction(CheckedType):
    """The type of a function."""

    arg_types: tuple[CheckedType, ...] = ()
    ret_type: CheckedType = field(default_factory=CheckedType)

    def declared(self) -> syntax.Type:
        """It as a type that a variable is declared with."""
        return func_type([a.declared() for a in self.arg_types], self.ret_type.declared())

    def __str__(self) -> str:
        return f"fn ({', '.join(map(str, self.arg_types))}) -> {self.ret_type}"


def checked(kind: types.Type) -> CheckedType:
    """A type of ours as scripts read it."""
    match kind:
        case types.TensorType(tuple() as shape, DType() as element):
            return CheckedType(
                tuple(d if isinstance(d, int) else None for d in shape), str(element)
            )
        case types.TupleType(fields):
            return CheckedTuple(fields=tuple(map(checked, fields)))
        case types.FuncType(params, result):
            return CheckedFunction(arg_types=tuple(map(checked, params)), ret_type=checked(result))
        case _:
            raise UnityError(f"Relay has no type like {kind}")


class _Made(type):
    """Names of types: called they make one, and what is declared or checked is one of theirs."""

    kinds: tuple[type, ...]
    make: Callable[..., syntax.Type]

    def __call__(cls, *args: typing.Any, **named: typing.Any) -> typing.Any:
        return cls.make(*args, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        exact = type(instance) is CheckedType
        return isinstance(instance, cls.kinds) or (exact and cls.__name__ == "TensorType")


class TensorType(metaclass=_Made):
    """The type of a tensor, as scripts make it and ask for it."""

    kinds = (syntax.TensorType,)
    make = staticmethod(tensor_type)


class TupleType(metaclass=_Made):
    """The type of a tuple."""

    kinds = (syntax.TupleType, CheckedTuple)
    make = staticmethod(tuple_type)


class FuncType(metaclass=_Made):
    """The type of a function."""

    kinds = (syntax.FunctionType, CheckedFunction)
    make = staticmethod(func_type)
