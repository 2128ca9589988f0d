"""Values as Python source: numbers exactly, attributes, dims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, Symbol, SymDim, dim_text, substitute, symbols_of
from unity.ir.dims import dim as make_dim
from unity.ir.dtype import SHORT_NAMES, DType

SymbolNames: TypeAlias = Mapping[Symbol, str]
"""The symbols whose variable in the text is not named as they are."""
NO_SYMBOLS: SymbolNames = MappingProxyType({})
_SHORT: dict[str, str] = {long: short for short, long in SHORT_NAMES.items()}


def float_text(value: float) -> str:
    """A Python float: the shortest text that reads back as it.

    >>> float_text(0.1), float_text(-0.0), float_text(float("inf"))
    ('0.1', '-0.0', 'float("inf")')
    """
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def string_text(value: str) -> str:
    """A string literal in double quotes."""
    plain = value.isprintable() and '"' not in value and "\\" not in value
    return f'"{value}"' if plain else repr(value)


def element_text(dtype: DType) -> str:
    """The name of a dtype in annotations, ``f32``.

    Raises:
        UnityError: The language has none.
    """
    if dtype.lanes == 1 and dtype.name in _SHORT:
        return _SHORT[dtype.name]
    raise UnityError(f"the language has no annotation for {dtype}")


def dim_in(value: Dim, renamed: SymbolNames) -> str:
    """A dim as Python source, with symbols as the text calls them."""
    if isinstance(value, int):
        return str(int(value))
    if renamed:
        inner = {s: make_dim(renamed[s]) for s in symbols_of(value) if s in renamed}
        value = substitute(value, inner)
    return dim_text(value)


def tuple_text(items: list[str]) -> str:
    """A tuple of sources.

    >>> tuple_text(["a"]), tuple_text([])
    ('(a,)', '()')
    """
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def attr_text(value: AttrValue, renamed: SymbolNames) -> str:
    """An attribute's value."""
    match value:
        case None | bool():
            return str(value)
        case int():
            return str(value)
        case float():
            return float_text(value)
        case str():
            return string_text(value)
        case DType():
            return string_text(str(value))
        case tuple():
            return tuple_text([attr_text(v, renamed) for v in value])
        case SymDim():
            return dim_in(value, renamed)


def attrs_text(attrs: Attrs, renamed: SymbolNames) -> str:
    """Attributes as a dict."""
    items = (f"{string_text(k)}: {attr_text(v, renamed)}" for k, v in attrs.items())
    return f"{{{', '.join(items)}}}"
