"""RemoveUnusedOutputs: what nobody reads of a private function's results is not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    Expr,
    Function,
    FunctionRef,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.types import TupleType
from unity.ir.visit import bodies_of, graph_children, walk_bindings

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from .callers import private_functions


@dataclass(frozen=True, slots=True)
class RemoveUnusedOutputs(Pass):
    """Removes results of private functions that no call reads; one that is left is no tuple.

    `EliminateDeadCode` removes what they were computed by. Results stay where a call has to check
    something at run time, and of functions that users may call.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function(attrs={"private": True})
    ... def both(a: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    ...     b = R.exp(a)
    ...     c = R.negative(a)
    ...     return b, c
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = both(x)
    ...     z = R.sqrt(y[1])
    ...     return z
    ... ''')
    >>> print(print_module(RemoveUnusedOutputs()(before, Context())), end="")
    @script.function(attrs={"private": True})
    def both(a: f32[Tensor, 4]) -> f32[Tensor, 4]:
        b = R.exp(a)
        c = R.negative(a)
        pair = (b, c)
        return c
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        y = both(x)
        z = R.sqrt(y)
        return z
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Again where a caller's own result is unread then."""
        while True:
            read = _Reads(module)
            kept: dict[str, tuple[int, ...]] = {}
            changed: dict[str, Function] = {}
            for name, f, calls in private_functions(module):
                fields = _fields(f)
                places = read.of(calls, len(fields))
                if len(places) < len(fields):
                    kept[name] = places
                    changed[name] = _giving(f, [fields[i] for i in places], places)
            if not kept:
                return module
            new = module.with_(changed)
            module = map_functions(new, _Caller(new, kept).function)


def _fields(f: Function) -> tuple[Expr, ...]:
    """What a function's results are, where they are put together in its own body."""
    result = f.body.result
    if isinstance(result, Var):
        for block in f.body.blocks:
            for binding in block.bindings:
                if binding.var is result and isinstance(binding.value, Tuple):
                    return binding.value.fields
    return result.fields if isinstance(result, Tuple) else ()


def _giving(f: Function, fields: list[Expr], places: tuple[int, ...]) -> Function:
    """A function that gives some of its results."""
    assert isinstance(f.result, TupleType)
    types = tuple(f.result.fields[i] for i in places)
    if len(fields) == 1:
        return replace(f, body=replace(f.body, result=fields[0]), result=types[0])
    result = Var("results", replace(f.result, fields=types))
    block = BindingBlock((VarBinding(result, Tuple(tuple(fields))),))
    return replace(f, body=Body((*f.body.blocks, block), result), result=result.type)


class _Reads:
    """Which fields of each variable are read, and which variables are read as a whole."""

    def __init__(self, module: IRModule) -> None:
        self.fields: dict[Var, set[int]] = {}
        self.whole = set[Var]()
        for f in (*module.graph_functions().values(), *module.engine_functions().values()):
            for binding in walk_bindings(f):
                self._note(binding.value)
            self._note(f.body.result)

    def of(self, calls: list[VarBinding], count: int) -> tuple[int, ...]:
        """The places of the results that calls read, the first if they read none."""
        if any(b.var in self.whole for b in calls):
            return tuple(range(count))
        found = sorted({i for b in calls for i in self.fields.get(b.var, ())})
        return tuple(found or range(min(count, 1)))

    def _note(self, e: Expr) -> None:
        match e:
            case TupleGet(Var() as var, index):
                self.fields.setdefault(var, set()).add(index)
                return
            case Var():
                self.whole.add(e)
            case _:
                pass
        for child in graph_children(e):
            self._note(child)
        for body in bodies_of(e):
            self._note(body.result)


class _Caller(BodyRewriter):
    """Takes results from where they are then."""

    def __init__(self, module: IRModule, kept: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(module)
        self.kept = kept

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(FunctionRef(name)) if name in self.kept:
                self.refine()
            case _:
                pass
        return value

    def field(self, e: TupleGet) -> Expr:
        called = self.values.get(e.value) if isinstance(e.value, Var) else None
        match called:
            case Call(FunctionRef(name)) if name in self.kept:
                places = self.kept[name]
                return e.value if len(places) == 1 else replace(e, index=places.index(e.index))
            case _:
                return super().field(e)
