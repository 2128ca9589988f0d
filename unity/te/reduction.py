"""Reductions: axes to reduce over and the combiners `sum`, `max`, `argmax` ...

A reduction stands at the top of a compute's body. A combiner works on tuples, so that argmax
carries an index beside a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dims import Dim, SymDim
from unity.ir.dtype import DType
from unity.ir.prim_expr import Binary, BinaryOp, Operand, PrimExpr, PrimVar, as_prim_expr, imm
from unity.ir.stmt import Range
from unity.ir.symbols.convert import to_prim_expr

from .math import all_true, any_true, eq, intrinsic, max_value, min_value, select

Values: TypeAlias = tuple[PrimExpr, ...]
Extent: TypeAlias = Dim | PrimExpr


@dataclass(frozen=True, slots=True, eq=False)
class ReduceAxis:
    """A variable to reduce over; `var` is the operand, indexing takes the axis itself as well."""

    var: PrimVar
    domain: Range


@dataclass(frozen=True, slots=True)
class Combiner:
    """How values are joined: an associative function of tuples and its identity.

    Attributes:
        name: What it is, for the reader of the IR.
        combine: (accumulator, new values) -> accumulator.
        identity: The neutral element for values of some dtypes.
    """

    name: str
    combine: Callable[[Values, Values], Values]
    identity: Callable[[Sequence[DType]], Values]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction: the values of one step, the axes, and what the accumulators start as."""

    combiner: Combiner
    values: Values
    axes: tuple[ReduceAxis, ...]
    init: Values


@public
def reduce_axis(extent: Extent | tuple[Extent, Extent], name: str = "k") -> ReduceAxis:
    """An axis to reduce over: an extent from zero, or (begin, extent)."""
    begin, size = extent if isinstance(extent, tuple) else (0, extent)
    return ReduceAxis(PrimVar(f"v{name}"), Range(as_extent(begin), as_extent(size)))


def as_extent(value: Extent) -> PrimExpr:
    """A dim or an expression as a prim expression."""
    return to_prim_expr(value) if isinstance(value, int | SymDim) else value


@public
def reduce(
    combiner: str | Combiner,
    values: Sequence[PrimExpr],
    axis: ReduceAxis | Sequence[ReduceAxis],
    init: Sequence[Operand] | None = None,
) -> Reduce:
    """A reduction of a tuple of values.

    Args:
        combiner: One of `COMBINERS` by name, or your own.
        values: The values of one step.
        axis: The axes to reduce over, or the one.
        init: What the accumulators start as; the combiner's identity by default.
    """
    if isinstance(combiner, str) and combiner not in COMBINERS:
        raise UnityError(
            f"there is no combiner {combiner!r}", hint=f"there are {', '.join(COMBINERS)}"
        )
    how = COMBINERS[combiner] if isinstance(combiner, str) else combiner
    first = how.identity([v.dtype for v in values])
    if init is not None:
        first = tuple(as_prim_expr(i, v.dtype) for i, v in zip(init, values, strict=True))
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    return Reduce(how, tuple(values), axes, first)


def _of_op(name: str, op: BinaryOp, identity: Callable[[DType], PrimExpr]) -> Combiner:
    return Combiner(
        name,
        lambda a, b: (Binary(op, a[0], b[0]),),
        lambda dtypes: (identity(dtypes[0]),),
    )


def _arg(name: str, better: Callable[[PrimExpr, PrimExpr], PrimExpr], largest: bool) -> Combiner:
    """Pairs (index, value): the best value, among equals the least index; NaN beats all."""

    def combine(a: Values, b: Values) -> Values:
        (ai, av), (bi, bv) = a, b
        earlier = bi < ai
        take = any_true(better(bv, av), all_true(eq(av, bv), earlier))
        if av.dtype.is_float:
            was, now = intrinsic("isnan", av), intrinsic("isnan", bv)
            take = select(was, all_true(now, earlier), any_true(now, take))
        return select(take, bi, ai), select(take, bv, av)

    def identity(dtypes: Sequence[DType]) -> Values:
        worst = min_value(dtypes[1]) if largest else max_value(dtypes[1])
        return max_value(dtypes[0]), worst

    return Combiner(name, combine, identity)


COMBINERS: dict[str, Combiner] = {
    c.name: c
    for c in (
        _of_op("sum", "add", lambda d: imm(0, d)),
        _of_op("prod", "mul", lambda d: imm(1, d)),
        _of_op("max", "max", min_value),
        _of_op("min", "min", max_value),
        _of_op("fmax", "fmax", min_value),
        _of_op("fmin", "fmin", max_value),
        _of_op("any", "or", lambda d: imm(0, d)),
        _of_op("all", "and", lambda d: imm(1, d)),
        _arg("argmax", lambda new, old: all_true(new > old), largest=True),
        _arg("argmin", lambda new, old: all_true(new < old), largest=False),
    )
}


def _single(
    name: str, value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None
) -> Reduce:
    return reduce(name, (value,), axis, None if init is None else (init,))


@public
def sum(  # noqa: A001
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """The sum over some axes, accumulated in the value's dtype."""
    return _single("sum", value, axis, init)


@public
def prod(
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """The product over some axes."""
    return _single("prod", value, axis, init)


@public
def max(  # noqa: A001
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """The largest value; NaN if there is one."""
    return _single("max", value, axis, init)


@public
def min(  # noqa: A001
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """The smallest value; NaN if there is one."""
    return _single("min", value, axis, init)


@public
def any(  # noqa: A001
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """Whether some value is true."""
    return _single("any", value, axis, init)


@public
def all(  # noqa: A001
    value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis], init: Operand | None = None
) -> Reduce:
    """Whether every value is true."""
    return _single("all", value, axis, init)


@public
def argmax(
    index: PrimExpr | ReduceAxis, value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis]
) -> Reduce:
    """The pair (index, value) of the largest value; the first of several, NaN above all."""
    at = index.var if isinstance(index, ReduceAxis) else index
    return reduce("argmax", (at, value), axis)


@public
def argmin(
    index: PrimExpr | ReduceAxis, value: PrimExpr, axis: ReduceAxis | Sequence[ReduceAxis]
) -> Reduce:
    """The pair (index, value) of the smallest value; the first of several, NaN below all."""
    at = index.var if isinstance(index, ReduceAxis) else index
    return reduce("argmin", (at, value), axis)
