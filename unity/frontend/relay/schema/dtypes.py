"""What Relay calls element types."""

from __future__ import annotations

import re

from unity.ir.dtype import NAMES, DType, dtype

_OWN = {
    "uint1": "bool",
    "int1": "bool",
    "float8_e4m3": "float8_e4m3fn",
    "e4m3_float8": "float8_e4m3fn",
}
ABSENT = ("", "void", "handle0")
"""How TVM writes a dtype that was left out: that of the input is meant."""


def named(text: str) -> DType | None:
    """The dtype of a name, or None where there is no such one.

    >>> str(named("uint1")), named("f32")
    ('bool', None)
    """
    text = _OWN.get(text, text)
    found = re.fullmatch(r"([a-z0-9_]+?)(?:x([1-9][0-9]{0,3}))?", text)
    if found is None or found[1] not in NAMES:
        return None
    return dtype(text)
