"""A prim func from its definition: parameters by annotation, then the body."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import Symbol
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import Buffer, Param, PrimFunc
from unity.ir.symbols.convert import size_var
from unity.ir.well_formed.verify_prim import verify_prim_func
from unity.op.registry import attr_value

from .. import prim_names
from ..annotations import Align, BufferSpec, Element, ScalarSpec, SizeSpec, Strides
from ..annotations import Buffer as BufferWord
from ..annotations import Scope as ScopeWord
from ..macros.expand import expanded
from .bound_calls import with_bound_calls
from .evaluate import shown
from .prim_stmt import StmtParser
from .scope import Scope
from .source import Source

_PARAM_HINT = (
    'write a: f32[Buffer, n, 128] for a buffer, s: T.scalar("float32") for a scalar, '
    "k: T.size for a size"
)


def parse_prim_func(
    source: Source,
    node: ast.FunctionDef,
    captured: Sequence[Mapping[str, object]],
    attrs: Attrs = NO_ATTRS,
    promotes: bool = False,
    kernels: Mapping[str, PrimFunc] | None = None,
) -> PrimFunc:
    """Parse a prim func.

    Args:
        source: Where it is written.
        node: Its definition.
        captured: The names it sees, innermost first.
        attrs: Its attributes.
        promotes: Whether operands of two dtypes are converted, as in TVMScript.
        kernels: Those that it may call by their name in a text.

    Raises:
        UnityError: A mistake, at its place.
    """
    source, node, captured = expanded(source, node, captured, kernel=True)
    parser = StmtParser(source, Scope(captured), promotes)
    parser.kernels = kernels or {}
    parser.scope.push()
    _check_signature(parser, node)
    params = tuple(_param(parser, arg) for arg in node.args.args)
    try:
        body = with_bound_calls(parser.suite(node.body))
        func = PrimFunc(params, body, attrs, source.span(node))
        _check_sizes(parser, node, func)
        verify_prim_func(node.name, func)
    except UnityError as error:
        raise UnityError(error.message, error.span or source.span(node), error.hint) from None
    return func


def _check_signature(parser: StmtParser, node: ast.FunctionDef) -> None:
    parser.source.plain_params(node, "prim_func")
    if node.returns is not None and parser.type(node.returns) is not None:
        raise parser.source.error(
            node.returns,
            "a prim_func returns nothing",
            "write -> None, and a buffer parameter for each output",
        )


def _param(parser: StmtParser, arg: ast.arg) -> Param:
    if arg.annotation is None:
        raise parser.source.error(arg, f"the parameter {arg.arg!r} has no annotation", _PARAM_HINT)
    param = _annotated(parser, arg, arg.annotation)
    name = ast.Name(arg.arg)
    ast.copy_location(name, arg)
    parser.define(name, param, "parameter")
    if isinstance(param, PrimVar):
        parser.visible.append(param)
    return param


def _annotated(parser: StmtParser, arg: ast.arg, annotation: ast.expr) -> Param:
    span = parser.source.span(arg)
    buffer = _buffer(parser, arg, annotation)
    if buffer is not None:
        return buffer
    match parser.type(annotation):
        case BufferSpec() as spec:
            return _from_spec(parser, arg, annotation, spec)
        case ScalarSpec(element):
            return PrimVar(arg.arg, element, span)
        case SizeSpec():
            known = parser.scope.lookup(arg.arg)
            return size_var(known) if isinstance(known, Symbol) else SizeVar(arg.arg)
        case other:
            raise parser.source.error(
                annotation,
                f"{shown(other)} is no parameter of a prim_func, expected a buffer",
                _PARAM_HINT,
            )


def _buffer(parser: StmtParser, arg: ast.arg, annotation: ast.expr) -> Buffer | None:
    """A buffer written out as ``f32[Buffer, ...]``; its extents keep the form they have."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return None
    element = parser.constant(annotation.value)
    first, *rest = annotation.slice.elts
    if not isinstance(element, Element) or parser.constant(first) is not BufferWord:
        return None
    if element.dtype is None:
        raise parser.source.error(annotation, "a buffer needs a dtype")
    buffer = Buffer(arg.arg, (), element.dtype, span=parser.source.span(arg))
    said: set[type] = set()
    for k, part in enumerate(rest):
        extra = _extra(parser, part)
        if isinstance(part, ast.Tuple) and not part.elts:
            if k > 0 or (len(rest) > 1 and _extra(parser, rest[1]) is None):
                raise parser.source.error(part, "() is the shape of a scalar: no dim is beside it")
            continue
        if said and type(extra) in {*said, type(None)}:
            raise parser.source.error(
                part, "dims come first, then T.strides, T.scope and T.align, each once"
            )
        said |= set() if extra is None else {type(extra)}
        match extra:
            case Strides(values):
                strides = tuple(_extent(parser, a) for a in values if isinstance(a, ast.expr))
                buffer = replace(buffer, strides=strides)
            case ScopeWord(name):
                buffer = replace(buffer, scope=name)
            case Align(count):
                buffer = replace(buffer, align=count)
            case _:
                buffer = replace(buffer, shape=(*buffer.shape, _extent(parser, part)))
    return buffer


def _extra(parser: StmtParser, node: ast.expr) -> Strides | ScopeWord | Align | None:
    """What says more of a buffer than an extent does; strides as they are written."""
    if not isinstance(node, ast.Call):
        return None
    function = parser.constant(node.func)
    if function is prim_names.strides:
        for given in node.keywords:
            raise parser.source.error(given, f"T.strides has no parameter {given.arg!r}")
        return Strides(tuple(node.args))
    if function is prim_names.scope or function is prim_names.align:
        found = parser.constant(node)
        assert isinstance(found, ScopeWord | Align)
        return found
    return None


def _extent(parser: StmtParser, node: ast.expr) -> PrimExpr:
    value = parser.value(node)
    if isinstance(value, float):
        raise parser.source.error(node, f"a dim must be an integer, got {value!r}")
    if isinstance(value, ast.Constant | str | Buffer):
        raise parser.source.error(node, f"a dim must be an integer expression, got {value!r}")
    return parser.index(node)


def _from_spec(parser: StmtParser, arg: ast.arg, node: ast.expr, spec: BufferSpec) -> Buffer:
    shape = tuple(parser.typed(node, extent) for extent in spec.shape)
    strides = spec.strides
    return Buffer(
        arg.arg,
        shape,
        spec.dtype,
        None if strides is None else tuple(parser.typed(node, s) for s in strides),
        spec.scope,
        spec.align,
        parser.source.span(arg),
    )


def _check_sizes(parser: StmtParser, node: ast.FunctionDef, func: PrimFunc) -> None:
    """Every symbol of the body must come with a parameter."""
    bound = {size.name for size in size_params(func)}
    for name, mention in parser.mentions.items():
        if name not in bound:
            raise parser.source.error(
                mention,
                f"the symbol {name!r} is undefined: no parameter's shape has it",
                f"use it in a buffer's shape, or add a parameter {name}: T.size",
            )


def attrs_of(values: Mapping[str, object]) -> Attrs:
    """Attributes from a Python dict.

    Raises:
        UnityError: A value can't be one.
    """
    return Attrs({name: attr_value(value) for name, value in values.items()})
