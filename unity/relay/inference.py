"""Types of parts of programs: found by translating them."""

from __future__ import annotations

from collections.abc import Mapping

from unity.frontend.relay import syntax
from unity.frontend.relay.translator import Translator, translate
from unity.frontend.relay.values import is_real
from unity.ir.graph import Function
from unity.ir.types import FuncType, TensorType, Type
from unity.op.infer import infer_type

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


def types_of(module: syntax.Module) -> Mapping[syntax.Expr, TensorType]:
    """The types of the tensors, of known rank, that the entry and what it calls are computed from.

    Raises:
        UnityError: The module is ill-typed, or the type of a parameter of main is not declared.
    """
    translator = Translator(module)
    translator.module("main", {}, None)
    found: dict[syntax.Expr, TensorType] = {}
    for expr, value in translator.met.items():
        kind = infer_type(value, translator.signatures) if is_real(value) else None
        if isinstance(kind, TensorType) and isinstance(kind.shape, tuple):
            found[expr] = kind
    return found
