"""The verifier: whether a module is well formed. Messages name the function and the binding.

Checks scoping, A-normal form, declared types of leaf values, symbol scope, purity of dataflow
blocks, references, and for prim funcs the scoping of variables and buffers, arity of accesses and
block signatures. Types inferred by operators' rules are checked by `unity.op.check.check_types`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unity.errors import Span, UnityError
from unity.ir.aliases import aliases_of
from unity.ir.dims import Symbol, dim_text, symbols_of
from unity.ir.dtype import DType
from unity.ir.graph import (
    Binding,
    Body,
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
    MatchCast,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.lattice import atom_type, is_subtype
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import is_contiguous
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import symbol_of, to_dim
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visiting.visit_graph import bodies_of, graph_children, type_symbols

from .verify_prim import verify_prim_func


def verify(module: IRModule) -> None:
    """Check a whole module.

    Raises:
        UnityError: The first thing found wrong, naming the function and the binding.
    """
    for name, definition in module.items():
        if isinstance(definition, Function):
            verify_function(name, definition, module)
        elif isinstance(definition, PrimFunc):
            verify_prim_func(name, definition)


def verify_function(name: str, function: Function, module: IRModule) -> None:
    """Check a graph function of a module."""
    _check_function(function, _Scope(name, module))


@dataclass(slots=True)
class _Scope:
    """Where we are and what may be used here."""

    function: str
    module: IRModule
    vars: set[Var] = field(default_factory=set[Var])
    symbols: set[Symbol] = field(default_factory=set[Symbol])
    binding: str | None = None

    def inner(self) -> _Scope:
        return _Scope(self.function, self.module, set(self.vars), set(self.symbols), self.binding)

    def error(self, message: str, span: Span | None = None, hint: str | None = None) -> UnityError:
        place = (
            self.function if self.binding is None else f"{self.function}, binding {self.binding}"
        )
        return UnityError(f"{place}: {message}", span, hint)


def _check_function(function: Function, scope: _Scope) -> None:
    for param in function.params:
        _define(param, scope)
        scope.symbols |= type_symbols(param.type)
    _check_body(function.body, scope)
    unknown = type_symbols(function.result) - scope.symbols
    if unknown:
        raise scope.error(
            f"the result type mentions {_names(unknown)}, unknown here", function.span
        )
    got = atom_type(function.body.result)
    scope.binding = None
    aliases_of(function)
    if got is not None and not _may_be(got, function.result):
        raise scope.error(f"returns {got}, declared as {function.result}", function.span)


def _may_be(got: Type, declared: Type) -> bool:
    """Whether a value of the one type can be declared as the other; dims are left to inference."""
    if isinstance(got, TensorType) and isinstance(declared, TensorType):
        ranks: set[int | None] = {got.ndim, declared.ndim} - {None}
        dtypes: set[DType | None] = {got.dtype, declared.dtype} - {None}
        return len(ranks) <= 1 and len(dtypes) <= 1
    if isinstance(got, TupleType) and isinstance(declared, TupleType):
        return len(got.fields) == len(declared.fields) and all(
            _may_be(a, b) for a, b in zip(got.fields, declared.fields, strict=True)
        )
    return type(got) is type(declared) or is_subtype(got, declared)


def _names(symbols: set[Symbol] | frozenset[Symbol]) -> str:
    return ", ".join(sorted(str(s) for s in symbols))


def _define(var: Var, scope: _Scope) -> None:
    if var in scope.vars:
        raise scope.error(f"{var.name} is bound twice", var.span)
    scope.vars.add(var)


def _check_body(body: Body, scope: _Scope) -> None:
    for block in body.blocks:
        for binding in block.bindings:
            scope.binding = binding.var.name
            _check_binding(binding, block.dataflow, scope)
    scope.binding = None
    _check_atom(body.result, scope, "the result")


def _check_binding(binding: Binding, dataflow: bool, scope: _Scope) -> None:
    _check_value(binding.value, scope)
    if dataflow and isinstance(binding.value, If | While | Scan):
        kind = type(binding.value).__name__
        raise scope.error(f"{kind} can't stand in a dataflow block", binding.span)
    match binding:
        case MatchCast():
            scope.symbols |= type_symbols(binding.type)
        case VarBinding():
            # A data-dependent operator gives birth to the symbols of its result.
            if isinstance(binding.value, Call | If | While | Scan):
                scope.symbols |= type_symbols(binding.var.type)
    unknown = type_symbols(binding.var.type) - scope.symbols
    if unknown:
        raise scope.error(f"its type mentions {_names(unknown)}, bound nowhere", binding.span)
    _define(binding.var, scope)


def _check_value(e: Expr, scope: _Scope) -> None:
    match e:
        case Tuple():
            for item in e.fields:
                _check_atom(item, scope, "a tuple's field")
        case Function():
            _check_function(e, scope.inner())
        case CallTir() | CallEngine() | CallLibrary() | CallPython():
            for d in e.sym_args if isinstance(e, CallTir) else ():
                _check_symbols(symbols_of(d), scope)
            for t in e.out:
                _check_symbols(type_symbols(t), scope)
            _check_operands(e, scope)
        case _:
            _check_operands(e, scope)
    if isinstance(e, CallTir):
        callee = scope.module.functions.get(e.callee.name)
        if not isinstance(callee, PrimFunc):
            raise scope.error(f"call_tir of {e.callee.name}, which is no prim func", e.span)
        expected = len(callee.buffers)
        if len(e.args) + len(e.out) - len([i for i in e.inplace if i >= 0]) != expected:
            raise scope.error(
                f"{e.callee.name} takes {expected} buffers, "
                f"got {len(e.args)} inputs and {len(e.out)} outputs", e.span
            )  # fmt: skip
        sizes = len(callee.params) - expected
        if len(e.sym_args) != sizes:
            raise scope.error(
                f"{e.callee.name} takes {sizes} scalars as sym_args, got {len(e.sym_args)}", e.span
            )
        _check_strides(callee, e, scope)
    for body in bodies_of(e) if not isinstance(e, Function) else ():
        inner = scope.inner()
        for var in _loop_vars(e):
            _define(var, inner)
            inner.symbols |= type_symbols(var.type)
        _check_body(body, inner)


def _check_strides(callee: PrimFunc, call: CallTir, scope: _Scope) -> None:
    """Refuse kernels that read tensors otherwise than they lie: all are contiguous."""
    explicit = [p for p in callee.params if not isinstance(p, Buffer)]
    pairs = zip(explicit, call.sym_args, strict=True)
    known = {symbol_of(p): value for p, value in pairs if isinstance(p, SizeVar)}
    for buffer in callee.buffers:
        if not is_contiguous(buffer, known):
            dims = [to_dim(s) for s in buffer.strides or ()]
            strides = ", ".join("?" if d is None else dim_text(d) for d in dims)
            raise scope.error(
                f"{call.callee.name} takes the buffer {buffer.name} with strides ({strides}), "
                "but tensors are contiguous",
                call.span,
                "leave the strides out, or call the kernel itself with arrays of these strides",
            )


def _loop_vars(e: Expr) -> tuple[Var, ...]:
    match e:
        case While():
            return e.vars
        case Scan():
            return (*e.state, *e.elements)
        case _:
            return ()


def _check_operands(e: Expr, scope: _Scope) -> None:
    if isinstance(e, Var | Constant | ShapeValue | PrimValue | Literal | FunctionRef | Op):
        _check_atom(e, scope, "the value")
    for operand in graph_children(e):
        _check_atom(operand, scope, "an operand")


def _check_atom(e: Expr, scope: _Scope, what: str) -> None:
    match e:
        case Var():
            if e not in scope.vars:
                raise scope.error(f"{what} is {e.name}, which is not in scope", e.span)
        case FunctionRef():
            if e.name not in scope.module:
                raise scope.error(f"{what} is {e.name}, which the module lacks", e.span)
            callee = scope.module[e.name]
            if isinstance(callee, Function) and "aliases" in callee.attrs:
                message = f"{e.name} writes over its arguments (aliases): only Python may call it"
                raise scope.error(message, e.span)
        case ShapeValue():
            _check_symbols(symbols_of(*e.dims), scope)
        case PrimValue():
            if not isinstance(e.value, float | bool):
                _check_symbols(symbols_of(e.value), scope)
        case Constant() | Literal() | Op():
            return
        case Tuple():
            for item in e.fields:
                _check_atom(item, scope, what)
        case TupleGet() if isinstance(e.value, Var):
            _check_atom(e.value, scope, what)
        case _:
            raise scope.error(f"{what} is a {type(e).__name__}: bind it first (A-normal form)")


def _check_symbols(symbols: frozenset[Symbol], scope: _Scope) -> None:
    unknown = symbols - scope.symbols
    if unknown:
        raise scope.error(
            f"{_names(unknown)} is bound nowhere",
            hint="a symbol is told by a parameter's shape, a scalar parameter of it "
            '(R.Prim("int64", n)) or a match_cast before',
        )
