"""SealEngines: functions that engines compile are set apart; our passes leave them alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.errors import UnityError
from unity.ir.graph import Call, CallEngine, Expr, Function, FunctionRef, Var
from unity.ir.module import IRModule

from ...passes import Context, Pass
from ..names import Names
from ..rewriter import BodyRewriter
from ..symbols import is_concrete, tensor_fields
from .engine import engine_of


@dataclass(frozen=True, slots=True)
class SealEngines(Pass):
    """Marks the function of every `CallEngine` with the attribute ``engine``.

    A function that two engines are given, or that is called as well, is copied for each.

    >>> from unity.codegen.engine import InterpreterEngine, register_engine
    >>> from unity.script import parse
    >>> from unity.transform.graph.resolve import ENGINES, SealEngines
    >>> _ = register_engine(InterpreterEngine())
    >>> before = parse('''
    ... @script.function(attrs={"private": True})
    ... def act(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     return R.exp(x)
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = R.call_engine("interpreter", act, (x,), out=f32[Tensor, 4])
    ...     return y
    ... ''')
    >>> after = SealEngines()(before, Context())
    >>> list(after.engine_functions()), list(after.graph_functions())
    (['act'], ['main'])
    >>> del ENGINES["interpreter"]
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions; those sealed before stay."""
        calls = _Calls(module)
        functions = {name: calls.function(f) for name, f in module.graph_functions().items()}
        calls.made = {k: v for k, v in calls.made.items() if module.functions.get(k) is not v}
        return module.with_({**functions, **calls.made})


class _Calls(BodyRewriter):
    """Carries the functions sealed, by engine and name."""

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self.names = Names(module)
        self.made: dict[str, Function] = {}
        self.sealed: dict[tuple[str, str], str] = {}
        self.called = {
            value.callee.name
            for f in module.graph_functions().values()
            for block in f.body.blocks
            for b in block.bindings
            if isinstance((value := b.value), Call) and isinstance(value.callee, FunctionRef)
        }

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, CallEngine):
            return value
        function = self.module[value.subgraph.name]
        assert isinstance(function, Function)
        if function.attrs.get("engine") == value.engine:
            return value
        engine_of(value.engine, value.span)
        _check(value, function)
        key = (value.engine, value.subgraph.name)
        if key not in self.sealed:
            first = value.subgraph.name not in {name for _, name in self.sealed}
            own = first and value.subgraph.name not in self.called and _is_private(function)
            name = value.subgraph.name if own else self.names.fresh(value.subgraph.name)
            marks = function.attrs.with_(engine=value.engine, private=True)
            self.sealed[key] = name
            self.made[name] = replace(function, attrs=marks)
        return replace(value, subgraph=FunctionRef(self.sealed[key], value.subgraph.span))


def _is_private(function: Function) -> bool:
    return bool(function.attrs.get("private", False))


def _check(call: CallEngine, function: Function) -> None:
    """Refuse what can't be handed over: other values than tensors of known dtype and rank."""
    for t in (*(p.type for p in function.params), *call.out):
        fields = tensor_fields(t)
        if fields is None or not all(map(is_concrete, fields)):
            raise UnityError(
                f"an engine takes and gives tensors of known dtype and rank, not {t}",
                call.span,
                "give values types by R.match_cast before the call",
            )
