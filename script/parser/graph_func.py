"""A graph function from its definition: parameters by annotation, then the body."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from unity.errors import UnityError
from unity.ir.dims import Symbol
from unity.ir.graph import Body, Call, Function, FunctionRef, If, MatchCast, Scan, While
from unity.ir.module import Definition, IRModule
from unity.ir.types import FuncType, Type
from unity.ir.visit import bodies_of, type_symbols
from unity.ir.well_formed.verify import verify_function
from unity.op.builder import GraphBuilder

from ..macros.expand import expanded
from .graph_closures import decorator_options
from .graph_expr import Surroundings
from .graph_stmt import GraphStatements
from .scope import Named, Scope
from .source import Source


def parse_function(
    source: Source,
    node: ast.FunctionDef,
    captured: Sequence[Mapping[str, object]],
    around: Surroundings,
    pure: bool | None = None,
    attrs: Mapping[str, object] | None = None,
) -> Function:
    """Parse a graph function.

    Args:
        source: Where it is written.
        node: Its definition.
        captured: The names it sees, innermost first.
        around: The builder of its body and the functions known; those it refers to are added.
        pure: Whether it has no effects; None to find out.
        attrs: Its attributes.

    Raises:
        UnityError: A mistake, at its place.
    """
    source, node, captured = expanded(source, node, captured, kernel=False)
    parser = GraphStatements(source, Scope(captured), around)
    parser.scope.push()
    parser.scope.bind(node.name, Named(node.name))
    signature = signature_of(parser, node, pure is not False)
    if signature is not None:
        parser.builder.signatures.setdefault(node.name, signature)
    parser.name_params(FunctionRef(node.name), (arg.arg for arg in node.args.args))
    for arg, kind in _params(parser, node):
        var = parser.builder.param(arg.arg, kind, source.span(arg))
        parser.scope.bind(arg.arg, var)
    function = parser.finish(node, pure, dict(attrs or {}))
    _check_symbols(parser, function)
    return function


def declared_type(
    source: Source, node: ast.FunctionDef, captured: Sequence[Mapping[str, object]]
) -> FuncType:
    """The type of a graph function that is not there yet, as its definition declares it.

    Raises:
        UnityError: It does not say what it returns.
    """
    parser = GraphStatements(source, Scope(captured), Surroundings(GraphBuilder(dataflow=False)))
    parser.scope.push()
    pure, _ = decorator_options(parser, node)
    found = signature_of(parser, node, pure is not False)
    if found is None:
        raise source.error(
            node,
            f"{node.name!r} is called before it is known what it returns",
            f"declare it: def {node.name}(...) -> f32[Tensor, n]:",
        )
    return found


def signature_of(
    parser: GraphStatements, node: ast.FunctionDef, pure: bool = True
) -> FuncType | None:
    """The type that a definition declares; None if it leaves out the result."""
    if node.returns is None:
        return None
    params = tuple(kind for _, kind in _params(parser, node))
    return FuncType(params, parser.annotation(node.returns), pure)


def _params(parser: GraphStatements, node: ast.FunctionDef) -> list[tuple[ast.arg, Type]]:
    params: list[tuple[ast.arg, Type]] = []
    for arg in parser.source.plain_params(node, "function"):
        if arg.annotation is None:
            raise parser.source.error(
                arg,
                f"the parameter {arg.arg!r} has no annotation",
                "a program is a function by itself: define it outside of the class"
                if arg.arg in ("self", "cls")
                else f"write {arg.arg}: f32[Tensor, n, 128]",
            )
        params.append((arg, parser.annotation(arg.annotation)))
    return params


def verified(
    name: str,
    function: Function,
    node: ast.FunctionDef,
    source: Source,
    others: Mapping[str, Definition],
) -> Function:
    """The function, once it is checked as part of a module.

    Raises:
        UnityError: It is not well formed.
    """
    try:
        verify_function(name, function, IRModule({**others, name: function}))
    except UnityError as error:
        raise UnityError(error.message, error.span or source.span(node), error.hint) from None
    return function


def _check_symbols(parser: GraphStatements, function: Function) -> None:
    """Every symbol mentioned must come with a parameter, a match_cast or a data-dependent size."""
    bound: set[Symbol] = set()
    for f in (function, *parser.lifted.values()):
        for param in f.params:
            bound |= type_symbols(param.type)
        _collect(f.body, bound)
    names = {symbol.name for symbol in bound | parser.counters}
    for name, mention in parser.mentions.items():
        if name not in names:
            raise parser.source.error(
                mention,
                f"the symbol {name!r} is undefined: no parameter's shape has it",
                "use it in a parameter's shape, or bind it with R.match_cast",
            )


def _collect(body: Body, bound: set[Symbol]) -> None:
    for block in body.blocks:
        for binding in block.bindings:
            if isinstance(binding, MatchCast):
                bound |= type_symbols(binding.type)
                continue
            value = binding.value
            if isinstance(value, Call | If | While | Scan):
                bound |= type_symbols(binding.var.type)
            if isinstance(value, Function):
                for param in value.params:
                    bound |= type_symbols(param.type)
            for inner in bodies_of(value):
                _collect(inner, bound)
