"""ExpandOps: operators that are several others become those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from unity.errors import Span
from unity.ir.dims import Symbol, dim
from unity.ir.graph import Call, Expr, Op, Tuple, Var
from unity.ir.module import IRModule
from unity.ir.types import TupleType, Type
from unity.op.call import call_op
from unity.op.emitter import Emitter
from unity.op.infer import infer_type
from unity.op.table import OPS

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class ExpandOps(Pass):
    """A call of an operator whose row has `expand` becomes what that says.

    Everything later sees the operators that kernels, libraries and rules are there for.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 9]) -> f32[Tensor, 2]:
    ...     y: f32[Tensor, 2] = R.std(x, axis=1)
    ...     return y
    ... ''')
    >>> print(*print_module(ExpandOps()(before, Context())).splitlines()[2:], sep=chr(10))
        y_variance = R.variance(x, axis=1)
        y = R.sqrt(y_variance)
        return y
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Expanding(module).function(f))


class _Expanding(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return value
        row = OPS.get(value.callee.name)
        if row is None or row.expand is None:
            return value
        emitter = _Pieces(self, var.name, value.span or var.span)
        bound = len(self._out)
        made = row.expand(emitter, value.args, value.attrs, self.infer(value))
        if _tells_sizes(value, self.signatures):
            return self._as_declared(made, var)
        # The last piece keeps the variable's name, by which call sites are chosen; an operand
        # that is the result as it is stays bound.
        pieces = len(self._out) > bound
        return self.withdrawn(made) if isinstance(made, Var) and pieces else made

    def _as_declared(self, made: Expr, var: Var) -> Expr:
        """What a call became, whose sizes are told by the symbols that its type had for them."""
        match made, var.type:
            case Tuple(fields), TupleType(kinds):
                pairs = zip(fields, kinds, strict=True)
                return Tuple(tuple(self.match_cast(f, k, var.name, var.span) for f, k in pairs))
            case _:
                return self.match_cast(self.atom(made), var.type, var.name, var.span)


def _tells_sizes(call: Call, signatures: Mapping[str, Type]) -> bool:
    """Whether sizes of a call's result show only when it runs."""
    asked: list[str] = []

    def fresh(name: str) -> Symbol:
        asked.append(name)
        return dim(name)

    infer_type(call, signatures, fresh)
    return bool(asked)


class _Pieces(Emitter):
    """Binds the calls in front of the one that is expanded, pieces that expand by their pieces."""

    def __init__(self, rewriter: BodyRewriter, label: str, span: Span | None) -> None:
        super().__init__(rewriter, label, span)
        self._names = Counter[str]()

    def op(self, name: str, *args: object, **attrs: object) -> Expr:
        known = self.binder.signatures
        call = call_op(name, *args, span=self.span, signatures=known, **attrs)
        row = OPS[name]
        if row.expand is not None:
            return row.expand(self, call.args, call.attrs, infer_type(call, known))
        short = name.rpartition(".")[2]
        self._names[short] += 1
        count = self._names[short]
        return self.binder.emit(
            call, f"{self.label}_{short}{'' if count == 1 else count}", self.span
        )
