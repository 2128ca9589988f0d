"""Whether the types written in a module are those that the rules infer. Run after `ir.verify`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, as_dim, dim, equal, floordiv, substitute, symbols_of
from unity.ir.graph import Body, CallEngine, CallTir, Expr, Function, MatchCast
from unity.ir.lattice import is_subtype, unify
from unity.ir.module import IRModule
from unity.ir.signature import check_call
from unity.ir.stmt import PrimFunc
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import bodies_of, substitute_symbols_in_type, walk_bindings

from .infer import infer_type, signatures_of


def check_types(module: IRModule) -> None:
    """Check every binding's declared type, and every function's result, against the rules.

    Raises:
        UnityError: The first thing found wrong, naming the function and the binding.
    """
    signatures = signatures_of(module)
    for name, definition in module.items():
        if isinstance(definition, Function):
            _check_function(name, definition, module, signatures)


@dataclass(slots=True)
class _Newborn:
    """Symbols made while typing one binding; they match whatever was declared."""

    made: list[Symbol] = field(default_factory=list[Symbol])

    def __call__(self, name: str) -> Symbol:
        symbol = dim(f"_new{len(self.made)}_{name}")
        self.made.append(symbol)
        return symbol


def _check_function(
    name: str, function: Function, module: IRModule, signatures: Mapping[str, Type]
) -> None:
    for binding in walk_bindings(function):
        where = f"{name}, binding {binding.var.name}"
        if isinstance(binding.value, CallTir):
            _check_kernel_call(where, binding.value, module)
        if isinstance(binding.value, CallEngine):
            _check_engine_call(where, binding.value, module)
        if isinstance(binding, MatchCast):
            if not is_subtype(binding.type, binding.var.type):
                raise UnityError(f"{where}: {binding.type} is no {binding.var.type}", binding.span)
            continue
        newborn = _Newborn()
        found = _infer(where, binding.value, signatures, newborn)
        _require(where, found, binding.var.type, newborn)
    for where, body, declared in _results(name, function):
        newborn = _Newborn()
        _require(where, _infer(where, body.result, signatures, newborn), declared, newborn)


def _results(name: str, function: Function) -> Iterator[tuple[str, Body, Type]]:
    yield f"{name}, result", function.body, function.result
    for binding in walk_bindings(function):
        if isinstance(binding.value, Function):
            where = f"{name}, closure {binding.var.name}, result"
            yield where, bodies_of(binding.value)[0], binding.value.result


def _infer(where: str, expr: Expr, signatures: Mapping[str, Type], newborn: _Newborn) -> Type:
    try:
        return infer_type(expr, signatures, newborn)
    except UnityError as error:
        raise UnityError(f"{where}: {error.message}", error.span, error.hint) from None


def _require(where: str, found: Type, declared: Type, newborn: _Newborn) -> None:
    bound: dict[Symbol, Dim] = {}
    if newborn.made:
        _match(found, declared, frozenset(newborn.made), bound)
    known = substitute_symbols_in_type(found, bound)
    if not is_subtype(known, declared):
        raise UnityError(
            f"{where}: has type {known}, declared as {declared}",
            hint="what the rules can't show needs a match_cast",
        )


def _match(found: Type, declared: Type, made: frozenset[Symbol], bound: dict[Symbol, Dim]) -> None:
    match found, declared:
        case TensorType(tuple(a)), TensorType(tuple(b)):
            _match_dims(a, b, made, bound)
        case ShapeType(tuple(a)), ShapeType(tuple(b)):
            _match_dims(a, b, made, bound)
        case TupleType(a), TupleType(b):
            for x, y in zip(a, b, strict=False):
                _match(x, y, made, bound)
        case _:
            pass


def _match_dims(
    found: tuple[Dim, ...],
    declared: tuple[Dim, ...],
    made: frozenset[Symbol],
    bound: dict[Symbol, Dim],
) -> None:
    for a, b in zip(found, declared, strict=False):
        open_symbols = (symbols_of(a) & made) - bound.keys()
        if len(open_symbols) == 1:
            (symbol,) = open_symbols
            value = _solution(substitute(a, bound), symbol, b)
            if value is not None:
                bound[symbol] = value


def _solution(a: Dim, symbol: Symbol, b: Dim) -> Dim | None:
    """What a symbol must be for one dim to be another: of a linear one, or another name for it.

    >>> k, n = dim("k"), dim("n")
    >>> _solution(k * 2 + 1, k, n * 2 + 3)
    n + 1
    """
    rest = substitute(a, {symbol: 0})
    factor = as_dim(substitute(a, {symbol: 1}) - rest)
    linear = [] if equal(factor, 0) else [floordiv(as_dim(b - rest), factor)]
    others = sorted(symbols_of(b), key=str)
    values = (*linear, *others)
    return next((v for v in values if equal(substitute(a, {symbol: v}), b)), None)


def _check_kernel_call(where: str, call: CallTir, module: IRModule) -> None:
    kernel = module[call.callee.name]
    if not isinstance(kernel, PrimFunc):
        raise UnityError(f"{where}: {call.callee.name} is no prim func", call.span)
    args = [_infer(where, a, {}, _Newborn()) for a in call.args]
    try:
        check_call(call.callee.name, kernel, args, call.out, call.inplace)
    except UnityError as error:
        raise UnityError(f"{where}: {error.message}", call.span, error.hint) from None


def _check_engine_call(where: str, call: CallEngine, module: IRModule) -> None:
    function = module[call.subgraph.name]
    if not isinstance(function, Function):
        raise UnityError(f"{where}: {call.subgraph.name} is no graph function", call.span)
    if len(call.args) != len(function.params):
        raise UnityError(
            f"{where}: {call.subgraph.name} takes {len(function.params)} arguments, "
            f"got {len(call.args)}",
            call.span,
        )
    args = [_infer(where, a, {}, _Newborn()) for a in call.args]
    try:
        unify([p.type for p in function.params], args)
    except UnityError as error:
        raise UnityError(f"{where}: {call.subgraph.name}: {error.message}", call.span) from None
