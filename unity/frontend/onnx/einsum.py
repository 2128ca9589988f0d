"""Einsum of one or two operands as a transpose, a matrix product and a transpose."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.dims import Dim, product
from unity.ir.graph import Expr

from .linear import matmul
from .node import Converter, Node, Value

_SPARE = "".join(chr(0x3B1 + i) for i in range(24))
"""Letters for the axes of an ellipsis, counted from the last; an equation has Latin ones."""


def _einsum(node: Node) -> Value:
    equation = node.text_of("equation", "").replace(" ", "")
    if node.count > 2:
        raise node.gap(f"{node.count} operands")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != node.count:
        raise UnityError(f"{equation!r} has {len(terms)} operands, the node {node.count}")
    tensors = [node.tensor(i) for i in range(node.count)]
    named = [_spell(t, len(node.shape_of(x))) for t, x in zip(terms, tensors, strict=True)]
    free = max((sum(c in _SPARE for c in n) for n in named), default=0)
    out = _spell(right, len(right.replace("...", "")) + free) if arrow else _implicit(named, free)
    for name in (*named, out):
        if len(set(name)) != len(name):
            raise node.gap(f"a repeated letter in {equation!r}")
    if any(letter not in "".join(named) for letter in out):
        raise UnityError(f"{equation!r} gives a letter that no operand has")
    summed: list[tuple[Expr, str]] = []
    for i, (x, name) in enumerate(zip(tensors, named, strict=True)):
        others = "".join(n for j, n in enumerate(named) if j != i)
        summed.append(_sum_out(node, x, name, {*out, *others}))
    if len(summed) == 1:
        x, name = summed[0]
        return _transposed(node, x, name, out)
    return _product(node, *summed[0], *summed[1], out)


def _spell(term: str, rank: int) -> str:
    if "..." not in term:
        if len(term) != rank:
            raise UnityError(f"{term!r} names {len(term)} axes of a tensor of rank {rank}")
        return term
    before, _, after = term.partition("...")
    count = rank - len(before) - len(after)
    if count < 0:
        raise UnityError(f"{term!r} names more axes than the rank {rank}")
    return before + "".join(reversed(_SPARE[:count])) + after


def _implicit(named: Sequence[str], free: int) -> str:
    """Without an arrow: the ellipsis, then the letters that stand once, sorted."""
    text = "".join(named)
    ellipsis = "".join(reversed(_SPARE[:free]))
    once = sorted(c for c in set(text) if text.count(c) == 1 and c not in ellipsis)
    return ellipsis + "".join(once)


def _sum_out(node: Node, x: Expr, name: str, keep: set[str]) -> tuple[Expr, str]:
    """The operand with the axes that nothing else names summed."""
    gone = tuple(i for i, c in enumerate(name) if c not in keep)
    if not gone:
        return x, name
    kept = "".join(c for c in name if c in keep)
    return node.op("sum", x, axis=gone, keepdims=False), kept


def _transposed(node: Node, x: Expr, name: str, wanted: str) -> Expr:
    order = tuple(name.index(c) for c in wanted)
    return x if order == tuple(range(len(name))) else node.op("permute_dims", x, axes=order)


def _product(node: Node, a: Expr, an: str, b: Expr, bn: str, out: str) -> Expr:
    """Batch axes, free axes and summed axes of the two grouped, so that one matmul does it."""
    batch = [c for c in an if c in bn and c in out]
    inner = [c for c in an if c in bn and c not in out]
    rows, columns = [c for c in an if c not in bn], [c for c in bn if c not in an]
    left = _transposed(node, a, an, "".join((*batch, *rows, *inner)))
    right = _transposed(node, b, bn, "".join((*batch, *inner, *columns)))
    extents: dict[str, Dim] = {}
    for name, x in ((bn, b), (an, a)):
        for letter, d in zip(name, node.shape_of(x), strict=True):
            if extents.get(letter, d) != d and 1 in (extents[letter], d):
                raise node.gap("operands that broadcast")
            extents[letter] = d

    def size(letters: Sequence[str]) -> Dim:
        return product(extents[c] for c in letters)

    head = tuple(extents[c] for c in batch)
    left = node.op("reshape", left, (*head, size(rows), size(inner)))
    right = node.op("reshape", right, (*head, size(inner), size(columns)))
    found = matmul(node, left, right)
    letters = (*batch, *rows, *columns)
    shaped = node.op("reshape", found, tuple(extents[c] for c in letters))
    return _transposed(node, shaped, "".join(letters), out)


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum}
