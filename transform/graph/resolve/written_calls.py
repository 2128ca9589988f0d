"""Rows of an explanation for calls of which the program itself says who computes them."""

from __future__ import annotations

from unity.errors import place_of
from unity.ir.graph import (
    Body,
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Expr,
    FunctionRef,
    Op,
    Var,
)
from unity.ir.lattice import atom_type
from unity.ir.module import ExternFunc, IRModule
from unity.op.effects import PRINT
from unity.runtime.explanation import SiteRow

from .call_site import ENGINE, HOST, LIBRARY, TIR, scopes_of


def written_rows(name: str, body: Body, module: IRModule) -> dict[Var, SiteRow]:
    """A row for each call of a kernel, a library, an engine or the host that stands in a body.

    Args:
        name: Of the function whose body it is.
        body: The body; those nested in it have rows of their own.
        module: It is of.
    """
    found: dict[Var, SiteRow] = {}
    for block in body.blocks:
        for binding in block.bindings:
            told = _called(binding.value, module)
            if told is not None:
                var, (what, args, choice, why) = binding.var, told
                shapes = f"{', '.join(str(atom_type(a)) for a in args)} -> {var.type}"
                place = place_of(binding.value.span or var.span)
                found[var] = SiteRow(f"{name}/{var.name}", what, place, shapes, choice, why)
    return found


def written_choices(module: IRModule) -> dict[str, str]:
    """Who computes each such call of a module, nested ones as well, by its site's name."""
    return {
        row.site: row.choice
        for name, function in module.graph_functions().items()
        for scope in scopes_of(function)
        for row in written_rows(name, scope.body, module).values()
    }


def _called(e: Expr, module: IRModule) -> tuple[str, tuple[Expr, ...], str, str] | None:
    """What is called on what, who computes it, and why."""
    match e:
        case CallTir(FunctionRef(kernel), args):
            return kernel, args, TIR, "the program calls this kernel"
        case CallLibrary(symbol, args):
            return symbol, args, f"{LIBRARY}{symbol}", "the program calls this function"
        case CallEngine(engine, FunctionRef(subgraph), args):
            return subgraph, args, f"{ENGINE}{engine}", "the program gives it to this engine"
        case Call(FunctionRef(callee), args):
            definition = module[callee]
            if isinstance(definition, ExternFunc):
                return definition.symbol, args, HOST, "Python runs it: a registered function"
            return None
        case Call(Op(op), args) if op == PRINT:
            return op, args, HOST, "Python prints it"
        case CallPython(function, args):
            return getattr(function, "__name__", "a function"), args, HOST, "Python runs it"
        case _:
            return None
