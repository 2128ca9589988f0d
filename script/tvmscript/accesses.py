"""Accesses of buffers in TVMScript as accesses here: of views, of memory, by masked lanes.

A view's element is one of the buffer that it lies in (`views`); what is said of memory, ``A.data``
and ``A.elem_offset``, is said of a buffer's first element.
"""

from __future__ import annotations

import ast

from ..parser.source import Source
from .syntax import at_place, written
from .views import Declared, View, element_of, memory_of, offset_of


class AccessRewriter(ast.NodeTransformer):
    """Rewrites accesses; knows the buffers of a function.

    Args:
        source: Where they are written, for errors.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.buffers: dict[str, Declared] = {}
        self.views: dict[str, View] = {}

    def of_memory(self, node: ast.Attribute, name: str) -> ast.expr | None:
        """``A.data`` is the address of the first element; before it lie no others (`views`)."""
        if node.attr == "elem_offset":
            return at_place(offset_of(name, self.buffers, self.views), node)
        if node.attr != "data":
            return None
        whole = memory_of(name, self.views)
        zeros: list[ast.expr] = [ast.Constant(0) for _ in self.buffers[whole].shape]
        index = zeros[0] if len(zeros) == 1 else ast.Tuple(zeros, ast.Load())
        return written("T.address_of(a[i])", node, a=ast.Name(whole, ast.Load()), i=index)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        """Attributes: those in a dict of attributes are pairs, buffers are their names."""
        node.values = [self.attribute(v) for v in node.values]
        return node

    def attribute(self, value: ast.expr) -> ast.expr:
        """What an attribute is given, in our spelling."""
        if isinstance(value, ast.Dict):
            entries = zip(value.keys, value.values, strict=True)
            pairs: list[ast.expr] = [
                ast.Tuple([k, self.attribute(v)], ast.Load()) for k, v in entries if k
            ]
            return at_place(ast.Tuple(pairs, ast.Load()), value)
        if isinstance(value, ast.List | ast.Tuple):
            value.elts = [self.attribute(v) for v in value.elts]
            return value
        if isinstance(value, ast.Name) and value.id in self.buffers:
            return at_place(ast.Constant(value.id), value)
        found: ast.expr = self.visit(value)
        return found

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """An access of a view is one of the buffer that it is of."""
        self.generic_visit(node)
        while isinstance(node.value, ast.Name) and node.value.id in self.views:
            node = element_of(self.source, node, self.views[node.value.id])
        return node

    def masked(self, node: ast.Call) -> ast.expr:
        """A load or store of some lanes of a view: its buffer, and the indices there."""
        element = written("a[i]", node, a=node.args[0], i=node.args[1])
        found: ast.expr = self.visit(element)
        assert isinstance(found, ast.Subscript)
        index = found.slice
        whole = index if isinstance(index, ast.Tuple) else ast.Tuple([index], ast.Load())
        rest = [self.visit(a) for a in node.args[2:]]
        return at_place(ast.Call(node.func, [found.value, whole, *rest], node.keywords), node)
