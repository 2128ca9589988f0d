"""The type of a graph expression: op rules, calls of functions, control flow.

Comes in: an expression and the types of the module's functions. Goes out: its type. Operands are
usually atoms (A-normal form), but nested expressions are typed just as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, assert_never

from unity.errors import Span, UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Symbol, dim, equal
from unity.ir.dtype import dtype
from unity.ir.graph import (
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.lattice import function_type, is_subtype, join, unify
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)
from unity.ir.visit import substitute_symbols_in_type, type_symbols

from .registry import OpCall, OpDef, Param, shown_value
from .table import OPS

Fresh: TypeAlias = Callable[[str], Symbol]
"""Gives a symbol that nothing uses yet, named after a hint."""


def infer_type(expr: Expr, signatures: Mapping[str, Type], fresh: Fresh = dim) -> Type:
    """The type of an expression.

    Args:
        expr: Any graph expression.
        signatures: The types of the module's functions (see `signatures_of`).
        fresh: Makes the symbols of data-dependent sizes.

    Raises:
        UnityError: The expression is ill-typed.
    """
    match expr:
        case Var():
            return expr.type
        case Constant(data):
            return TensorType(tuple(int(d) for d in data.shape), dtype(data.dtype))
        case ShapeValue(dims):
            return ShapeType(dims)
        case PrimValue(value, kind):
            known = kind.is_int and not isinstance(value, bool | float)
            return PrimType(kind, value if known and not isinstance(value, float) else None)
        case Literal():
            return ObjectType()
        case FunctionRef(name):
            if name not in signatures:
                raise UnityError(f"the module has no function {name!r}", expr.span)
            return signatures[name]
        case Op(name):
            raise UnityError(f"the operator {name!r} is no value: call it", expr.span)
        case Tuple(fields):
            return TupleType(tuple(infer_type(f, signatures, fresh) for f in fields))
        case TupleGet():
            return _field(expr, infer_type(expr.value, signatures, fresh))
        case Call(callee, args):
            types = tuple(infer_type(a, signatures, fresh) for a in args)
            if isinstance(callee, Op):
                return infer_op(expr, callee, types, fresh)
            return _call(expr, infer_type(callee, signatures, fresh), types, fresh)
        case CallTir(_, _, out) | CallLibrary(_, _, out) | CallPython(_, _, out):
            return out[0] if len(out) == 1 else TupleType(out)
        case CallEngine(_, _, _, out):
            return out[0] if len(out) == 1 else TupleType(out)
        case If():
            return _if(expr, signatures, fresh)
        case While():
            return _while(expr, signatures, fresh)
        case Scan():
            return _scan(expr, signatures, fresh)
        case Function(params, _, result, pure):
            return FuncType(tuple(p.type for p in params), result, pure)
        case _:
            assert_never(expr)


def signatures_of(module: IRModule) -> dict[str, Type]:
    """The types of a module's functions by name, for `infer_type`; a prim func is an object."""
    return {name: _signature(definition) for name, definition in module.items()}


def _signature(definition: Definition) -> Type:
    match definition:
        case Function():
            return function_type(definition)
        case PrimFunc():
            return ObjectType()
        case ExternFunc():
            return definition.type
        case _:
            assert_never(definition)


def infer_op(call: Call, op: Op, types: tuple[Type, ...], fresh: Fresh) -> Type:
    """The type of an operator's call, its arguments' types being known.

    Raises:
        UnityError: There is no such operator, or the arguments don't fit it.
    """
    row = OPS.get(op.name)
    if row is None:
        raise UnityError(f"there is no operator {op.name!r}", op.span or call.span)
    return infer_call(row, types, call.attrs, call.span, fresh)


def infer_call(
    row: OpDef,
    types: Sequence[Type],
    attrs: Attrs,
    span: Span | None = None,
    fresh: Fresh = dim,
) -> Type:
    """The type of a call of an operator, told by its row.

    Raises:
        UnityError: The arguments don't fit it.
    """
    call = OpCall(row, tuple(types), attrs, span, fresh)
    params = tuple(p for p in row.params if p.kind != "attr")
    needed = sum(p.default is not None for p in params)
    if not needed <= len(types) <= len(params):
        raise call.error(f"got {len(types)} arguments", row.usage)
    for param, found in zip(params, types, strict=False):
        _check_argument(call, param, found)
    _check_attributes(call, [p for p in row.params if p.kind == "attr"])
    return row.infer(call)


def _check_attributes(call: OpCall, params: Sequence[Param]) -> None:
    """Every attribute is there and holds what its type in the row says, and there is no other."""
    for param in params:
        if param.name not in call.attrs:
            raise call.error(f"lacks the attribute {param.name!r}", call.op.usage)
        value = call.attrs[param.name]
        if not param.takes(value):
            wanted = param.type.words if param.type is not None else ""
            raise call.error(
                f"{param.name!r} must be {wanted}, got {shown_value(value)}", call.op.usage
            )
    if len(call.attrs) > len(params):
        (name, *_) = sorted(set(call.attrs) - {p.name for p in params})
        raise call.error(f"has no attribute {name!r}", call.op.usage)


def _check_argument(call: OpCall, param: Param, found: Type) -> None:
    match param.kind:
        case "tensor":
            fits = isinstance(found, TensorType)
        case "tensors":
            fits = isinstance(found, TupleType) and all(
                isinstance(f, TensorType) for f in found.fields
            )
        case "shape":
            fits = isinstance(found, ShapeType)
        case "value":
            fits = True
        case "attr":
            fits = False
        case _:
            assert_never(param.kind)
    if not fits:
        kinds = {"tensor": "a tensor", "tensors": "a tuple of tensors", "shape": "a shape"}
        raise call.error(f"{param.name!r} must be {kinds[param.kind]}, got {type_name(found)}")


