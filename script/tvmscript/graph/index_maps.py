"""``R.layout_transform``: an index map that is a function as the text that our operator takes.

``lambda n, c: (n, c // 4, c % 4)`` is ``"n, c -> n, c // 4, c % 4"``. Without a value TVM leaves
open what is padded: here it is 0.
"""

from __future__ import annotations

import ast
import copy

from unity.arguments import Bound, Named, Signature
from unity.errors import UnityError
from unity.op.movement.index_map import read_index_map

from ...parser.source import Source
from ..syntax import at_place, constant, path_of
from .before import Naming


def layout_transform(
    source: Source, node: ast.Call, bound: Bound[ast.expr], named: Naming
) -> ast.expr:
    """A call of ``R.layout_transform`` in our words, to be visited no more.

    Args:
        source: For errors.
        node: The call.
        bound: Its arguments by TVM's names.
        named: Gives the operand a name before the statement.

    Raises:
        UnityError: The map is no function written here, or does more than part, turn and join axes.
    """
    function = _lambda(source, bound.named["index_map"])
    names = [a.arg for a in function.args.args]
    outputs = function.body.elts if isinstance(function.body, ast.Tuple) else [function.body]
    results = [ast.unparse(_Plain().visit(copy.deepcopy(e))) for e in outputs]
    text = f"{', '.join(names)} -> {', '.join(results)}"
    try:
        fixed = read_index_map(text).fixed()
    except UnityError as error:
        raise source.error(function, error.message, error.hint) from None
    x = named(bound.named["x"])
    for axis, extent in fixed.items():
        named.check(x, axis, extent, node)
    value = _number(bound.named.get("pad_value"))
    fill = [] if value is None else [ast.keyword("pad_value", value)]
    return at_place(ast.Call(node.func, [x, ast.Constant(text)], fill), node)


class _Plain(ast.NodeTransformer):
    """Leaves out the dtypes of an index' parts, ``T.int64(4)``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        whole = path_of(node.func) in ("T.int64", "T.int32") and not node.keywords
        return node.args[0] if whole and len(node.args) == 1 else node


_INDEX_MAP = Signature.parse('T.index_map(mapping, *, inverse_index_map=None, index_dtype="int64")')
"""An inverse is that of the map, which has one: it says nothing more."""


def _lambda(source: Source, node: ast.expr) -> ast.Lambda:
    """The function in ``T.index_map(lambda ...)``."""
    if isinstance(node, ast.Call) and path_of(node.func) == "T.index_map":
        named = [Named(k.arg, k.value, source.span(k)) for k in node.keywords]
        given = _INDEX_MAP.bind(node.args, named, source.span(node)).named
        if "index_dtype" in given and constant(given["index_dtype"]) not in ("int32", "int64"):
            raise source.error(
                given["index_dtype"],
                f'T.index_map: \'index_dtype\' is "int32" or "int64", '
                f"got {ast.unparse(given['index_dtype'])}",
            )
        inverse = given.get("inverse_index_map")
        if constant(inverse) is not None and not isinstance(inverse, ast.Lambda):
            raise source.error(
                inverse or node, "T.index_map: 'inverse_index_map' is a function written here"
            )
        inner = given["mapping"]
    else:
        inner = node
    rest = inner.args if isinstance(inner, ast.Lambda) else None
    if (
        not isinstance(inner, ast.Lambda)
        or rest is None
        or (rest.vararg or rest.kwarg or rest.kwonlyargs or rest.defaults or rest.posonlyargs)
    ):
        raise source.error(
            node, "an index map is a function written here", "index_map=lambda n, c: (c, n)"
        )
    return inner


def _number(value: ast.expr | None) -> ast.expr | None:
    """The number that is padded with; None where it is left open."""
    while isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]  # R.prim_value(T.float32(0))
    return None if constant(value) is None else value
