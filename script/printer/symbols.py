"""The symbols of a module and what the text calls them.

One line a symbol opens the text, ``n = dim("n", min=1)``. Two symbols of one name with different
facts, or a name that is a word of the language, get another variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from unity.ir.convert import size_var, symbol_of
from unity.ir.dims import Symbol, SymDim, symbols_of
from unity.ir.graph import (
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Expr,
    Function,
    MatchCast,
    PrimValue,
    ShapeValue,
    Tuple,
)
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import PrimFunc
from unity.ir.visit import graph_children, type_symbols, walk_bindings

from .names import Names


class SymbolTable:
    """The symbols of a module, each with its variable in the text."""

    def __init__(self, module: IRModule) -> None:
        self.by_function: dict[str, frozenset[Symbol]] = {
            name: frozenset(_symbols(definition)) for name, definition in module.items()
        }
        names = Names(module)
        self._variables: dict[Symbol, str] = {}
        found = {s for symbols in self.by_function.values() for s in symbols}
        for symbol in sorted(found, key=lambda s: (s.name, repr(s.facts))):
            self._variables[symbol] = names.define(symbol, symbol.name)
        self.renamed = {s: v for s, v in self._variables.items() if v != s.name}
        self.renamed_sizes: dict[SizeVar, str] = {size_var(s): v for s, v in self.renamed.items()}

    def lines(self) -> Iterator[str]:
        """The section of the text."""
        for symbol, variable in self._variables.items():
            facts = symbol.facts
            parts = [f'"{symbol.name}"']
            if facts.min:
                parts.append(f"min={facts.min}")
            if facts.max is not None:
                parts.append(f"max={facts.max}")
            if facts.multiple_of != 1:
                parts.append(f"multiple_of={facts.multiple_of}")
            if facts.typical is not None:
                parts.append(f"typical={facts.typical}")
            yield f"{variable} = dim({', '.join(parts)})"

    def variables_in(self, function: str) -> set[str]:
        """The variables of the symbols that a function uses."""
        return {self._variables[s] for s in self.by_function.get(function, ())}


def _symbols(definition: Definition) -> set[Symbol]:
    match definition:
        case PrimFunc():
            return {symbol_of(size) for size in size_params(definition)}
        case ExternFunc(_, kind):
            return set(type_symbols(kind))
        case Function():
            return _in_function(definition)


def _in_function(f: Function) -> set[Symbol]:
    found = set(type_symbols(f.result))
    for param in f.params:
        found |= type_symbols(param.type)
    found |= _in_expr(f.body.result)
    for binding in walk_bindings(f):
        found |= type_symbols(binding.var.type) | _in_expr(binding.value)
        if isinstance(binding, MatchCast):
            found |= type_symbols(binding.type)
    return found


def _in_expr(e: Expr) -> set[Symbol]:
    """Symbols that the text of an expression mentions, nested bodies aside."""
    found: set[Symbol] = set()
    match e:
        case ShapeValue(dims):
            return set(symbols_of(*dims))
        case PrimValue(value):
            return set() if isinstance(value, float) else set(symbols_of(value))
        case Call(_, _, attrs) | CallLibrary(_, _, _, attrs) | CallEngine(_, _, _, _, attrs):
            for attr in attrs.values():
                items = attr if isinstance(attr, tuple) else (attr,)
                found |= symbols_of(*(v for v in items if isinstance(v, SymDim)))
        case CallTir():
            found |= symbols_of(*e.sym_args)
        case Function():
            return _in_function(e)
        case _:
            pass
    if isinstance(e, CallTir | CallLibrary | CallPython | CallEngine):
        for t in e.out:
            found |= type_symbols(t)
    for child in graph_children(e):
        if isinstance(child, ShapeValue | PrimValue | Tuple | Call):
            found |= _in_expr(child)
    return found
