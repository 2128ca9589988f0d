"""BindSymbolicVars: sizes of a function become numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.dims import Symbol
from unity.ir.module import IRModule
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import substitute_symbols

from ...passes import Context, Pass
from ..simplify.inline_functions import holds
from .callers import function_nobody_calls


@dataclass(frozen=True, slots=True, eq=False)
class BindSymbolicVars(Pass):
    """Makes some sizes of a function numbers, in its inputs' types and wherever it mentions them.

    Attributes:
        function: Which function; none calls it.
        sizes: Numbers by the names of symbols.

    Raises:
        UnityError: There is no such function, none of its inputs' types has such a symbol, or the
            number is none that the symbol may be.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, 2, n]) -> f32[Tensor, 2, 2 * n]:
    ...     y = R.concat((x, x), axis=1)
    ...     return y
    ... ''')
    >>> print(print_module(BindSymbolicVars("main", {"n": 4})(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 2, 8]:
        y = R.concat((x, x), axis=1)
        return y
    """

    function: str
    sizes: Mapping[str, int]

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """One function; the others stay."""
        found = function_nobody_calls(module, self.function, self.name)
        symbols = {s.name: s for p in found.params for s in type_symbols(p.type)}
        bound: dict[Symbol, int] = {}
        for name, size in self.sizes.items():
            symbol = symbols.get(name)
            if symbol is None:
                known = ", ".join(sorted(symbols)) or "none"
                raise UnityError(
                    f"the inputs of {self.function} have no size {name!r}",
                    hint=f"they have {known}",
                )
            if not holds(symbol, size):
                raise UnityError(f"{name} of {self.function} can't be {size}: {symbol.facts}")
            bound[symbol] = size
        changed = substitute_symbols(found, bound)
        return module if changed is found else module.with_({self.function: changed})
