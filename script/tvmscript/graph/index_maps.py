"""``R.layout_transform``: an index map as a pad, a reshape, a transpose and another reshape.

``lambda n, c, h, w: (n, c // 4, h, w, c % 4)`` parts the axis ``c`` in blocks of 4 and puts the
blocks last; ``lambda n, c, h, w, b: (n, c * 4 + b, h, w)`` joins them again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from unity.arguments import Bound, Named, Signature

from ...parser.source import Source
from ..syntax import at_place, constant, dotted, path_of
from .before import Naming
from .layouts import permuted, reshaped, size_of

_HINT = "an index is i, i // 4, i % 4, i // 4 % 2, or a sum of such, i * 4 + j"


@dataclass(frozen=True, slots=True)
class _Part:
    """``axis // low``, and of that the remainder by ``high // low`` if there is a ``high``."""

    axis: int
    low: int
    high: int | None


def layout_transform(
    source: Source, node: ast.Call, bound: Bound[ast.expr], named: Naming
) -> ast.expr:
    """A call of ``R.layout_transform`` in terms of our operators.

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
    groups = [_parts(source, e, names) for e in outputs]
    by_axis = _by_axis(source, function, [p for group in groups for p in group], names)
    x = named(bound.named["x"])
    for group in groups:
        for k, (part, factor) in enumerate(group):
            before = group[k - 1][1] // factor if k else None
            extent = None if part.high is None else part.high // part.low
            if before is None or extent == before:
                continue
            if extent is not None or part.low != 1:
                raise source.error(function, f"the map does not tell {names[part.axis]!r} apart")
            named.check(x, part.axis, before, node)
    whole = _padded(x, by_axis, bound.named.get("pad_value"), node, named)
    padded: ast.expr = whole
    ordered = [part for parts in by_axis for part in parts]
    if len(ordered) != len(names):
        padded = reshaped(whole, [_extent(whole, p) for p in ordered], node)
    turned = permuted(padded, [ordered.index(p) for group in groups for p, _ in group])
    if all(len(group) == 1 for group in groups):
        return turned
    joined = named(turned)
    sizes: list[ast.expr] = []
    k = 0
    for group in groups:
        size = size_of(joined, k)
        for later in range(k + 1, k + len(group)):
            size = ast.BinOp(size, ast.Mult(), size_of(joined, later))
        sizes.append(size)
        k += len(group)
    return reshaped(joined, sizes, node)


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


def _parts(source: Source, node: ast.expr, names: Sequence[str]) -> list[tuple[_Part, int]]:
    """The parts of axes that an index sums up, each with its factor, the greatest first."""
    terms: list[tuple[_Part, int]] = []
    left = [node]
    while left:
        term = left.pop()
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Add):
            left += [term.left, term.right]
            continue
        factor = 1
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult):
            a, b = constant(term.left), constant(term.right)
            if type(b) is int:
                term, factor = term.left, b
            elif type(a) is int:
                term, factor = term.right, a
        part = _part(term, names)
        if part is None or factor < 1:
            raise source.error(node, f"the map can't compute {ast.unparse(node)!r}", _HINT)
        terms.append((part, factor))
    terms.sort(key=lambda t: -t[1])
    factors = [f for _, f in terms]
    if factors[-1] != 1 or any(a % b or a == b for a, b in pairwise(factors)):
        raise source.error(node, f"the map can't compute {ast.unparse(node)!r}", _HINT)
    return terms


def _part(node: ast.expr, names: Sequence[str]) -> _Part | None:
    match node:
        case ast.Name(name) if name in names:
            return _Part(names.index(name), 1, None)
        case ast.BinOp(inner, ast.FloorDiv() | ast.Mod() as op, right):
            part, number = _part(inner, names), constant(right)
            if part is None or type(number) is not int or number < 1:
                return None
            at = part.low * number
            if part.high is not None and part.high % at:
                return None
            if isinstance(op, ast.FloorDiv):
                return _Part(part.axis, at, part.high)
            return _Part(part.axis, part.low, at)
        case ast.Call(args=[inner], keywords=[]) if path_of(node.func) in ("T.int64", "T.int32"):
            return _part(inner, names)
        case _:
            return None


def _by_axis(
    source: Source,
    function: ast.Lambda,
    found: Sequence[tuple[_Part, int]],
    names: Sequence[str],
) -> list[list[_Part]]:
    """The parts of each axis, the greatest first: together they are the axis, each once."""
    result: list[list[_Part]] = []
    for axis, name in enumerate(names):
        parts = sorted((p for p, _ in found if p.axis == axis), key=lambda p: -p.low)
        ends = [p.high for p in parts]
        if ends != [None, *(p.low for p in parts)][: len(parts)] or not parts or parts[-1].low != 1:
            raise source.error(function, f"each part of {name!r} must stand in the map once", _HINT)
        result.append(parts)
    return result


def _padded(
    x: ast.Name,
    by_axis: Sequence[Sequence[_Part]],
    value: ast.expr | None,
    node: ast.expr,
    named: Naming,
) -> ast.Name:
    """The operand with whole blocks, named.

    Without a value TVM leaves open what is padded: here it is 0.
    """
    widths: list[ast.expr] = []
    uneven: list[ast.expr] = []
    for axis, parts in enumerate(by_axis):
        block = parts[0].low
        left = ast.BinOp(
            ast.BinOp(ast.Constant(0), ast.Sub(), size_of(x, axis)), ast.Mod(), ast.Constant(block)
        )
        widths += [ast.Constant(0), left if block > 1 else ast.Constant(0)]
        if block > 1:
            uneven.append(left)
    if not uneven:
        return x
    test = uneven[0]
    for other in uneven[1:]:
        test = ast.BinOp(test, ast.Add(), other)
    number = _number(value)
    fill = [] if number is None else [ast.keyword("pad_value", number)]
    pad = ast.Call(dotted("R.nn.pad"), [x, ast.Tuple(widths, ast.Load())], fill)
    found = ast.IfExp(ast.Compare(test, [ast.Eq()], [ast.Constant(0)]), x, pad)
    return named(at_place(found, node), f"{x.id}_whole")


def _number(value: ast.expr | None) -> ast.expr | None:
    """The number that is padded with; None where it is left open."""
    while isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]  # R.prim_value(T.float32(0))
    return None if constant(value) is None else value


def _extent(x: ast.Name, part: _Part) -> ast.expr:
    if part.high is not None:
        return ast.Constant(part.high // part.low)
    size = size_of(x, part.axis)
    return size if part.low == 1 else ast.BinOp(size, ast.FloorDiv(), ast.Constant(part.low))
