"""Changing dims of inputs: what is asked for, applied to types. Used before and after an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.errors import UnityError
from unity.ir.dims import Dim, Dynamic, Symbol, dim, symbols_of
from unity.ir.types import TensorType, Type
from unity.ir.visit import substitute_symbols_in_type, type_symbols

FORM = 'e.g. {"x": {0: "n"}}: the first axis of the input x becomes the symbol n'


def changed_inputs(types: Mapping[str, Type], dynamic: Dynamic) -> dict[str, Type]:
    """The types of inputs by name, with some dims changed.

    Raises:
        UnityError: There is no such input, axis or symbol, or a size is negative.
    """
    check_form(dynamic)
    found = _substituted(types, fixed_symbols(types, dynamic))
    for name, change in dynamic.items():
        if isinstance(change, int):
            check_size(name, change)
            found = _substituted(found, {symbol_named(found, name): change})
        else:
            found[name] = changed_axes(found, name, change)
    return found


def _substituted(types: Mapping[str, Type], values: Mapping[Symbol, Dim]) -> dict[str, Type]:
    return {name: substitute_symbols_in_type(t, values) for name, t in types.items()}


def check_form(dynamic: Dynamic) -> None:
    """Refuse what is no dict.

    Raises:
        UnityError: It is none.
    """
    if not isinstance(dynamic, Mapping):
        raise UnityError(f"dynamic must be a dict, got {type(dynamic).__name__}", hint=FORM)


def fixed_symbols(types: Mapping[str, Type], dynamic: Dynamic) -> dict[Symbol, Dim]:
    """Symbols that get one number wherever an input has them: the body may use them, too."""
    given: dict[Symbol, set[object]] = {}
    for name, of in types.items():
        change = dynamic.get(name)
        for axis, size in enumerate(_shape(of)):
            axes = change if isinstance(change, Mapping) else {}
            value = axes.get(axis, axes.get(axis - len(_shape(of))))
            for symbol in symbols_of(size):
                given.setdefault(symbol, set()).add(value if size == symbol else None)
    found = {symbol: next(iter(values)) for symbol, values in given.items() if len(values) == 1}
    return {symbol: n for symbol, n in found.items() if isinstance(n, int) and n >= 0}


def _shape(of: Type) -> tuple[Dim, ...]:
    return of.shape if isinstance(of, TensorType) and isinstance(of.shape, tuple) else ()


def check_size(where: str, size: int) -> None:
    """Refuse a negative size.

    Raises:
        UnityError: It is negative.
    """
    if size < 0:
        raise UnityError(f"dynamic: {where} cannot be {size}", hint="a size is 0 or more")


def symbol_named(types: Mapping[str, Type], name: str) -> Symbol:
    """The symbol of a name that inputs mention.

    Raises:
        UnityError: There is none.
    """
    known = sorted({s for t in types.values() for s in type_symbols(t)}, key=lambda s: s.name)
    for symbol in known:
        if symbol.name == name:
            return symbol
    names = ", ".join(s.name for s in known) or "none"
    raise UnityError(f"dynamic: no input has a symbol {name!r}", hint=f"the symbols: {names}")


def changed_axes(
    types: Mapping[str, Type], name: str, change: Mapping[int, Dim | str]
) -> TensorType:
    """The type of an input with other dims at some axes.

    Raises:
        UnityError: There is no such input or axis, or a size is negative.
    """
    if name not in types:
        raise UnityError(f"dynamic: no input {name!r}", hint=f"the inputs: {', '.join(types)}")
    old = types[name]
    if not isinstance(old, TensorType) or not isinstance(old.shape, tuple):
        raise UnityError(f"dynamic: the input {name!r} has no known shape")
    shape = list(old.shape)
    if not isinstance(change, Mapping):
        raise UnityError(f"dynamic[{name!r}] must be a dict of axes, got {change!r}", hint=FORM)
    for axis, size in change.items():
        if not -len(shape) <= axis < len(shape):
            raise UnityError(f"dynamic: the input {name!r} has no axis {axis}; it has {len(shape)}")
        if isinstance(size, int):
            check_size(f"{name} axis {axis}", size)
        shape[axis] = dim(size) if isinstance(size, str) else size
    return replace(old, shape=tuple(shape))
