"""Functions that call themselves: each becomes a function of the module.

What it reads of the bodies around it become further parameters. They are found by translating it
once for that alone, as a call of itself, which passes them on, may come before a use of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unity.errors import UnityError
from unity.ir import graph
from unity.ir.types import FuncType, TensorType, TupleType, Type
from unity.op.builder import identifier

from . import syntax
from .types import is_first_order, type_of
from .values import Closure, Failure, Frame, Lacking, Scope, Value, described, is_real

if TYPE_CHECKING:
    from .translator import Translator


@dataclass(slots=True, eq=False)
class Lifted:
    """A function of the module that a Relay function became.

    Attributes:
        name: What it is called in the module.
        result: The declared type of its result.
        home: The scope that it was written in.
        frame: It itself.
        captured: Values of other frames that it takes behind its own parameters.
    """

    name: str
    result: syntax.Type
    home: Scope
    frame: Frame
    captured: tuple[graph.Var, ...] = ()


def lift(translator: Translator, callee: Closure) -> Lifted | str:
    """What a function that calls itself becomes; a text says why it can't."""
    function = callee.function
    if function.result is None or not is_first_order(function.result):
        return "a function that calls itself and declares no type of tensors for its result"
    if not all(is_first_order(p.type) for p in function.params):
        return "a function that calls itself and takes other values than tensors"
    name = identifier(callee.name)
    while name in translator.signatures or name == "main":
        name += "_"
    known, made = dict(translator.lifted), dict(translator.functions)
    calls = len(translator.record.calls)
    found = _lifted(translator, callee, name, function.result, ())
    translator.lifted.clear()
    translator.lifted.update(known)
    translator.functions.clear()
    translator.functions.update(made)
    del translator.record.calls[calls:]
    return _lifted(translator, callee, name, function.result, tuple(found.frame.captured))


def _lifted(
    translator: Translator,
    callee: Closure,
    name: str,
    result: syntax.Type,
    captured: tuple[graph.Var, ...],
) -> Lifted:
    function, frame = callee.function, Frame(name)
    builder = translator.builder()
    found = Lifted(name, result, callee.scope, frame, captured)
    scope = Scope(builder, frame, callee.scope)
    frame.captured.update((v, builder.new_var(v.name, v.type)) for v in captured)
    for param in function.params:
        assert param.type is not None
        kind = type_of(param.type, identifier(param.name), builder.fresh)
        scope.vars[param] = builder.param(param.name, kind, param.span)
    params = (*builder.params, *frame.captured.values())
    declared = _open(type_of(result, name, builder.fresh), result)
    translator.signatures[name] = FuncType(tuple(p.type for p in params), declared)
    translator.lifted[function] = found
    value = translator.value(function.body, scope)
    if isinstance(value, Failure):
        raise UnityError(value.what, value.span)
    if is_real(value):
        value = translator.declared(value, result, f"the result of {callee.name}", scope)
        assert is_real(value)
        translator.functions[name] = builder.finish(value, params, result_type=declared)
    return found


def _open(kind: Type, declared: syntax.Type) -> Type:
    """A result's type: where a dim is unknown, only the rank is."""
    match kind, declared:
        case TensorType(tuple() as shape, element), syntax.TensorType() if None in declared.shape:
            return TensorType(len(shape), element)
        case TupleType(fields), syntax.TupleType():
            pairs = zip(fields, declared.fields, strict=True)
            return TupleType(tuple(_open(f, d) for f, d in pairs))
        case _:
            return kind


def call_lifted(
    translator: Translator, lifted: Lifted, values: list[Value], expr: syntax.Call, scope: Scope
) -> Value:
    """A call of such a function."""
    args: list[graph.Expr] = []
    for value in values:
        if isinstance(value, Lacking | Failure):
            return value
        if not is_real(value):
            what = f"{described(value)} given to one that calls itself"
            return translator.lacking(what, expr)
        args.append(value)
    args += (_passed(lifted, v, scope) for v in lifted.captured)
    call = graph.Call(graph.FunctionRef(lifted.name), tuple(args), span=expr.span)
    return _named(scope.builder.emit(call, None, expr.span), lifted.name, scope)


def _passed(lifted: Lifted, var: graph.Var, scope: Scope) -> graph.Var:
    """A captured value where the function is called."""
    if scope.frame is lifted.home.frame:
        return var
    found = scope.captured(var)
    assert isinstance(found, graph.Var)
    return found


def _named(value: graph.Var, name: str, scope: Scope) -> Value:
    """A result whose unknown dims have symbols."""
    kind = value.type
    if isinstance(kind, TensorType) and isinstance(kind.shape, int):
        fresh = tuple(scope.builder.fresh(f"{name}_d{i}") for i in range(kind.shape))
        return scope.builder.match_cast(value, TensorType(fresh, kind.dtype))
    return value
