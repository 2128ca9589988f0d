"""Rows of an explanation for what Python runs beside operators: calls of the host, and effects."""

from __future__ import annotations

from unity.ir.graph import Body, Call, CallPython, Expr, FunctionRef, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import ExternFunc, IRModule
from unity.op.effects import PRINT
from unity.runtime.explanation import SiteRow

from .call_site import HOST


def host_rows(name: str, body: Body, module: IRModule) -> dict[Var, SiteRow]:
    """A row for each call of a function of the host that stands in a body itself.

    Args:
        name: Of the function whose body it is.
        body: The body.
        module: It is of.
    """
    found: dict[Var, SiteRow] = {}
    for block in body.blocks:
        for binding in block.bindings:
            told = _called(binding.value, module)
            if told is not None:
                var, (what, args, why) = binding.var, told
                span = binding.value.span or var.span
                shapes = f"{', '.join(str(atom_type(a)) for a in args)} -> {var.type}"
                place = "" if span is None else str(span)
                found[var] = SiteRow(f"{name}/{var.name}", what, place, shapes, HOST, why)
    return found


def _called(e: Expr, module: IRModule) -> tuple[str, tuple[Expr, ...], str] | None:
    """What the host runs of an expression, on what, and why."""
    match e:
        case Call(FunctionRef(callee), args):
            definition = module[callee]
            if isinstance(definition, ExternFunc):
                return definition.symbol, args, "Python runs it: a registered function"
            return None
        case Call(Op(op), args) if op == PRINT:
            return op, args, "Python prints it"
        case CallPython(function, args):
            return getattr(function, "__name__", "a function"), args, "Python runs it"
        case _:
            return None
