"""EliminateCommonSubexpr: what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from unity.ir.graph import (
    Call,
    CallEngine,
    CallLibrary,
    CallTir,
    Constant,
    Expr,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
)
from unity.ir.module import IRModule

from ...passes import Context, Pass, map_functions
from ..purity import is_pure
from ..rewriter import BodyRewriter

SMALL = 64
"""Constants of up to so many bytes count as equal when their contents are."""


@dataclass(frozen=True, slots=True)
class EliminateCommonSubexpr(Pass):
    """Replaces a pure binding by an earlier one with the same right side.

    What a branch or a loop computes is shared within it and with what surrounds it, never with
    another branch.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     return R.add(R.exp(x), R.exp(x))
    ... ''')
    >>> print(print_module(EliminateCommonSubexpr()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        exp = R.exp(x)
        add = R.add(exp, exp)
        return add
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Sharer(module).function(f))


class _Sharer(BodyRewriter):
    """Carries what has been computed, one table for each nesting of bodies."""

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self.known: list[dict[Hashable, Var]] = [{}]

    def enter(self) -> None:
        self.known.append({})

    def leave(self) -> None:
        self.known.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        key = self.key(value)
        if key is None:
            return value
        for table in self.known:
            # A data-dependent size is a symbol of its own at each call: such calls are not shared.
            if key in table and table[key].type == var.type:
                return table[key]
        self.known[-1][key] = var
        return value

    def key(self, value: Expr) -> Hashable | None:
        """Equal for expressions that compute the same; None for one that is not shared."""
        match value:
            case Call() | CallTir() | CallLibrary() | CallEngine() | Tuple() | TupleGet():
                return _comparable(value) if is_pure(value, self.module) else None
            case _:
                return None


def _comparable(e: Expr) -> Hashable:
    match e:
        case Constant(data) if data.nbytes <= SMALL:
            return (data.dtype.str, data.shape, data.tobytes())
        case PrimValue(value, dtype):
            return ("prim", type(value).__name__, str(value), dtype)
        case ShapeValue(dims):
            return ("shape", dims)
        case Tuple(fields):
            return ("tuple", *map(_comparable, fields))
        case TupleGet(value, index):
            return ("field", _comparable(value), index)
        case Call(callee, args, attrs):
            return (callee, tuple(map(_comparable, args)), attrs)
        case CallTir():
            return (e.callee, tuple(map(_comparable, e.args)), e.out, e.sym_args)
        case CallLibrary():
            return (e.symbol, tuple(map(_comparable, e.args)), e.out, e.attrs)
        case CallEngine():
            return (e.engine, e.subgraph, tuple(map(_comparable, e.args)), e.out, e.attrs)
        case _:
            return e
