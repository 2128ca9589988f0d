"""Attributes of calls, of what Python says."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.ir.dtype import DType

from .places import here


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
