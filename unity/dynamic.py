"""Changing dims of a module's inputs before compiling: static ones symbolic, or the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, dim, symbols_of
from unity.ir.graph import Expr, Function, Var
from unity.ir.lattice import atom_type, erase
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit import substitute_symbols, type_symbols
from unity.transform.graph.rewriter import BodyRewriter

Dynamic: TypeAlias = "Mapping[str, Mapping[int, Dim | str] | int]"
"""Input name -> axis -> its new dim; or symbol name -> its value."""
FORM = 'e.g. {"x": {0: "n"}}: the first axis of the input x becomes the symbol n'


def with_dynamic_dims(module: IRModule, dynamic: Dynamic, function: str = "main") -> IRModule:
    """The module with some dims of a function's inputs changed and every type inferred anew.

    Args:
        module: The module.
        dynamic: ``{"x": {0: "n"}}`` makes the first axis of the input `x` the symbol n, ``{"x": {0:
            8}}`` makes it 8, and ``{"n": 8}`` makes the symbol n 8 everywhere.
        function: Whose inputs.

    Raises:
        UnityError: There is no such input, axis or symbol, or the function does not allow the
            change, a reshape to constant sizes for instance.
    """
    found = module[function]
    if not isinstance(found, Function):
        raise UnityError(f"{function!r} is no graph function")
    changed = found
    if not isinstance(dynamic, Mapping):
        raise UnityError(f"dynamic must be a dict, got {type(dynamic).__name__}", hint=FORM)
    changed = substitute_symbols(changed, _fixed(changed, dynamic))
    for name, change in dynamic.items():
        if isinstance(change, int):
            _check_size(name, change)
            changed = substitute_symbols(changed, {_symbol(changed, name): change})
        else:
            changed = _with_param(module, changed, name, change)
    return module.with_({function: changed})


def _fixed(function: Function, dynamic: Dynamic) -> dict[Symbol, Dim]:
    """Symbols that get one number wherever an input has them: the body may use them, too."""
    given: dict[Symbol, set[object]] = {}
    for q in function.params:
        change = dynamic.get(q.name)
        for axis, size in enumerate(_shape(q.type)):
            axes = change if isinstance(change, Mapping) else {}
            value = axes.get(axis, axes.get(axis - len(_shape(q.type))))
            for symbol in symbols_of(size):
                given.setdefault(symbol, set()).add(value if size == symbol else None)
    found = {symbol: next(iter(values)) for symbol, values in given.items() if len(values) == 1}
    return {symbol: n for symbol, n in found.items() if isinstance(n, int) and n >= 0}


def _shape(of: Type) -> tuple[Dim, ...]:
    return of.shape if isinstance(of, TensorType) and isinstance(of.shape, tuple) else ()


def _check_size(where: str, size: int) -> None:
    if size < 0:
        raise UnityError(f"dynamic: {where} cannot be {size}", hint="a size is 0 or more")


def _symbol(function: Function, name: str) -> Symbol:
    known = sorted({s for q in function.params for s in type_symbols(q.type)}, key=lambda s: s.name)
    for symbol in known:
        if symbol.name == name:
            return symbol
    names = ", ".join(s.name for s in known) or "none"
    raise UnityError(f"dynamic: no input has a symbol {name!r}", hint=f"the symbols: {names}")


def _with_param(
    module: IRModule, function: Function, name: str, change: Mapping[int, Dim | str]
) -> Function:
    old = next((q for q in function.params if q.name == name), None)
    if old is None:
        names = ", ".join(q.name for q in function.params)
        raise UnityError(f"dynamic: no input {name!r}", hint=f"the inputs: {names}")
    if not isinstance(old.type, TensorType) or not isinstance(old.type.shape, tuple):
        raise UnityError(f"dynamic: the input {name!r} has no known shape")
    shape = list(old.type.shape)
    if not isinstance(change, Mapping):
        raise UnityError(f"dynamic[{name!r}] must be a dict of axes, got {change!r}", hint=FORM)
    for axis, size in change.items():
        if not -len(shape) <= axis < len(shape):
            raise UnityError(f"dynamic: the input {name!r} has no axis {axis}; it has {len(shape)}")
        if isinstance(size, int):
            _check_size(f"{name} axis {axis}", size)
        shape[axis] = dim(size) if isinstance(size, str) else size
    new = Var(name, replace(old.type, shape=tuple(shape)), old.span)
    retyper = _Retyper(module)
    retyper.env[old] = new
    params = tuple(new if q is old else q for q in function.params)
    rewritten = retyper.function(replace(function, params=params))
    result = atom_type(rewritten.body.result)
    scope = frozenset(s for q in params for s in type_symbols(q.type))
    declared = rewritten.result if result is None else erase(result, scope)
    return replace(rewritten, result=declared)


class _Retyper(BodyRewriter):
    """Infers every binding's type anew."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        self.refine()
        return value
