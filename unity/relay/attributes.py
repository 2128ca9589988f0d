"""Attributes of calls, of what Python says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.ir.dtype import DType

from .places import here


class Attributes(dict[str, syntax.AttrValue]):
    """The attributes of a call: ``attrs.strides``, ``attrs["strides"]``; dtypes are names."""

    @classmethod
    def of(cls, given: Mapping[str, syntax.AttrValue]) -> Attributes:
        """Those of a node."""
        return cls({k: str(v) if isinstance(v, DType) else v for k, v in given.items()})

    def __getattr__(self, name: str) -> syntax.AttrValue:
        if name not in self:
            raise AttributeError(f"the call has no attribute {name!r}: it has {', '.join(self)}")
        return self[name]

    def get_int(self, name: str) -> int:
        """One that is an int."""
        found = self[name]
        if not isinstance(found, int):
            raise UnityError(f"the attribute {name!r} is {found!r}, no int", here())
        return found

    def get_str(self, name: str) -> str:
        """One that is a string."""
        return str(self[name])


def attribute_of(value: object) -> syntax.AttrValue:
    """An attribute as Relay has it, of what Python says.

    Raises:
        UnityError: It is none.
    """
    match value:
        case bool() | int() | float() | str() | None | syntax.Record():
            return value
        case DType():
            return str(value)
        case np.generic() | np.dtype():
            return str(value) if isinstance(value, np.dtype) else attribute_of(value.item())
        case np.ndarray():
            return attribute_of(value.tolist())
        case list() | tuple():
            return tuple(attribute_of(v) for v in value)
        case object(node=syntax.Constant(value=array)):
            return attribute_of(array)
        case type():
            return np.dtype(value).name
        case _:
            raise UnityError(f"an attribute can't be {type(value).__name__}", here())
