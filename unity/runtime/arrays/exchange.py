"""Tensors of other libraries, as native entries take them: without Python in between.

A library that speaks DLPack's exchange protocol (``__dlpack_c_exchange_api__``, DLPack 1.2) has a C
function that writes down where a tensor lies. The first tensor of a type goes the slow way
(`accept`), which notes that function here; from then on entries find it in `TABLE` by the type and
view such tensors as arrays themselves (``codegen/vm/native/exchange.py`` says how).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TypeAlias

from unity.ir.dtype import Array

Give: TypeAlias = Callable[[Array], object]
"""Makes a tensor of an array, sharing its memory."""

ROWS = 4
"""How many types of tensors are known at once: others go the slow way."""
KIND, DESCRIBE, REFUSE_IF, GIVE, OTHERWISE, ROW_BYTES = 0, 8, 16, 24, 32, 40
"""Offsets in a row: the type; the C function; the name of a method that must say no, or null; what
turns a result into such a tensor, or null; what does where that raises."""

TABLE = (ctypes.c_void_p * (ROWS * ROW_BYTES // 8))()
"""What entries read, a row after the other, types of 0 behind the last."""
_kept: list[object] = []
"""What rows point to."""

_MAJOR, _DESCRIBE_AT = 1, 40
"""Of DLPackExchangeAPI: the version whose layout is known, and where `DESCRIBE` stands in it."""


def remember(
    kind: type, give: Give | None, otherwise: Give | None = None, refuse_if: str = ""
) -> None:
    """Let native entries take tensors of a type themselves, if its library has what that needs.

    Args:
        kind: The type, exactly: a subclass may keep its data elsewhere.
        give: Turns an array into such a tensor; none where results stay arrays.
        otherwise: Does so where `give` raises; `give` if there is nothing else.
        refuse_if: A method of no arguments that says True where a tensor's memory is not what it
            stands for (torch's lazy negation).
    """
    words = ROW_BYTES // 8
    kinds = TABLE[::words]
    capsule: object = getattr(kind, "__dlpack_c_exchange_api__", None)
    if id(kind) in kinds or None not in kinds or type(capsule).__name__ != "PyCapsule":
        return
    describe = _described_by(capsule)
    if not describe:
        return
    name = sys.intern(refuse_if) if refuse_if else None
    pointed = (name, give, otherwise or give)
    _kept.extend((kind, capsule, *pointed))
    first = kinds.index(None) * words
    TABLE[first + DESCRIBE // 8] = describe
    for place, value in zip((REFUSE_IF, GIVE, OTHERWISE), pointed, strict=True):
        TABLE[first + place // 8] = None if value is None else id(value)
    TABLE[first + KIND // 8] = id(kind)  # the row counts from here on


def _described_by(capsule: object) -> int | None:
    """The library's function, of the type ``int (*)(void* object, DLTensor* out)``."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        api: int | None = get(capsule, b"dlpack_exchange_api")
    except ValueError:  # a capsule of something else
        return None
    if not api or ctypes.c_uint32.from_address(api).value != _MAJOR:
        return None
    return ctypes.c_void_p.from_address(api + _DESCRIBE_AT).value