def type_name(found: Type) -> str:
    """What a type is, in words, for messages."""
    match found:
        case TensorType():
            return "a tensor"
        case ShapeType():
            return "a shape"
        case PrimType():
            return f"a scalar {found.dtype}"
        case TupleType(fields):
            return f"a tuple of {len(fields)}"
        case FuncType():
            return "a function"
        case ObjectType():
            return "an object"
        case _:
            assert_never(found)


def _field(expr: TupleGet, value: Type) -> Type:
    if not isinstance(value, TupleType):
        raise UnityError(f"can't take field {expr.index} of {type_name(value)}", expr.span)
    if not 0 <= expr.index < len(value.fields):
        raise UnityError(f"{type_name(value)} has no field {expr.index}", expr.span)
    return value.fields[expr.index]


def _call(call: Call, callee: Type, args: Sequence[Type], fresh: Fresh) -> Type:
    if not isinstance(callee, FuncType):
        raise UnityError(f"{type_name(callee)} can't be called", call.span)
    if len(callee.params) != len(args):
        said = call.callee.name if isinstance(call.callee, FunctionRef | Var) else "the function"
        many = f"{len(callee.params)} argument{'s' * (len(callee.params) != 1)}"
        raise UnityError(
            f"{said} takes {many}, got {len(args)}", call.span, f"its type is {callee}"
        )
    try:
        bound = dict(unify(callee.params, args))
    except UnityError as error:
        raise UnityError(error.message, error.span or call.span, error.hint) from None
    # A module's function sees no symbols but its own; a closure may name those around it.
    if isinstance(call.callee, FunctionRef):
        for symbol in sorted(type_symbols(callee.result), key=lambda s: s.name):
            bound.setdefault(symbol, fresh(symbol.name))
    return substitute_symbols_in_type(callee.result, bound)


def _if(expr: If, signatures: Mapping[str, Type], fresh: Fresh) -> Type:
    _check_condition(infer_type(expr.condition, signatures, fresh), expr.span)
    return join(
        infer_type(expr.then.result, signatures, fresh),
        infer_type(expr.orelse.result, signatures, fresh),
    )


def _check_condition(found: Type, span: Span | None) -> None:
    match found:
        case TensorType(shape, kind) if shape in ((), 0, None) and str(kind) == "bool":
            return
        case PrimType(kind) if str(kind) == "bool":
            return
        case _:
            raise UnityError(
                f"a condition must be a scalar bool, got {type_name(found)}",
                span,
                "compare first, as in R.greater(x, y), and reduce to rank 0",
            )


def _while(expr: While, signatures: Mapping[str, Type], fresh: Fresh) -> Type:
    _check_condition(infer_type(expr.condition.result, signatures, fresh), expr.span)
    states = tuple(v.type for v in expr.vars)
    starts = tuple(infer_type(e, signatures, fresh) for e in expr.init)
    _check_states("starts as", expr.vars, starts, expr.span)
    following = infer_type(expr.body.result, signatures, fresh)
    if not isinstance(following, TupleType):
        raise UnityError("a loop's body must give a tuple of the next state", expr.span)
    _check_states("becomes", expr.vars, following.fields, expr.span)
    return TupleType(states)


def _check_states(
    verb: str, states: Sequence[Var], found: Sequence[Type], span: Span | None
) -> None:
    if len(states) != len(found):
        raise UnityError(f"a loop over {len(states)} vars got {len(found)} values", span)
    for state, value in zip(states, found, strict=True):
        if not is_subtype(value, state.type):
            raise UnityError(
                f"the loop's {state.name!r} has type {state.type}, but {verb} {value}",
                span,
                "a state keeps one type; give it a type with an unknown size if it grows",
            )


def _scan(expr: Scan, signatures: Mapping[str, Type], fresh: Fresh) -> Type:
    starts = tuple(infer_type(e, signatures, fresh) for e in expr.init)
    _check_states("starts as", expr.state, starts, expr.span)
    inputs = [infer_type(e, signatures, fresh) for e in expr.inputs]
    if not inputs:
        raise UnityError("scan needs an input to run over", expr.span)
    lengths = []
    for value in inputs:
        if not isinstance(value, TensorType) or value.ndim == 0:
            raise UnityError(f"scan runs over tensors, got {type_name(value)}", expr.span)
        if isinstance(value.shape, tuple):
            lengths.append(value.shape[0])
    if any(not equal(lengths[0], other) for other in lengths[1:]):
        raise UnityError(f"scan's inputs have different lengths: {lengths}", expr.span)
    result = infer_type(expr.body.result, signatures, fresh)
    if not isinstance(result, TupleType):
        raise UnityError("scan's body must give a tuple: states, then outputs", expr.span)
    count = len(expr.state)
    _check_states("becomes", expr.state, result.fields[:count], expr.span)
    stacked: list[Type] = []
    for output in result.fields[count:]:
        if not isinstance(output, TensorType):
            raise UnityError(f"scan can't stack {type_name(output)}", expr.span)
        if lengths and isinstance(output.shape, tuple):
            stacked.append(TensorType((lengths[0], *output.shape), output.dtype))
        else:
            rank = output.ndim
            stacked.append(TensorType(None if rank is None else rank + 1, output.dtype))
    return TupleType((*(v.type for v in expr.state), *stacked))
