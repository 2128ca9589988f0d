"""What the symbols of types stand for, where values of other types are given; and surely so.

`unity.ir.lattice.unify` refuses what surely does not fit, and leaves the rest to checks at run
time. A rewrite can't wait for these: here everything must be known to fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.dims import Dim, Symbol, bounds, divisor, equal, substitute
from unity.ir.types import PrimType, ShapeType, TensorType, Type


def bind(formal: Sequence[Type], given: Sequence[Type | None]) -> dict[Symbol, Dim] | None:
    """What the symbols of a rule stand for; None where types do not surely fit.

    >>> from unity.ir.dims import dim
    >>> from unity.ir.dtype import FLOAT32
    >>> n, m = dim("n"), dim("m")
    >>> square = TensorType((n, n), FLOAT32)
    >>> bind([square], [TensorType((m + 1, 1 + m), FLOAT32)])
    {n: m + 1}
    >>> bind([square], [TensorType((m, 4), FLOAT32)]) is None
    True
    """
    pairs: list[tuple[Dim, Dim]] = []
    for expected, got in zip(formal, given, strict=True):
        if got is None or not _pair(expected, got, pairs):
            return None
    bound: dict[Symbol, Dim] = {}
    for want, have in pairs:
        if isinstance(want, Symbol) and want not in bound:
            if not _has_facts(want, have):
                return None
            bound[want] = have
    return bound if all(equal(substitute(w, bound), h) for w, h in pairs) else None


def _pair(expected: Type, got: Type, pairs: list[tuple[Dim, Dim]]) -> bool:
    """Whether all but the dims fits; those are noted."""
    match expected, got:
        case TensorType(shape, dtype), TensorType():
            if dtype is not None and dtype != got.dtype:
                return False
            return _pair_dims(shape, got.shape, got.ndim, pairs)
        case ShapeType(dims), ShapeType():
            return _pair_dims(dims, got.dims, got.ndim, pairs)
        case PrimType(), PrimType():
            if expected.value is not None:
                if got.value is None:
                    return False
                pairs.append((expected.value, got.value))
            return expected.dtype == got.dtype
        case _:
            return False


def _pair_dims(
    expected: tuple[Dim, ...] | int | None,
    got: tuple[Dim, ...] | int | None,
    rank: int | None,
    pairs: list[tuple[Dim, Dim]],
) -> bool:
    if not isinstance(expected, tuple):
        return expected is None or expected == rank
    if not isinstance(got, tuple) or len(got) != len(expected):
        return False
    pairs.extend(zip(expected, got, strict=True))
    return True


def _has_facts(symbol: Symbol, value: Dim) -> bool:
    """Whether a dim surely has what a symbol of a rule promises."""
    facts = symbol.facts
    low, high = bounds(value)
    if facts.min and (low is None or low < facts.min):
        return False
    if facts.max is not None and (high is None or high > facts.max):
        return False
    return divisor(value) % facts.multiple_of == 0


def same_type(a: Type | None, b: Type | None) -> bool:
    """Whether two tensor types surely agree."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype:
        return False
    if not isinstance(a.shape, tuple) or not isinstance(b.shape, tuple):
        return a.shape == b.shape
    return len(a.shape) == len(b.shape) and all(map(equal, a.shape, b.shape))
