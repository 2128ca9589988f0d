"""The decorators: a Python function's text becomes IR when it is defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import ParamSpec, TypeVar, overload

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.module import ExternFunc
from unity.op.builder import GraphBuilder

from .parser.graph_expr import Surroundings
from .parser.graph_func import declared_type, parse_function, verified
from .parser.prim_func import attrs_of, parse_prim_func
from .parser.scope import captured_by
from .parser.source import defined_later, of_function
from .program import ScriptForward, ScriptFunction, ScriptPrimFunc

P = ParamSpec("P")
T = TypeVar("T")


@overload
def function(definition: Callable[P, T], /) -> ScriptFunction[P, T]: ...
@overload
def function(
    *, pure: bool | None = None, attrs: Mapping[str, object] | None = None
) -> Callable[[Callable[P, T]], ScriptFunction[P, T]]: ...
@public
def function(
    definition: Callable[P, T] | None = None,
    /,
    *,
    pure: bool | None = None,
    attrs: Mapping[str, object] | None = None,
) -> ScriptFunction[P, T] | Callable[[Callable[P, T]], ScriptFunction[P, T]]:
    """Make a graph function of a Python function.

    Args:
        definition: The Python function; its text is parsed, it is never run.
        pure: Whether it has no effects; found out if left out.
        attrs: Attributes of the function.

    Raises:
        UnityError: A mistake in the function, at its place.
    """
    if definition is None:

        def decorate(f: Callable[P, T]) -> ScriptFunction[P, T]:
            return _function(f, pure, attrs or {})

        return public(decorate)
    return _function(definition, None, {})


@overload
def prim_func(definition: Callable[P, None], /) -> ScriptPrimFunc[P]: ...
@overload
def prim_func(
    *, attrs: Mapping[str, object] | None = None
) -> Callable[[Callable[P, None]], ScriptPrimFunc[P]]: ...
@public
def prim_func(
    definition: Callable[P, None] | None = None, /, *, attrs: Mapping[str, object] | None = None
) -> ScriptPrimFunc[P] | Callable[[Callable[P, None]], ScriptPrimFunc[P]]:
    """Make a prim func (a kernel) of a Python function.

    Its parameters are buffers, inputs first and outputs last (``attrs={"num_outputs": 2}`` if there
    is more than one), then scalars.

    Raises:
        UnityError: A mistake in the function, at its place.
    """
    if definition is None:

        def decorate(f: Callable[P, None]) -> ScriptPrimFunc[P]:
            return _prim_func(f, attrs or {})

        return public(decorate)
    return _prim_func(definition, {})


def _function(
    definition: Callable[P, T], pure: bool | None, attrs: Mapping[str, object]
) -> ScriptFunction[P, T]:
    plain = _plain(definition)
    source, node = of_function(plain)
    captured = captured_by(plain)

    def forward(name: str) -> ScriptForward | None:
        later = defined_later(source, node, name)
        if later is None:
            return None
        kind = declared_type(source, later, captured)
        params = tuple(arg.arg for arg in later.args.args)
        return ScriptForward(name, ExternFunc(name, kind), params, lambda: _by_now(plain, name))

    around = Surroundings(GraphBuilder(dataflow=False), forward=forward)
    func = parse_function(source, node, captured, around, pure, attrs)
    others = {name: other.func for name, other in around.refers.items()}
    verified(node.name, func, node, source, others)
    made: ScriptFunction[P, T] = ScriptFunction(plain.__name__, func, dict(around.refers))
    if around.called_within:  # they share `refers`, and name it
        around.refers[node.name] = made
    return made


def _prim_func(definition: Callable[P, None], attrs: Mapping[str, object]) -> ScriptPrimFunc[P]:
    plain = _plain(definition)
    source, node = of_function(plain)
    func = parse_prim_func(source, node, captured_by(plain), attrs_of(attrs))
    return ScriptPrimFunc(plain.__name__, func)


def _plain(definition: object) -> FunctionType:
    if not isinstance(definition, FunctionType):
        raise UnityError(
            f"the decorator takes a plain function, got {definition!r}",
            hint="put it directly above the def, below no other decorator",
        )
    return definition


def _by_now(function: FunctionType, name: str) -> object:
    """What a name means to a function when it is asked; None if nothing."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for known, cell in cells:
        if known == name:
            try:
                return cell.cell_contents
            except ValueError:  # nothing is in it yet
                return None
    return function.__globals__.get(name)
