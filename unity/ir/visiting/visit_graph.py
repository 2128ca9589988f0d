"""Walking and rewriting graph functions. What did not change is the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never, overload

from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, Symbol, SymDim, substitute, symbols_of
from unity.ir.graph import (
    Binding,
    BindingBlock,
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
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

T = TypeVar("T")


def graph_children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression; nested bodies are in `bodies_of`."""
    match e:
        case (
            Var()
            | Constant()
            | ShapeValue()
            | PrimValue()
            | Literal()
            | FunctionRef()
            | Op()
            | Function()
        ):
            return ()
        case Tuple():
            return e.fields
        case TupleGet():
            return (e.value,)
        case Call():
            return (e.callee, *e.args)
        case CallTir():
            return (e.callee, *e.args)
        case CallLibrary() | CallPython():
            return e.args
        case CallEngine():
            return (e.subgraph, *e.args)
        case If():
            return (e.condition,)
        case While():
            return e.init
        case Scan():
            return (*e.init, *e.inputs)
        case _:
            assert_never(e)


def bodies_of(e: Expr) -> tuple[Body, ...]:
    """The bodies nested directly in an expression."""
    match e:
        case If():
            return (e.then, e.orelse)
        case While():
            return (e.condition, e.body)
        case Scan() | Function():
            return (e.body,)
        case _:
            return ()


def walk_bindings(of: Function | Body) -> Iterator[Binding]:
    """All bindings in order, each before those of the bodies nested in its right side."""
    body = of.body if isinstance(of, Function) else of
    for block in body.blocks:
        for binding in block.bindings:
            yield binding
            for inner in _nested(binding.value):
                yield from walk_bindings(inner)


def _nested(e: Expr) -> Iterator[Body]:
    yield from bodies_of(e)
    for child in graph_children(e):
        yield from _nested(child)


def walk_constants(of: Expr | Body) -> Iterator[Constant]:
    """All constants, nested bodies included, each as often as it stands there."""
    if isinstance(of, Constant):
        yield of
    elif isinstance(of, Body):
        for block in of.blocks:
            for binding in block.bindings:
                yield from walk_constants(binding.value)
        yield from walk_constants(of.result)
    else:
        for part in (*graph_children(of), *bodies_of(of)):
            yield from walk_constants(part)


def _inner_vars(e: Expr) -> tuple[Var, ...]:
    match e:
        case While():
            return e.vars
        case Scan():
            return (*e.state, *e.elements)
        case Function():
            return e.params
        case _:
            return ()


def free_vars(of: Expr | Body) -> set[Var]:
    """The variables used but not bound within."""
    found: dict[Var, None] = {}
    _free(of, set(), found)
    return set(found)


def _free(of: Expr | Body, bound: set[Var], found: dict[Var, None]) -> None:
    if isinstance(of, Body):
        inner = set(bound)
        for block in of.blocks:
            for binding in block.bindings:
                _free(binding.value, inner, found)
                inner.add(binding.var)
        _free(of.result, inner, found)
        return
    if isinstance(of, Var):
        if of not in bound:
            found[of] = None
        return
    for child in graph_children(of):
        _free(child, bound, found)
    bodies = bodies_of(of)
    if bodies:
        inner = bound | set(_inner_vars(of))
        for body in bodies:
            _free(body, inner, found)


def map_all(items: tuple[T, ...], fn: Callable[[T], T]) -> tuple[T, ...]:
    """The tuple with `fn` applied to each item; the same tuple if none changed."""
    # Rewriting spends its time here: a list and a plain loop are twice as fast as generators.
    new = [fn(item) for item in items]
    for a, b in zip(items, new, strict=True):
        if a is not b:
            return tuple(new)
    return items


