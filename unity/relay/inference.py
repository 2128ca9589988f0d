"""Types of parts of programs: found by translating them."""

from __future__ import annotations

from unity.frontend.relay import syntax
from unity.frontend.relay.translator import translate
from unity.ir.graph import Function
from unity.ir.types import FuncType, Type

from .nodes import free


def type_of_expr(node: syntax.Expr) -> Type:
    """The type of an expression whose free variables are declared."""
    if isinstance(node, syntax.Function):
        found = _translated(node)
        return FuncType(tuple(p.type for p in found.params), found.result)
    return _translated(syntax.Function(tuple(free(node)), node, span=node.span)).result


def _translated(function: syntax.Function) -> Function:
    main = translate(syntax.Module({"main": function}, file="<script>"))["main"]
    assert isinstance(main, Function)
    return main
