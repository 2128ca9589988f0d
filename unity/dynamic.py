"""Changing dims of a module's inputs before compiling: static ones symbolic, or the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.errors import UnityError
from unity.ir.dims import Dim, Dynamic
from unity.ir.graph import Expr, Function, Var
from unity.ir.lattice import atom_type, erase
from unity.ir.module import IRModule
from unity.ir.symbols.input_dims import (
    changed_axes,
    check_form,
    check_size,
    fixed_symbols,
    symbol_named,
)
from unity.ir.types import Type
from unity.ir.visit import substitute_symbols, type_symbols
from unity.transform.graph.rewriter import BodyRewriter

__all__ = ["Dynamic", "with_dynamic_dims"]


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
    check_form(dynamic)
    changed = substitute_symbols(found, fixed_symbols(_types(found), dynamic))
    for name, change in dynamic.items():
        if isinstance(change, int):
            check_size(name, change)
            changed = substitute_symbols(changed, {symbol_named(_types(changed), name): change})
        else:
            changed = _with_param(module, changed, name, change)
    return module.with_({function: changed})


def _types(function: Function) -> dict[str, Type]:
    return {q.name: q.type for q in function.params}


def _with_param(
    module: IRModule, function: Function, name: str, change: Mapping[int, Dim | str]
) -> Function:
    kind = changed_axes(_types(function), name, change)
    old = next(q for q in function.params if q.name == name)
    new = Var(name, kind, old.span)
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
