"""Types under the names that scripts of Relay use."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.schema.dtypes import named
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


TensorType, TupleType, FuncType = tensor_type, tuple_type, func_type
"""As scripts call them."""
