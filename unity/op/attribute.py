"""What an operator's attributes may hold: the types that its row gives to them.

Comes in: a value of an attribute. Goes out: whether the row's type takes it. One place asks
(`unity.op.infer.infer_call`), so that rules, computes and references may rely on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unity.ir.attrs import AttrValue
from unity.ir.dims import SymDim
from unity.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class AttrType:
    """A type of attributes.

    Attributes:
        words: What is expected, as a message says it.
        annotation: What a call may give, as Python's annotations say it.
        fits: Whether a value is of it.
    """

    words: str
    annotation: str
    fits: Callable[[AttrValue], bool]


def _is_int(value: AttrValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_size(value: AttrValue) -> bool:
    return _is_int(value) or isinstance(value, SymDim)


def _is_number(value: AttrValue) -> bool:
    return _is_int(value) or isinstance(value, float)


def _tuple_of(fits: Callable[[AttrValue], bool]) -> Callable[[AttrValue], bool]:
    return lambda value: isinstance(value, tuple) and all(map(fits, value))


def _one_or_tuple_of(fits: Callable[[AttrValue], bool]) -> Callable[[AttrValue], bool]:
    many = _tuple_of(fits)
    return lambda value: fits(value) or many(value)


def optional(kind: AttrType) -> AttrType:
    """A type, or None where that is not the default (a default is always taken)."""
    return AttrType(
        f"{kind.words} or None",
        f"{kind.annotation} | None",
        lambda value: value is None or kind.fits(value),
    )


FLAG = AttrType("True or False", "bool", lambda value: isinstance(value, bool))
INT = AttrType("an int", "int", _is_int)
INTS = AttrType("an int or a tuple of ints", "int | Sequence[int]", _one_or_tuple_of(_is_int))
SIZE = AttrType("a dim", "Dim", _is_size)
SIZES = AttrType("a dim or a tuple of dims", "Dim | Sequence[Dim]", _one_or_tuple_of(_is_size))
BOUNDS = AttrType(
    "a tuple of dims, None where there is no bound",
    "Sequence[Dim | None]",
    _tuple_of(lambda value: value is None or _is_size(value)),
)
NUMBER = AttrType("a number", "float", _is_number)
NUMBERS = AttrType("a tuple of numbers", "Sequence[float]", _tuple_of(_is_number))
COUNTER = AttrType(
    "a number or a dim", "float | SymDim", lambda value: _is_number(value) or _is_size(value)
)
DTYPE = AttrType("a dtype", "str | DType", lambda value: isinstance(value, DType))
TEXT = AttrType("text", "str", lambda value: isinstance(value, str))
TEXTS = AttrType(
    "a tuple of texts",
    "tuple[str, ...] | list[str]",
    _tuple_of(lambda value: isinstance(value, str)),
)
