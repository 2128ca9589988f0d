"""Reshape: what of the counts of elements can't be shown to fit is checked at run time.

A shape's symbols seldom tell that they divide: `(n, c, h, w)` becomes `(n, 2, c // 2, -1, w)`. The
checks are made so that the type rule of the op `reshape` sees the counts to be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from unity.errors import UnityError
from unity.ir.dims import (
    Dim,
    as_dim,
    bounds,
    dim_max,
    dim_min,
    dim_text,
    equal,
    floordiv,
    product,
    symbols_of,
)
from unity.ir.graph import Expr
from unity.ir.types import Shape
from unity.op.movement.view import cancelled, quotient

from .emission import Emission
from .sizes import is_symbolic


def reshaped(node: Emission, x: Expr, wanted: Shape, *, copies: bool) -> Expr:
    """`x` of a shape, which may hold one -1.

    Args:
        node: What this is emitted for.
        x: The tensor.
        wanted: Its shape.
        copies: Whether a symbol that is 0 at run time copies the dim at its place.
    """
    old = node.shape_of(x)
    if wanted == old:
        return x
    if copies:
        wanted = _with_possible_copies(node, old, wanted)
    if wanted.count(-1) == 1:
        return _with_free_dim(node, x, old, wanted)
    return node.op("reshape", _of_as_many(node, x, old, wanted), wanted)


def with_copies(target: Sequence[Dim], old: Sequence[Dim], zero_is_zero: bool) -> tuple[Dim, ...]:
    """A 0 in the target copies the dim at its place, unless `zero_is_zero`."""
    found: list[Dim] = []
    for axis, d in enumerate(target):
        if isinstance(d, int) and d == 0 and not zero_is_zero:
            if axis >= len(old):
                raise UnityError(f"the shape {tuple(target)} copies axis {axis} of {tuple(old)}")
            found.append(old[axis])
        else:
            found.append(d)
    return tuple(found)


def _with_possible_copies(node: Emission, old: Shape, wanted: Shape) -> Shape:
    """The same of symbols that are 0 at run time.

    Where the count of elements then is that of the old shape, it is the old dim in any case. Where
    nothing of the old shape is known to depend on the symbol, the dim is a new symbol: its value or
    the old dim. Elsewhere the old dim is required to be 0 too, unless the count could not be right
    otherwise.
    """
    as_many = -1 not in wanted and equal(product(wanted), product(old))
    for axis, (own, d) in enumerate(zip(old, wanted, strict=False)):
        if not is_symbolic(d) or (bounds(d)[0] or 0) > 0 or _is_multiple(d, own):
            continue
        others = (*wanted[:axis], *wanted[axis + 1 :])
        if as_many and all(isinstance(e, int) and e > 0 for e in others):
            continue
        what = f"copies_dim_{axis}_where_its_shape_has_a_0"
        copied = (*wanted[:axis], own, *wanted[axis + 1 :])
        if -1 not in copied and equal(product(copied), product(old)):
            rule = f"element {axis} of its shape, {dim_text(d)}, must be {dim_text(own)} or 0"
            node.require(d, as_dim(own * dim_min(d, 1)), what, rule)
            wanted = copied
        elif not symbols_of(d) & symbols_of(*old):
            size = as_dim(d + own * (1 - dim_min(d, 1)))
            wanted = (*wanted[:axis], node.sized(size, f"{node.label}_dim"), *wanted[axis + 1 :])
        else:
            rule = f"where element {axis} of its shape, {dim_text(d)}, is 0, so is {dim_text(own)}"
            node.require(own, as_dim(own * dim_min(d, 1)), what, rule)
    return wanted


def _is_multiple(a: Dim, b: Dim) -> bool:
    """Whether a dim is another times a number, and so is 0 where that is."""
    _, rest = cancelled((b,), (a,))
    numbers = [d for d in rest if isinstance(d, int)]
    return equal(a, b * prod(numbers))


def _with_free_dim(node: Emission, x: Expr, old: Shape, wanted: Shape) -> Expr:
    """The reshape to a shape with a -1, what it divides by checked to leave no rest."""
    given = tuple(d for d in wanted if d != -1)
    empty = any(equal(d, 0) for d in given)
    checked = old if empty else _whole(old, given)
    left, right = cancelled(checked, given)
    free = quotient(product(left), right)
    if free is not None or empty:
        same = checked == old
        return node.op("reshape", x if same else node.assert_shape(x, checked), wanted)
    # Beside an empty dim it may be any number: 0.
    free = floordiv(product(left), dim_max(product(right), 1))
    whole = tuple(free if d == -1 else d for d in wanted)
    return node.op("reshape", _flat(node, x, old, whole), whole)


def _whole(old: Shape, given: Shape) -> Shape:
    """The old shape, each dim as a product where the given dims say what must divide it.

    These are numbers that divide the elements but no dim (`(n, c)` to `(n, -1, 8)`), and parts of a
    dim beside their number (`(c, h)` to `(2, c // 2, h)`).
    """
    dims = list(old)
    numbers = {d for d in given if isinstance(d, int) and d > 1}
    for axis, d in enumerate(old):
        for n in sorted(numbers, reverse=True):
            part = floordiv(d, n)
            if is_symbolic(part) and any(equal(part, g) for g in given):
                dims[axis] = as_dim(part * n)
                break
    left, right = cancelled(tuple(dims), given)
    symbols = [d for d in left if is_symbolic(d)]
    if len(symbols) == 1 and symbols[0] in dims and all(isinstance(d, int) for d in right):
        divisor = prod(d for d in right if isinstance(d, int))
        divisor //= gcd(divisor, prod(d for d in left if isinstance(d, int)))
        if divisor > 1 and quotient(symbols[0], (divisor,)) is None:
            dims[dims.index(symbols[0])] = as_dim(floordiv(symbols[0], divisor) * divisor)
    return tuple(dims)


def _of_as_many(node: Emission, x: Expr, old: Shape, wanted: Shape) -> Expr:
    """`x`, checked such that its elements are provably as many as those of the wanted shape.

    Dims on both sides cancel. What is left on the side of `x` must be 1, or be the one dim that is
    left of the wanted shape; else the count is checked.
    """
    rest = list(wanted)
    left: list[int] = []
    for axis, d in enumerate(old):
        match = next((r for r in rest if equal(r, d)), None)
        if match is None:
            left.append(axis)
        else:
            rest.remove(match)
    if equal(product(old[a] for a in left), product(rest)):
        return x
    symbolic = [a for a in left if is_symbolic(old[a])]
    target = list(old)
    others = product(old[a] for a in left if a not in symbolic)
    if others == 1 and all(d == 1 for d in rest):
        for axis in symbolic:
            target[axis] = 1
    elif others == 1 and len(symbolic) == 1:
        target[symbolic[0]] = product(rest)
    if tuple(target) != old:
        return node.assert_shape(x, tuple(target))
    few, many = cancelled(old, wanted)
    if all(isinstance(d, int) for d in (*few, *many)):
        return x  # the type rule says what is wrong
    return _flat(node, x, old, wanted)


def _flat(node: Emission, x: Expr, old: Shape, wanted: Shape) -> Expr:
    """`x` as a vector, its length checked to be the number of elements of the wanted shape."""
    flat = node.op("reshape", x, (product(old),))
    return node.assert_shape(flat, (product(wanted),))
