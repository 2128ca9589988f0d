"""The symbols of a module and what the text calls them.

One line a symbol opens the text, ``n = dim("n", min=1)``. Two symbols of one name with different
facts, or a name that is a word of the language, get another variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from unity.ir.dims import Symbol
from unity.ir.graph import Function
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.convert import size_var, symbol_of
from unity.ir.symbols.mentioned import function_mentions
from unity.ir.visit import type_symbols

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
            return {s for t in (*kind.params, kind.result) for s in type_symbols(t)}
        case Function():
            return function_mentions(definition)
