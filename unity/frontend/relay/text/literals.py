"""Numbers in Relay's text: ``1``, ``1i64``, ``1f``, ``1.5f16``, ``1e-05f``, ``-inff``.

Printers before TVM 0.8 had no suffixes but ``f``: they wrote ``int64(1)``, or left the dtype to the
comment behind, ``1 /* ty=int64 */``.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from unity.ir.dtype import Array, DType, dtype

from ..schema.dtypes import named

_PARTS = re.compile(
    r"(?P<value>-?(?:inf|nan|[0-9]+(?P<point>\.[0-9]*)?(?P<power>[eE][+-]?[0-9]+)?))"
    r"(?P<suffix>[iuf][0-9]*)?"
)
_WIDE = re.compile("[iuf][0-9]+$")
_SAID = re.compile(r"\s*/\*\s*ty=([a-z]+[0-9]*)\s*(?:span=[^*]*)?\*/")
_DTYPES = {
    "i": "int32",
    "u": "uint32",
    "f": "float32",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


def number(text: str) -> int | float | None:
    """The value of a number, or None where it can't be one.

    >>> number("1e-05f"), number("-3i64"), number("1i5")
    (1e-05, -3, None)
    """
    found = _parts(text)
    return None if found is None else found[0]


def constant(text: str, said: DType | None = None) -> Array | None:
    """The scalar that a number stands for, or None where it can't be one of its dtype.

    Args:
        text: The number.
        said: What is said of it elsewhere, which counts where the number has no width.

    >>> constant("2.5f").dtype, constant("3").dtype, constant("300i8")
    (dtype('float32'), dtype('int32'), None)
    >>> constant("3", dtype("int64")).dtype, constant("2f", dtype("float16")).dtype
    (dtype('int64'), dtype('float16'))
    """
    found = _parts(text)
    if found is None:
        return None
    value, name = found
    if said is not None and not _WIDE.search(text) and (said.is_float or isinstance(value, int)):
        name = str(said)
    try:
        with np.errstate(over="ignore"):
            made = np.array(value, dtype(name).numpy)
    except OverflowError:
        return None
    return read_only(made)


def said_of(text: str, end: int) -> DType | None:
    """The dtype in a comment behind a number, ``/* ty=int64 */``, if there is one."""
    found = _SAID.match(text, end)
    return None if found is None else named(found[1])


def read_only(array: Array) -> Array:
    """An array of our own, shut to writing."""
    array.flags.writeable = False
    return array


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[int | float, str] | None:
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    real = match["point"] is not None or match["power"] is not None
    real = real or match["value"].lstrip("-") in ("inf", "nan")
    name = _DTYPES.get(match["suffix"] or ("f" if real else "i"))
    if name is None or (real and not name.startswith("float")) or len(text) > 400:
        return None
    if name.startswith("float"):
        return float(match["value"]), name
    return int(match["value"]), name
