"""Prim funcs of TVMScript that return a value: here the caller gives the place it is written to.

``return x`` at the end of each way through the body is a store into a buffer of no dims, the last
parameter, as kernels give all results here. A return that leaves a loop is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from unity.arguments import Named, Signature

from ..parser.source import Source
from .syntax import at_place, constant, dotted, path_of

_MAKE_BUFFERS = frozenset(
    f"T.{name}"
    for name in ("Buffer", "match_buffer", "decl_buffer", "alloc_buffer", "sblock_alloc_buffer")
)


def result_as_parameter(source: Source, node: ast.FunctionDef, dtypes: Mapping[str, str]) -> bool:
    """Turn returned values into stores, in place.

    Args:
        source: For errors.
        node: The function, in TVM's spelling.
        dtypes: Short names of dtypes by long ones.

    Returns:
        Whether the function returned a value.

    Raises:
        UnityError: A value is returned from within a loop, or its dtype is said nowhere.
    """
    said = _in_one_form(source, node)
    values = [value for n in ast.walk(node) if (value := _returned(n)) is not None]
    if not values:
        return False
    kind = path_of(node.returns).removeprefix("T.") or _dtype_of(node, values[0], dtypes)
    if kind not in dtypes:
        raise source.error(
            values[0], "the dtype of what is returned is not known", "say it: -> T.float32"
        )
    for each in said:
        if constant(each) != kind:
            raise source.error(each, f"the function returns {kind}, T.ret says {ast.unparse(each)}")
    taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    name = next(n for n in ("result", "result_", "result__") if n not in taken)
    node.body = _stored(source, node.body, name)
    annotation = ast.Call(dotted("T.Buffer"), [ast.Tuple([], ast.Load()), ast.Constant(kind)], [])
    node.args.args.append(at_place(ast.arg(name, annotation), node))
    ast.copy_location(node.args.args[-1], node)
    node.returns = None
    return True


def names_in_shapes(node: ast.FunctionDef) -> frozenset[str]:
    """Names that a function's buffers are declared with: sizes."""
    calls = [
        n for n in ast.walk(node) if isinstance(n, ast.Call) and path_of(n.func) in _MAKE_BUFFERS
    ]
    return frozenset(n.id for c in calls for n in ast.walk(c) if isinstance(n, ast.Name))


_RET = Signature.parse("T.ret(val, span=None, *, dtype=None)")


def _in_one_form(source: Source, node: ast.FunctionDef) -> list[ast.expr]:
    """Make each ``T.ret`` one of a value alone, in place; which dtypes were said.

    Raises:
        UnityError: One is given something else, or ``T.evaluate`` of one is.
    """
    said: list[ast.expr] = []
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        path = path_of(call.func)
        if path == "T.evaluate" and any(_is_ret(a) for a in call.args):
            for more in (*call.args[1:], *call.keywords):
                raise source.error(more, f"T.evaluate takes one value, got {ast.unparse(more)}")
        if not _is_ret(call):
            continue
        named = [Named(k.arg, k.value, source.span(k)) for k in call.keywords]
        given = _RET.bind(call.args, named, source.span(call)).named
        if constant(given.get("span")) is not None:
            raise source.error(given["span"], "T.ret: 'span' is None")
        if constant(given.get("dtype")) is not None:
            said.append(given["dtype"])
        call.args, call.keywords = [given["val"]], []
    return said


def _is_ret(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and path_of(node.func) == "T.ret"


def _returned(node: ast.AST) -> ast.expr | None:
    """The value that a statement returns: ``return x``, ``T.ret(x)``, ``T.evaluate(T.ret(x))``."""
    match node:
        case ast.Return(value=ast.Constant(value=None)):
            return None
        case ast.Return(value=value):
            return value
        case ast.Expr(ast.Call(args=[ast.Call() as inner]) as call) if (
            path_of(call.func) == "T.evaluate"
        ):
            return inner.args[0] if path_of(inner.func) == "T.ret" and inner.args else None
        case ast.Expr(ast.Call(args=[value]) as call) if path_of(call.func) == "T.ret":
            return value
        case _:
            return None


def _dtype_of(node: ast.FunctionDef, value: ast.expr, dtypes: Mapping[str, str]) -> str:
    match value:
        case ast.Constant(value=bool()):
            return "bool"
        case ast.Constant(value=int()):
            return "int32"
        case ast.Constant(value=float()):
            return "float32"
        case ast.Call() if path_of(value.func).removeprefix("T.") in dtypes:
            return path_of(value.func).removeprefix("T.")
        case ast.Name(name):
            said = [path_of(a.annotation) for a in node.args.args if a.arg == name]
            return said[0].removeprefix("T.") if said else ""
        case _:
            return ""


def _stored(source: Source, body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """A suite whose returns are stores; what follows an `if` that returns is its `else`."""
    found: list[ast.stmt] = []
    for k, node in enumerate(body):
        value = _returned(node)
        if value is not None:
            target = ast.Subscript(
                ast.Name(name, ast.Load()), ast.Tuple([], ast.Load()), ast.Store()
            )
            return [*found, at_place(ast.Assign([target], value), node)]
        if not any(_returned(n) is not None for n in ast.walk(node)):
            found.append(node)
            continue
        rest = body[k + 1 :]
        match node:
            case ast.If():
                if rest and not _ends(node.body):
                    raise source.error(node, "a value is returned on one way, and not on the other")
                orelse = [*node.orelse, *rest] if not _ends(node.orelse) else node.orelse
                node.body = _stored(source, node.body, name)
                node.orelse = _stored(source, orelse, name)
                return [*found, node]
            case ast.With() if not rest:
                node.body = _stored(source, node.body, name)
                return [*found, node]
            case _:
                raise source.error(
                    node, "a value is returned from within", "let the last statement return it"
                )
    return found


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether each way through a suite returns a value."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return _returned(last) is not None
