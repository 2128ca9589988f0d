"""What steps of a schedule are given, checked by the annotations of its methods.

Traces come from files, and Python checks no types: whatever does not fit is refused here, before
anything else looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from unity.errors import UnityError
from unity.ir.marks import SCOPES

from .index_map import IndexMap
from .refs import BlockRef, LoopRef

P = ParamSpec("P")
R = TypeVar("R")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)


def _is_block(value: object) -> bool:
    return isinstance(value, str | BlockRef)


def _many(each: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, Sequence) and not isinstance(value, str) and all(map(each, value))
    )


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "LoopRef": ("a loop", lambda v: isinstance(v, LoopRef)),
    "LoopRef | None": ("a loop", _or_none(lambda v: isinstance(v, LoopRef))),
    "AnyBlock": ("a block or its name", _is_block),
    "LoopRef | AnyBlock": (
        "a loop, a block or its name",
        lambda v: isinstance(v, LoopRef) or _is_block(v),
    ),
    "int": ("an integer", _is_int),
    "int | None": ("an integer", _or_none(_is_int)),
    "int | str": (
        "a number or the name of a buffer",
        lambda v: _is_int(v) or isinstance(v, str),
    ),
    "str": ("text", lambda v: isinstance(v, str)),
    "Name": (
        "a name (letters, digits, _ and .)",
        lambda v: isinstance(v, str) and re.fullmatch(r"[A-Za-z_][\w.]*", v) is not None,
    ),
    "Memory": (
        f"a scope ({', '.join(SCOPES)})",
        lambda v: isinstance(v, str) and v in SCOPES,
    ),
    "Mapping[str, int]": (
        "numbers by name",
        lambda v: (
            isinstance(v, Mapping) and all(isinstance(k, str) and _is_int(n) for k, n in v.items())
        ),
    ),
    "Sequence[int]": ("integers", _many(_is_int)),
    "Sequence[int] | None": ("integers", _or_none(_many(_is_int))),
    "Sequence[int | None]": ("integers, one of them perhaps None", _many(_or_none(_is_int))),
    "Sequence[float]": ("numbers", _many(_is_number)),
    "AnyMap": ("an index map or a function", lambda v: isinstance(v, IndexMap) or callable(v)),
    "bool | float | str | None": (
        "a number, text, a truth value or None",
        lambda v: v is None or isinstance(v, bool | int | float | str),
    ),
}
"""By annotation: what is expected, in words, and whether a value is it."""
_HOW_TO_GET_LOOPS = 'schedule.get_loops("block") gives the loops around a block, split new ones'


def step(method: Callable[P, R]) -> Callable[P, R]:
    """A method of `Schedule` that refuses arguments which do not fit its annotations."""
    name = method.__name__
    whole = signature(method)
    expected = {p.name: KINDS[p.annotation] for p in [*whole.parameters.values()][1:]}
    places = {p.name: k for k, p in enumerate(whole.parameters.values())}

    def check(at: int, key: str, value: object) -> None:
        wanted, fits = expected[key]
        if not fits(value):
            where = f"{name}, argument {at} {key!r}"
            hint = _HOW_TO_GET_LOOPS if wanted.startswith("a loop") else None
            raise UnityError(f"{where}: expected {wanted}, got {value!r}", hint=hint)

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = whole.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join([*whole.parameters][1:])
            raise UnityError(f"{name}: {error}", hint=f"it takes {names}") from None
        for key, value in list(bound.arguments.items())[1:]:
            if whole.parameters[key].kind is Parameter.VAR_POSITIONAL:
                for k, each in enumerate(value):
                    check(k + 1, key, each)
            else:
                check(places[key], key, value)
        return method(*args, **kwargs)

    return checked
