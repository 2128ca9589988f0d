"""Buffers that TVM binds to parts of others by an attribute, as what `views` knows.

``T.attr([B, A], "buffer_bind_scope", T.tvm_tuple(i * 4, 4, 0, 8))`` makes a declared ``B`` the rows
``A[i * 4 : i * 4 + 4, 0:8]``. It becomes ``B = T.match_buffer(A[i * 4 : i * 4 + 4, 0:8], shape)``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from ..parser.source import Source
from .syntax import constant, path_of, statements, written

_KEY = "buffer_bind_scope"
_DECLARES = ("T.Buffer", "T.buffer_decl", "T.decl_buffer")


def without_bound_buffers(source: Source, node: ast.FunctionDef) -> None:
    """Rewrite a prim func, in place.

    Raises:
        UnityError: A buffer is bound that is declared nowhere, or to something else than a region.
    """
    bound = {name for n in ast.walk(node) if isinstance(n, ast.Call) for name in _names(n)[:1]}
    if not bound:
        return
    declared: dict[str, ast.Call] = {}
    for n in ast.walk(node):
        match n:
            case ast.Assign([ast.Name(name)], ast.Call() as call) if (
                name in bound and path_of(call.func) in _DECLARES
            ):
                declared[name] = call
            case _:
                pass
    _Binding(source, declared).visit(node)


def _names(call: ast.Call) -> list[str]:
    """The buffer that an attribute binds, and the one that it is bound to."""
    match call:
        case ast.Call(func, [ast.List([ast.Name(view), ast.Name(whole)]), key, _]) if (
            path_of(func) == "T.attr" and constant(key) == _KEY
        ):
            return [view, whole]
        case _:
            return []


class _Binding(ast.NodeTransformer):
    def __init__(self, source: Source, declared: Mapping[str, ast.Call]) -> None:
        self.source = source
        self.declared = declared

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if any(node.value is call for call in self.declared.values()):
            return ast.copy_location(ast.Pass(), node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return self._bound(node.value) or node

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        made = self._bound(node.items[0].context_expr) if len(node.items) == 1 else None
        if made is not None:
            node.items = [ast.withitem(written("T.suite()", node.items[0].context_expr))]
            node.body.insert(0, made)
        return node

    def _bound(self, call: ast.expr) -> ast.stmt | None:
        names = _names(call) if isinstance(call, ast.Call) else []
        if not isinstance(call, ast.Call) or not names:
            return None
        parts, declared = call.args[2], self.declared.get(names[0])
        if declared is None:
            raise self.source.error(call, f"{names[0]!r} is bound, but declared nowhere")
        if (
            not isinstance(parts, ast.Call)
            or path_of(parts.func) != "T.tvm_tuple"
            or len(parts.args) % 2
        ):
            raise self.source.error(
                call, f"{names[0]!r} is bound to T.tvm_tuple(begin, extent, ...) of {names[1]!r}"
            )
        ranges = list(zip(parts.args[::2], parts.args[1::2], strict=True))
        extents = _extents(declared)
        left_out = len(ranges) - len(extents)
        indices: list[ast.expr] = []
        for k, (begin, extent) in enumerate(ranges):
            if k < left_out and constant(extent) == 1:
                indices.append(begin)
                continue
            end = ast.BinOp(copy.deepcopy(begin), ast.Add(), extent)
            indices.append(ast.Slice(begin, end))
        whole = ast.Subscript(
            ast.Name(names[1], ast.Load()), ast.Tuple(indices, ast.Load()), ast.Load()
        )
        (made,) = statements("view = T.match_buffer(region)", call, region=whole)
        assert isinstance(made, ast.Assign)
        assert isinstance(made.value, ast.Call)
        made.targets = [ast.Name(names[0], ast.Store())]
        made.value.args += copy.deepcopy(declared.args)
        made.value.keywords += copy.deepcopy(declared.keywords)
        for part in ast.walk(made):
            if isinstance(part, ast.expr | ast.stmt | ast.keyword):
                ast.copy_location(part, call)
        return made


def _extents(declared: ast.Call) -> list[ast.expr]:
    named = {k.arg: k.value for k in declared.keywords}
    shape = declared.args[0] if declared.args else named.get("shape")
    return list(shape.elts) if isinstance(shape, ast.Tuple | ast.List) else []
