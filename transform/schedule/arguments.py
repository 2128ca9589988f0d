"""What steps of a schedule are given, checked by the annotations of its methods.

Traces come from files, and Python checks no types: whatever does not fit is refused here, before
anything else looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeVar, get_args

from unity.annotated import Kind
from unity.arguments import public
from unity.ir.marks import SCOPES
from unity.ir.prim_expr import PrimExpr
from unity.machine.scope import NAME

from .index_map import IndexMap
from .refs import BlockRef, LoopRef

F = TypeVar("F", bound=Callable[..., object])


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
        f"a scope ({', '.join(SCOPES)}, or a backend's own)",
        lambda v: isinstance(v, str) and (v in SCOPES or NAME.fullmatch(v) is not None),
    ),
    "Mapping[str, int]": (
        "numbers by name",
        lambda v: (
            isinstance(v, Mapping) and all(isinstance(k, str) and _is_int(n) for k, n in v.items())
        ),
    ),
    "ConditionLike": (
        "a condition: text such as 'n >= 32', or an expression",
        lambda v: isinstance(v, (str, *get_args(PrimExpr))),
    ),
    "ConditionLike | None": (
        "a condition, as 'n >= 32', or None",
        lambda v: v is None or isinstance(v, (str, *get_args(PrimExpr))),
    ),
    "ExtentLike": (
        "a number, text such as 'n // 8 * 8', or an expression",
        lambda v: _is_int(v) or isinstance(v, (str, *get_args(PrimExpr))),
    ),
    "Mapping[str, int | bool]": (
        "numbers, and yes or no, by name",
        lambda v: (
            isinstance(v, Mapping)
            and all(isinstance(k, str) and isinstance(n, int) for k, n in v.items())
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
_IS_STEP = "is_step"
_HOW_TO_GET_LOOPS = 'schedule.get_loops("block") gives the loops around a block, split new ones'


@cache
def _kinds() -> dict[str, Kind]:
    return {annotation: Kind(words, fits) for annotation, (words, fits) in KINDS.items()}


_HINTS = {
    **{KINDS[k][0]: _HOW_TO_GET_LOOPS for k in ("LoopRef", "LoopRef | AnyBlock")},
    "a PrimFunc": "what @script.prim_func makes has it: Schedule(kernel.func)",
}


def query(method: F) -> F:
    """A method of `Schedule` that refuses arguments which do not fit its annotations."""
    return public(method, _kinds(), _HINTS)


def step(method: F) -> F:
    """A `query` whose calls traces record, and replay by its name."""
    made = query(method)
    made.__dict__[_IS_STEP] = True
    return made


def is_step(method: object) -> bool:
    """Whether a method is recorded."""
    return _IS_STEP in getattr(method, "__dict__", {})
