"""Types of TVMScript in our spelling: buffers, tensors, shapes, numbers and tuples."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from unity.arguments import Bound

from ..parser.source import Source
from .accesses import AccessRewriter
from .graph.devices import check_device
from .spellings import SHORT
from .syntax import at_place, constant, dotted, path_of, said


class TypeRewriter(AccessRewriter, ast.NodeTransformer):
    """Rewrites what says a type.

    Args:
        source: Where it is written, for errors.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.symbols: dict[str, None] = {}
        """Names of sizes, in the order in which they are met."""
        self.devices: Sequence[str] = ()
        """The module's virtual devices."""

    def _extents(self, node: ast.expr) -> list[ast.expr]:
        """The dims of a buffer's shape: a tuple, or one dim (``T.Buffer(16)``)."""
        return [self._dim(node)] if self._is_dim(node) else self._dims(node)

    def _is_dim(self, node: ast.expr) -> bool:
        """Whether it is one size for certain: other names may be captured tuples."""
        if isinstance(node, ast.Name | ast.BinOp):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {"T"}
            return names <= self.symbols.keys()
        return type(constant(node)) is int

    def _dims(self, node: ast.expr) -> list[ast.expr]:
        """The dims of a shape; names in quotes are symbols."""
        if isinstance(node, ast.Call) and path_of(node.func) == "R.shape":
            node = node.args[0]
        if not isinstance(node, ast.Tuple | ast.List):
            raise self.source.error(node, "a shape must be a tuple")
        return [self._dim(part) for part in node.elts]

    def _dim(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner: ast.expr = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                raise self.source.error(node, f"not a dim: {node.value!r}") from None
            for part in ast.walk(inner):
                ast.copy_location(part, node)
                if isinstance(part, ast.Name) and part.id != "T":
                    self.symbols[part.id] = None
            quoted: ast.expr = self.visit(inner)
            return quoted
        made: ast.expr = self.visit(node)
        return made

    def _element(self, node: ast.expr | None) -> ast.expr:
        if node is None:
            return dotted("R.any_dtype")
        name = node.value if isinstance(node, ast.Constant) else path_of(node).removeprefix("T.")
        if name is None:
            return dotted("R.any_dtype")
        if not isinstance(name, str) or name not in SHORT:
            raise self.source.error(node, f"unknown dtype {name!r}")
        return ast.Name(SHORT[name], ast.Load())

    def _buffer(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        return self._buffer_of(node, bound.named)

    def _buffer_of(self, node: ast.Call, given: Mapping[str, ast.expr]) -> ast.expr:
        if "shape" not in given:
            raise self.source.error(node, f"{path_of(node.func)} needs 'shape'")
        parts: list[ast.expr] = self._extents(given["shape"]) or [ast.Tuple([], ast.Load())]
        if "scope" in given:
            parts.append(ast.Call(dotted("T.scope"), [given["scope"]], []))
        if "align" in given and constant(given["align"]) not in (-1, 0):
            parts.append(ast.Call(dotted("T.align"), [given["align"]], []))
        strides = self._dims(given["strides"]) if said(given.get("strides")) else []
        if strides:
            parts.append(ast.Call(dotted("T.strides"), strides, []))
        element = self._element(given.get("dtype", ast.Constant("float32")))
        items = ast.Tuple([ast.Name("Buffer", ast.Load()), *parts], ast.Load())
        return at_place(ast.Subscript(element, items, ast.Load()), node)

    def _tensor(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        given = dict(bound.named)
        if said(device := given.get("vdevice")):
            check_device(self.source, device, self.devices)
        shape = given.get("shape")
        if isinstance(shape, ast.Constant) and isinstance(shape.value, str):
            given["dtype"], shape = shape, None
        parts: list[ast.expr]
        if said(shape):
            parts = self._dims_of_rank(shape, given) or [ast.Tuple([], ast.Load())]
        elif _has_ndim(given):
            parts = [ast.Call(dotted("R.rank"), [given["ndim"]], [])]
        else:
            parts = [ast.Constant(...)]
        items = ast.Tuple([ast.Name("Tensor", ast.Load()), *parts], ast.Load())
        return at_place(ast.Subscript(self._element(given.get("dtype")), items, ast.Load()), node)

    def _dims_of_rank(self, shape: ast.expr, given: Mapping[str, ast.expr]) -> list[ast.expr]:
        """The dims of a shape, as many as ``ndim`` says, if it says a number."""
        dims = self._dims(shape)
        if _has_ndim(given) and constant(given["ndim"]) != len(dims):
            wanted = ast.unparse(given["ndim"])
            raise self.source.error(given["ndim"], f"ndim={wanted}, got {len(dims)} dims")
        return dims

    def _shape_type(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        given = bound.named
        values = given.get("values")
        args: list[ast.expr]
        if said(values):
            args = self._dims_of_rank(values, given)
        elif _has_ndim(given):
            args = [ast.Call(dotted("R.rank"), [given["ndim"]], [])]
        else:
            args = [ast.Constant(...)]
        return at_place(ast.Call(node.func, args, []), node)

    def _shape(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        return at_place(ast.Call(node.func, self._dims(bound.named["values"]), []), node)

    def _prim_type(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        given = bound.named
        args: list[ast.expr] = [given.get("dtype", ast.Constant("int64"))]
        if "value" in given:
            args.append(self._dim(given["value"]))
        return at_place(ast.Call(node.func, args, []), node)

    def _tuple(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        return at_place(ast.Tuple([self.visit(a) for a in bound.rest], ast.Load()), node)

    def _tuple_type(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        fields = bound.rest
        if len(fields) == 1 and isinstance(fields[0], ast.List | ast.Tuple):
            fields = tuple(fields[0].elts)
        return at_place(ast.Call(node.func, [self.visit(a) for a in fields], []), node)


def _has_ndim(given: Mapping[str, ast.expr]) -> bool:
    """Whether a rank is given; -1 is TVM's word for any."""
    return "ndim" in given and constant(given["ndim"]) != -1
