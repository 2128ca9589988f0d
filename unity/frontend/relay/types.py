"""Relay's types as ours."""

from __future__ import annotations

from collections.abc import Callable

from unity.errors import UnityError
from unity.ir import types
from unity.ir.dims import Dim, dim, equal
from unity.op.builder import plain_identifier

from . import syntax

Fresh = Callable[[str], Dim]


def type_of(kind: syntax.Type, name: str, fresh: Fresh) -> types.Type:
    """The type that Relay writes.

    Args:
        kind: Relay's type.
        name: What it is the type of, which symbols for its unknown dims are called by.
        fresh: Makes a symbol for a ``?``, of which no two are the same.

    Raises:
        UnityError: It is none of tensors and tuples of them.
    """
    match kind:
        case syntax.TensorType(shape, element):
            dims = tuple(_dim(d, f"{name}_d{axis}", fresh) for axis, d in enumerate(shape))
            return types.TensorType(dims, element)
        case syntax.TupleType(fields):
            return types.TupleType(
                tuple(type_of(f, f"{name}_{i}", fresh) for i, f in enumerate(fields))
            )
        case _:
            raise UnityError(f"{name!r} is of a type that no tensor has", kind.span)


def _dim(size: syntax.Dim, name: str, fresh: Fresh) -> Dim:
    match size:
        case None:
            return fresh(name)
        case str():
            return dim(plain_identifier(size))
        case int():
            return size


def is_first_order(kind: syntax.Type | None) -> bool:
    """Whether a type is written, and is one of tensors and tuples of them."""
    match kind:
        case syntax.TensorType():
            return True
        case syntax.TupleType(fields):
            return all(is_first_order(f) for f in fields)
        case _:
            return False


def contradiction(declared: syntax.Type, found: types.Type) -> str | None:
    """What makes a declared type wrong for a value, if anything does."""
    match declared, found:
        case syntax.TensorType(shape, element), types.TensorType():
            if found.dtype is not None and found.dtype != element:
                return f"declared as {element}, and it is {found.dtype}"
            if not isinstance(found.shape, tuple):
                return None
            if len(found.shape) != len(shape):
                return f"declared with {len(shape)} axes, and it has {len(found.shape)}"
            for axis, (wanted, got) in enumerate(zip(shape, found.shape, strict=True)):
                differ = isinstance(wanted, int) and isinstance(got, int) and wanted != got
                if differ:
                    return f"declared with the extent {wanted} at axis {axis}, and it has {got}"
            return None
        case syntax.TupleType(fields), types.TupleType():
            if len(fields) != len(found.fields):
                return f"declared as {len(fields)} fields, and it has {len(found.fields)}"
            parts = zip(fields, found.fields, strict=True)
            return next((p for d, f in parts if (p := contradiction(d, f)) is not None), None)
        case _:
            return None


def refined(declared: syntax.Type, found: types.Type) -> types.TensorType | None:
    """The type of a tensor whose unknown dims are declared to be numbers; None if it has it."""
    if not isinstance(declared, syntax.TensorType) or not isinstance(found, types.TensorType):
        return None
    if not isinstance(found.shape, tuple):
        return None
    pairs = zip(declared.shape, found.shape, strict=True)
    shape = tuple(w if isinstance(w, int) and not equal(w, g) else g for w, g in pairs)
    return None if shape == found.shape else types.TensorType(shape, found.dtype)