def map_expr(e: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """The expression with `fn` applied to each direct operand (not inside nested bodies).

    `fn` must give a callee of a fitting kind for the callee of a call.
    """
    match e:
        case (
            Var()
            | Constant()
            | ShapeValue()
            | PrimValue()
            | Literal()
            | FunctionRef()
            | Op()
            | Function()
        ):
            return e
        case Tuple():
            fields = map_all(e.fields, fn)
            return e if fields is e.fields else replace(e, fields=fields)
        case TupleGet():
            value = fn(e.value)
            return e if value is e.value else replace(e, value=value)
        case Call():
            callee, args = fn(e.callee), map_all(e.args, fn)
            assert isinstance(callee, Op | FunctionRef | Var)
            same = callee is e.callee and args is e.args
            return e if same else replace(e, callee=callee, args=args)
        case CallTir():
            ref, args = fn(e.callee), map_all(e.args, fn)
            assert isinstance(ref, FunctionRef)
            return e if ref is e.callee and args is e.args else replace(e, callee=ref, args=args)
        case CallLibrary() | CallPython():
            args = map_all(e.args, fn)
            return e if args is e.args else replace(e, args=args)
        case CallEngine():
            ref, args = fn(e.subgraph), map_all(e.args, fn)
            assert isinstance(ref, FunctionRef)
            return (
                e if ref is e.subgraph and args is e.args else replace(e, subgraph=ref, args=args)
            )
        case If():
            condition = fn(e.condition)
            return e if condition is e.condition else replace(e, condition=condition)
        case While():
            init = map_all(e.init, fn)
            return e if init is e.init else replace(e, init=init)
        case Scan():
            init, inputs = map_all(e.init, fn), map_all(e.inputs, fn)
            same = init is e.init and inputs is e.inputs
            return e if same else replace(e, init=init, inputs=inputs)
        case _:
            assert_never(e)


def map_bodies(e: Expr, fn: Callable[[Body], Body]) -> Expr:
    """The expression with `fn` applied to the bodies nested directly in it."""
    match e:
        case If():
            then, orelse = fn(e.then), fn(e.orelse)
            same = then is e.then and orelse is e.orelse
            return e if same else replace(e, then=then, orelse=orelse)
        case While():
            condition, body = fn(e.condition), fn(e.body)
            same = condition is e.condition and body is e.body
            return e if same else replace(e, condition=condition, body=body)
        case Scan() | Function():
            body = fn(e.body)
            return e if body is e.body else replace(e, body=body)
        case _:
            return e


def map_body(
    body: Body, binding: Callable[[Binding], Binding], result: Callable[[Expr], Expr]
) -> Body:
    """The body with `binding` applied to each binding (in order) and `result` to its result."""

    def on_block(block: BindingBlock) -> BindingBlock:
        bindings = map_all(block.bindings, binding)
        return block if bindings is block.bindings else replace(block, bindings=bindings)

    blocks = map_all(body.blocks, on_block)
    new = result(body.result)
    return body if blocks is body.blocks and new is body.result else Body(blocks, new)


@overload
def substitute_vars(of: Function, mapping: Mapping[Var, Expr]) -> Function: ...
@overload
def substitute_vars(of: Body, mapping: Mapping[Var, Expr]) -> Body: ...
@overload
def substitute_vars(of: Expr, mapping: Mapping[Var, Expr]) -> Expr: ...
def substitute_vars(of: Expr | Body, mapping: Mapping[Var, Expr]) -> Expr | Body:
    """Uses of variables replaced, nested bodies included; variables bound within are left alone."""
    if not mapping:
        return of

    def on_expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return mapping.get(e, e)
        return map_bodies(map_expr(e, on_expr), on_body)

    def on_binding(binding: Binding) -> Binding:
        value = on_expr(binding.value)
        return binding if value is binding.value else replace(binding, value=value)

    def on_body(body: Body) -> Body:
        return map_body(body, on_binding, on_expr)

    return on_body(of) if isinstance(of, Body) else on_expr(of)


def map_type_dims(t: Type, fn: Callable[[Dim], Dim]) -> Type:
    """The type with `fn` applied to each dim."""
    match t:
        case TensorType():
            if not isinstance(t.shape, tuple):
                return t
            shape = map_all(t.shape, fn)
            return t if shape is t.shape else replace(t, shape=shape)
        case ShapeType():
            if not isinstance(t.dims, tuple):
                return t
            dims = map_all(t.dims, fn)
            return t if dims is t.dims else replace(t, dims=dims)
        case PrimType():
            if t.value is None:
                return t
            value = fn(t.value)
            return t if value is t.value else replace(t, value=value)
        case TupleType():
            fields = map_all(t.fields, lambda f: map_type_dims(f, fn))
            return t if fields is t.fields else replace(t, fields=fields)
        case FuncType() | ObjectType():
            return t  # a function type's symbols are its own
        case _:
            assert_never(t)


def type_symbols(t: Type) -> frozenset[Symbol]:
    """The symbols a type mentions."""
    found: set[Symbol] = set()

    def note(d: Dim) -> Dim:
        found.update(symbols_of(d))
        return d

    map_type_dims(t, note)
    return frozenset(found)


def substitute_symbols_in_type(t: Type, mapping: Mapping[Symbol, Dim]) -> Type:
    """The type with symbols replaced."""
    return map_type_dims(t, lambda d: substitute(d, mapping)) if mapping else t


@overload
def substitute_symbols(of: Function, mapping: Mapping[Symbol, Dim]) -> Function: ...
@overload
def substitute_symbols(of: Body, mapping: Mapping[Symbol, Dim]) -> Body: ...
@overload
def substitute_symbols(of: Expr, mapping: Mapping[Symbol, Dim]) -> Expr: ...
def substitute_symbols(of: Expr | Body, mapping: Mapping[Symbol, Dim]) -> Expr | Body:
    """Symbols replaced everywhere: types of variables, shape values, attributes, declared types.

    Variables whose type changes are replaced by new ones throughout.
    """
    if not mapping:
        return of
    return _SymbolRewriter(mapping).apply(of)


def copy_of(
    body: Body,
    symbols: Mapping[Symbol, Dim],
    values: Mapping[Var, Expr],
    renamed: Callable[[str], str],
) -> Body:
    """A body once more, with variables of its own, so that both may stand in one function.

    Args:
        body: It binds no closures, whose types name symbols of their own.
        symbols: What symbols in it stand for.
        values: What variables free in it stand for.
        renamed: The name of a copied variable, given that of the one it is a copy of.
    """
    return substitute_vars(_SymbolRewriter(symbols, renamed).body(body), values)


class _SymbolRewriter:
    """Carries the variables already renamed."""

    def __init__(
        self, mapping: Mapping[Symbol, Dim], renamed: Callable[[str], str] | None = None
    ) -> None:
        self.mapping = mapping
        self.renamed = renamed
        self.vars: dict[Var, Var] = {}

    def apply(self, of: Expr | Body) -> Expr | Body:
        return self.body(of) if isinstance(of, Body) else self.expr(of)

    def dim(self, d: Dim) -> Dim:
        return substitute(d, self.mapping)

    def type(self, t: Type) -> Type:
        return map_type_dims(t, self.dim)

    def define(self, var: Var) -> Var:
        new = self.type(var.type)
        if self.renamed is not None:
            self.vars[var] = Var(self.renamed(var.name), new, var.span)
        elif new is not var.type:
            self.vars[var] = Var(var.name, new, var.span)
        return self.vars.get(var, var)

    def attrs(self, attrs: Attrs) -> Attrs:
        if not any(_mentions_symbol(v) for v in attrs.values()):
            return attrs
        return Attrs({k: self.attr(v) for k, v in attrs.items()})

    def attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(self.attr(v) for v in value)
        return self.dim(value) if isinstance(value, SymDim) else value

    def types(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        return map_all(types, self.type)

    def expr(self, e: Expr) -> Expr:
        match e:
            case Var():
                return self.vars.get(e, e)
            case ShapeValue():
                dims = map_all(e.dims, self.dim)
                return e if dims is e.dims else replace(e, dims=dims)
            case PrimValue(value=SymDim() as value):
                new = self.dim(value)
                return e if new is value else replace(e, value=new)
            case While():
                e = replace(e, vars=map_all(e.vars, self.define))
            case Scan():
                state, elements = map_all(e.state, self.define), map_all(e.elements, self.define)
                e = replace(e, state=state, elements=elements)
            case Function():
                params, result = map_all(e.params, self.define), self.type(e.result)
                e = replace(e, params=params, result=result)
            case Call():
                attrs = self.attrs(e.attrs)
                e = e if attrs is e.attrs else replace(e, attrs=attrs)
            case CallTir():
                out, sizes = self.types(e.out), map_all(e.sym_args, self.dim)
                if out is not e.out or sizes is not e.sym_args:
                    e = replace(e, out=out, sym_args=sizes)
            case CallLibrary() | CallPython() | CallEngine():
                out = self.types(e.out)
                e = e if out is e.out else replace(e, out=out)
            case _:
                pass
        return map_bodies(map_expr(e, self.expr), self.body)

    def binding(self, binding: Binding) -> Binding:
        value = self.expr(binding.value)
        var = self.define(binding.var)
        match binding:
            case VarBinding():
                same = value is binding.value and var is binding.var
                return binding if same else replace(binding, var=var, value=value)
            case MatchCast():
                return replace(binding, var=var, value=value, type=self.type(binding.type))
            case _:
                assert_never(binding)

    def body(self, body: Body) -> Body:
        return map_body(body, self.binding, self.expr)


def _mentions_symbol(value: AttrValue) -> bool:
    if isinstance(value, tuple):
        return any(_mentions_symbol(v) for v in value)
    return isinstance(value, SymDim)
