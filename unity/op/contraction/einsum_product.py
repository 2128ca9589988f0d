"""Einsum as transposes, matrix products and transposes: what an equation becomes.

The operator `einsum` expands to it, and importers emit it where sizes are known only at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from unity.errors import UnityError
from unity.ir.dims import Dim, as_dim, equal, product
from unity.ir.dtype import INT64
from unity.ir.graph import Expr

from .einsum_order import best_order, is_flipped, plain_order

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

Matmul: TypeAlias = Callable[[Expr, Expr], Expr]
"""Binds the product of two stacks of matrices."""

_SPARE = "".join(chr(0x3B1 + i) for i in range(24))
"""Letters for the axes of an ellipsis, counted from the last; an equation has Latin ones."""


def einsum(node: Emitter, equation: str, tensors: Sequence[Expr], matmul: Matmul) -> Expr:
    """The sum of products that an equation says; operands are multiplied from left to right.

    Args:
        node: Emits it.
        equation: Letters of the operands' axes and of the result's, ``"bij,bjk->bik"``.
        tensors: The operands.
        matmul: Emits the product of two of them.
    """
    named, out = terms(equation, [len(node.shape_of(x)) for x in tensors])
    if len(set(out)) != len(out):
        raise node.gap(f"a letter repeated in the result of {equation!r}")
    tensors, named = _diagonals(node, tensors, named)
    while len(tensors) > 2:
        others = {*out, *"".join(named[2:])}
        kept = "".join(dict.fromkeys(c for c in named[0] + named[1] if c in others))
        first = _two(node, tensors[:2], named[:2], kept, matmul)
        tensors, named = [first, *tensors[2:]], [kept, *named[2:]]
    return _two(node, tensors, named, out, matmul)


def terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand's axes, and of the result's; those of an ellipsis are Greek.

    Args:
        equation: ``"bij,bjk->bik"``; without an arrow numpy's rule tells the result.
        ranks: Of the operands.

    Raises:
        UnityError: It does not fit so many operands of these ranks.
    """
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    given = left.split(",")
    if len(given) != len(ranks):
        raise UnityError(f"{equation!r} has {len(given)} operands, got {len(ranks)}")
    named = [_spell(t, rank) for t, rank in zip(given, ranks, strict=True)]
    free = max((sum(c in _SPARE for c in n) for n in named), default=0)
    out = _spell(right, len(right.replace("...", "")) + free) if arrow else _implicit(named, free)
    if any(letter not in "".join(named) for letter in out):
        raise UnityError(f"{equation!r} gives a letter that no operand has")
    return named, out


def _two(
    node: Emitter, tensors: Sequence[Expr], named: Sequence[str], out: str, matmul: Matmul
) -> Expr:
    """The same of one or two operands, no letter of which stands twice."""
    summed: list[tuple[Expr, str]] = []
    for i, (x, name) in enumerate(zip(tensors, named, strict=True)):
        others = "".join(n for j, n in enumerate(named) if j != i)
        summed.append(_sum_out(node, x, name, {*out, *others}))
    if len(summed) == 1:
        x, name = summed[0]
        return _transposed(node, x, name, out)
    return _product(node, summed[0], summed[1], out, matmul)


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


def _diagonals(
    node: Emitter, tensors: Sequence[Expr], named: Sequence[str]
) -> tuple[list[Expr], list[str]]:
    """Operands with no letter twice: of axes of one letter, the elements at equal places."""
    found: list[Expr] = []
    names: list[str] = []
    for x, name in zip(tensors, named, strict=True):
        while len(set(name)) < len(name):
            second = next(i for i, c in enumerate(name) if c in name[:i])
            first = name.index(name[second])
            rest = [k for k in range(len(name)) if k not in (first, second)]
            x = node.op("permute_dims", x, axes=(*rest, first, second))
            *head, n, m = node.shape_of(x)
            if not equal(n, m):
                x = node.assert_shape(x, (*head, n, n))
            flat = node.op("reshape", x, (*head, n * n))
            place = node.op("arange", 0, n, 1, dtype=INT64)
            step = node.op("dims", as_dim(n + 1), dtype=INT64)
            x = node.op("take", flat, node.op("multiply", place, step), axis=len(head))
            name = "".join(name[k] for k in rest) + name[second]
        found.append(x)
        names.append(name)
    return found, names


def _sum_out(node: Emitter, x: Expr, name: str, keep: set[str]) -> tuple[Expr, str]:
    """The operand with the axes that nothing else names summed."""
    gone = tuple(i for i, c in enumerate(name) if c not in keep)
    if not gone:
        return x, name
    kept = "".join(c for c in name if c in keep)
    return node.op("sum", x, axis=gone, keepdims=False), kept


def _transposed(node: Emitter, x: Expr, name: str, wanted: str) -> Expr:
    order = tuple(name.index(c) for c in wanted)
    return x if order == tuple(range(len(name))) else node.op("permute_dims", x, axes=order)


def _product(
    node: Emitter, one: tuple[Expr, str], two: tuple[Expr, str], out: str, matmul: Matmul
) -> Expr:
    """Batch axes, free axes and summed axes of the two grouped, so that one matmul does it."""
    (a, an), (b, bn) = one, two
    extents: dict[str, Dim] = {}
    for name, x in ((bn, b), (an, a)):
        for letter, d in zip(name, node.shape_of(x), strict=True):
            if extents.get(letter, d) != d and 1 in (extents[letter], d):
                raise node.gap("operands that broadcast")
            extents[letter] = d
    sizes = {c: d for c, d in extents.items() if isinstance(d, int)}
    known = len(sizes) == len(extents)
    order = best_order(an, bn, out, sizes) if known else plain_order(an, bn, out)
    (x, xn), (y, yn) = ((b, bn), (a, an)) if order.swapped else ((a, an), (b, bn))
    left = _matrix(node, x, xn, (order.batch, order.rows, order.inner), extents)
    right = _matrix(node, y, yn, (order.batch, order.inner, order.columns), extents)
    found = matmul(left, right)
    shaped = node.op("reshape", found, tuple(extents[c] for c in order.result))
    return _transposed(node, shaped, order.result, out)


def _matrix(
    node: Emitter, x: Expr, name: str, groups: tuple[str, str, str], extents: dict[str, Dim]
) -> Expr:
    """An operand with one axis for each of two groups, behind the batch axes.

    Where they lie the other way round, they are joined first: a kernel reads a matrix either way.
    """
    batch, first, second = groups
    head = tuple(extents[c] for c in batch)

    def size(letters: str) -> Dim:
        return product(extents[c] for c in letters)

    known = all(isinstance(extents[c], int) for c in name)
    if known and is_flipped(name, batch, first, second) and first and second:
        joined = node.op("reshape", x, (*head, size(second), size(first)))
        rank = len(head)
        return node.op("permute_dims", joined, axes=(*range(rank), rank + 1, rank))
    moved = _transposed(node, x, name, batch + first + second)
    return node.op("reshape", moved, (*head, size(first), size(second)))
