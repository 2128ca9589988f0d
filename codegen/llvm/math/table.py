"""Intrinsics by name: what each becomes on registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from unity.errors import UnsupportedError
from unity.ir.dtype import DType

from ..emitter import Emitter, float_text, int_text
from ..narrow import round_to
from ..types import Ty, is_narrow, value_type

FloatRule: TypeAlias = Callable[..., str]


def intrinsic(em: Emitter, name: str, dtype: DType, args: list[str]) -> str:
    """The result of a named function on values of one dtype.

    Raises:
        UnsupportedError: The function is not known for this dtype.
    """
    t = value_type(dtype)
    if name == "sqrt":
        return em.intrinsic("sqrt", t, *args)
    raise UnsupportedError(f"no code for the intrinsic {name} on {dtype}", [f"{name}({dtype})"])


__all__ = ["FloatRule", "Ty", "float_text", "int_text", "intrinsic", "is_narrow", "round_to"]
