"""The decorators: a Python function's text becomes IR when it is defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import ParamSpec, TypeVar, overload

from unity.errors import UnityError

from .parser.prim_func import attrs_of, parse_prim_func
from .parser.scope import captured_by
from .parser.source import of_function
from .program import ScriptPrimFunc

P = ParamSpec("P")
T = TypeVar("T")


@overload
def prim_func(function: Callable[P, None], /) -> ScriptPrimFunc[P]: ...
@overload
def prim_func(
    *, attrs: Mapping[str, object] | None = None
) -> Callable[[Callable[P, None]], ScriptPrimFunc[P]]: ...
def prim_func(
    function: Callable[P, None] | None = None, /, *, attrs: Mapping[str, object] | None = None
) -> ScriptPrimFunc[P] | Callable[[Callable[P, None]], ScriptPrimFunc[P]]:
    """Make a prim func (a kernel) of a Python function.

    Its parameters are buffers, inputs first and outputs last (``attrs={"num_outputs": 2}`` if there
    is more than one), then scalars.

    Raises:
        UnityError: A mistake in the function, at its place.
    """
    if function is None:
        return lambda f: _prim_func(f, attrs or {})
    return _prim_func(function, {})


def _prim_func(function: Callable[P, None], attrs: Mapping[str, object]) -> ScriptPrimFunc[P]:
    plain = _plain(function)
    source, node = of_function(plain)
    func = parse_prim_func(source, node, captured_by(plain), attrs_of(attrs))
    return ScriptPrimFunc(plain.__name__, func)


def _plain(function: object) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise UnityError(
            f"the decorator takes a plain function, got {function!r}",
            hint="put it directly above the def, below no other decorator",
        )
    return function
