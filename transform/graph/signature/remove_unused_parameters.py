"""RemoveUnusedParameters: what a private function does not read is not given to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from unity.ir.graph import Call, Expr, Function, FunctionRef, Var
from unity.ir.module import IRModule
from unity.ir.visit import free_vars, type_symbols

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..symbols import plain_symbols
from .callers import private_functions


@dataclass(frozen=True, slots=True)
class RemoveUnusedParameters(Pass):
    """Removes parameters that private functions do not read, and what calls give for them.

    A parameter stays if it alone tells a size, or where a call has to check something at run time.
    Functions that users may call keep all that they take.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function(attrs={"private": True})
    ... def act(a: f32[Tensor, 4], b: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     c = R.exp(a)
    ...     return c
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = R.negative(x)
    ...     z = act(x, y)
    ...     return z
    ... ''')
    >>> print(print_module(RemoveUnusedParameters()(before, Context())), end="")
    @script.function(attrs={"private": True})
    def act(a: f32[Tensor, 4]) -> f32[Tensor, 4]:
        c = R.exp(a)
        return c
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        y = R.negative(x)
        z = act(x)
        return z
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Again where a caller's own parameter is unused then."""
        while True:
            kept: dict[str, tuple[int, ...]] = {}
            changed: dict[str, Function] = {}
            for name, f, _ in private_functions(module):
                places = _kept(f)
                if len(places) < len(f.params):
                    kept[name] = places
                    changed[name] = replace(f, params=tuple(f.params[i] for i in places))
            if not kept:
                return module
            new = module.with_(changed)
            module = map_functions(new, _Caller(new, kept).function)


def _kept(f: Function) -> tuple[int, ...]:
    """The places of the parameters that stay."""
    used = free_vars(f.body)
    kept = dict(enumerate(f.params))
    for i, param in enumerate(f.params):
        if param not in used:
            others = [p.type for k, p in kept.items() if k != i]
            if type_symbols(param.type) <= plain_symbols(others):
                del kept[i]
    return tuple(kept)


class _Caller(BodyRewriter):
    """Gives functions what they still take."""

    def __init__(self, module: IRModule, kept: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(module)
        self.kept = kept

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(FunctionRef(name), args) if name in self.kept:
                return replace(value, args=tuple(args[i] for i in self.kept[name]))
            case _:
                return value
