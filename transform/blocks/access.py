"""How a stage walks through memory: the flat index of each access as a polynomial of the axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from unity.arith import Analyzer
from unity.arith.polynomial import Poly, as_constant, from_expr, multiply, split_linear
from unity.ir.flat_index import flat_index
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Store
from unity.ir.visit import (
    leaves,
    prim_children,
    prim_loads,
    rewrite_prim,
    rewrite_stmt,
    stmt_exprs,
    substitute_prim,
    substitute_stmt,
    variables,
    walk_prim,
    walk_stmt,
)

from .extents import number
from .nest import Axis, Nest


def known_of(axes: Iterable[Axis]) -> Analyzer:
    """What the extents of axes say."""
    known = Analyzer()
    for axis in axes:
        known = known.with_extent(axis.var, imm(0), axis.extent)
    return known


def place(access: Load | Store, known: Analyzer) -> Poly:
    """The flat index of an access."""
    return from_expr(known.simplify(flat_index(access.buffer, access.indices)))


def stride(index: Poly, var: PrimVar) -> Poly | None:
    """How far an access moves per step of a variable; None where it does not move evenly."""
    rest, factor = split_linear(index, var)
    if factor is None or mentions(rest, var) or mentions(factor, var):
        return None
    return factor


def step(index: Poly, var: PrimVar) -> int | None:
    """The same where it is a number."""
    moved = stride(index, var)
    return None if moved is None else as_constant(moved)


def mentions(index: Poly, var: PrimVar) -> bool:
    """Whether a polynomial depends on a variable."""
    return any(var in variables(atom) for monomial in index for atom in monomial)


def moves_alone(
    axes: Sequence[Axis], moves: Poly, stays: Poly, *, unknown: bool = False
) -> Axis | None:
    """The innermost axis that moves one place and not another.

    Args:
        axes: Which may be taken.
        moves: The one place.
        stays: The other.
        unknown: Whether an axis of unknown extent may be.
    """
    for axis in reversed(axes):
        if mentions(moves, axis.var) and not mentions(stays, axis.var):
            extent = number(axis.extent)
            if extent or (unknown and extent is None):
                return axis
    return None


def depends(e: PrimExpr, var: PrimVar) -> bool:
    """Whether an expression mentions a variable."""
    return var in variables(e)


def may_trap(e: PrimExpr) -> bool:
    """Whether evaluating an expression on lanes that hold nothing could stop the program."""
    divisors = [x.b for x in leaves(e).divisions]
    return any(prim_loads(divisor) for divisor in divisors)


def asked_in_vain(e: PrimExpr, known: Analyzer | None = None) -> bool:
    """Whether a condition may be asked where nobody does, or earlier: it reads no memory.

    Args:
        e: The condition.
        known: What is known where it is asked then; nothing, where that may be anywhere.
    """
    known = known or Analyzer()
    divisors = [x.b for x in leaves(e).divisions]
    if any((known.bounds(by)[0] or 0) < 1 for by in divisors):
        return False
    return not prim_loads(e)


@dataclass(frozen=True, slots=True)
class Reshaped:
    """A stage over other axes than it was written over.

    Attributes:
        nest: The stage.
        places: Where each of its axes stands (spatial, then reduced) at a point of those that it
            was written over.
    """

    nest: Nest
    places: tuple[PrimExpr, ...]


def as_written(nest: Nest) -> Reshaped:
    """A stage over its own axes."""
    return Reshaped(nest, tuple(a.var for a in all_axes(nest)))


@lru_cache(maxsize=16)  # every rule asks it of the same stage
def collapse(shaped: Reshaped, keep: int = 0) -> Reshaped:
    """With neighbouring axes joined to one where every access walks through both evenly.

    ``x[n, c, h, w] * s[c]`` becomes a nest over ``n, c, hw``; without ``s`` it has one axis.

    Args:
        shaped: The stage, which may have other axes already than it was written over.
        keep: How many of the last spatial axes stay as they are.
    """
    spatial = _joined(shaped, 0, len(shaped.nest.axes) - keep)
    reduction, first = spatial.nest.reduction, len(spatial.nest.axes)
    if reduction is None:
        return spatial
    units = [k for k, a in enumerate(reduction.axes) if number(a.extent) == 1]
    for k in units[::-1] if len(units) < len(reduction.axes) else units[-2::-1]:
        spatial = _without(spatial, first + k)
    return _joined(spatial, first, len(all_axes(spatial.nest)))


def part(shaped: Reshaped, least: int = 1) -> Reshaped:
    """With axes parted in two where what is read depends on their quotient by a divisor.

    The output channels of a grouped convolution read ``x[n, o // 16 * 8 + c, h, w]``: as groups
    and channels of a group, the latter all read the same. What is tiled reads ``x[i % n]``: as
    copies, and the elements of a copy, which are read as they lie.

    Args:
        shaped: The stage; its spatial axes are parted.
        least: The last axis is parted where its inner half has so many points; any number does
            where it has an unknown one.
    """
    loads = tuple(shaped.nest.loads())
    for k, axis in enumerate(shaped.nest.axes):
        few = least if k == len(shaped.nest.axes) - 1 else 1
        for e in (e for load in loads for i in load.indices for e in walk_prim(i)):
            match e:
                case Binary("floordiv" | "floormod", var, by) if var is axis.var:
                    count = _parts(axis.extent, by)
                    if count is not None and (number(by) or few) >= few:
                        return part(parted_at(shaped, k, by, count), least)
                case _:
                    pass
    return shaped


def _parts(extent: PrimExpr, by: PrimExpr) -> PrimExpr | None:
    """How many times a divisor goes into an extent; None where it doesn't, or says nothing."""
    if any(not isinstance(v, SizeVar) for v in variables(by)) or by == extent or number(by) == 1:
        return None
    known = Analyzer()
    if known.simplify(Binary("floormod", extent, by)) != imm(0):
        return None
    count = known.simplify(Binary("floordiv", extent, by))
    return None if count == imm(1) else count


def parted_at(shaped: Reshaped, k: int, by: PrimExpr, count: PrimExpr) -> Reshaped:
    """A stage with one of its spatial axes as `count` groups of `by`."""
    nest, at = shaped.nest, shaped.places[k]
    halves = (Binary("floordiv", at, by), Binary("floormod", at, by))
    places = (*shaped.places[:k], *halves, *shaped.places[k + 1 :])
    return Reshaped(part_axis(nest, nest.axes[k], by, count), places)


def part_axis(nest: Nest, axis: Axis, by: PrimExpr, count: PrimExpr) -> Nest:
    """A spatial axis of a stage as `count` groups of `by`; its loads' indices simplified."""
    outer = Axis(PrimVar(f"{axis.var.name}_group"), count)
    inner = Axis(PrimVar(axis.var.name), by)
    at = nest.axes.index(axis)
    axes = (*nest.axes[:at], outer, inner, *nest.axes[at + 1 :])
    place = Binary("add", Binary("mul", outer.var, by), inner.var)
    new = _rewritten(replace(nest, axes=axes), {axis.var: place})
    known = known_of(all_axes(new))

    def simplified(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Load):
            return None
        return replace(e, indices=tuple(known.simplify(i) for i in e.indices))

    reduction = new.reduction
    if reduction is None:
        return replace(new, finish=rewrite_stmt(new.finish, None, simplified))
    value = rewrite_prim(reduction.value, simplified)
    return replace(new, reduction=replace(reduction, value=value))


def _joined(shaped: Reshaped, first: int, end: int) -> Reshaped:
    """With some of the axes, spatial or reduced ones, joined."""
    walks = _walks(shaped.nest)
    for k in range(end - 2, first - 1, -1):
        outer, inner = all_axes(shaped.nest)[k : k + 2]
        if _joinable(shaped.nest, walks, outer, inner):
            axis, values = _join(outer, inner)
            whole = Binary(
                "add", Binary("mul", shaped.places[k], inner.extent), shaped.places[k + 1]
            )
            places = (*shaped.places[:k], whole, *shaped.places[k + 2 :])
            shaped = Reshaped(_replaced(shaped.nest, k, 2, (axis,), values), places)
            walks = _walks(shaped.nest)
    return shaped


def _without(shaped: Reshaped, k: int) -> Reshaped:
    """Without an axis of one point."""
    gone: dict[PrimVar | SizeVar, PrimExpr] = {all_axes(shaped.nest)[k].var: imm(0)}
    places = (*shaped.places[:k], *shaped.places[k + 1 :])
    return Reshaped(_replaced(shaped.nest, k, 1, (), gone), places)


def _replaced(
    nest: Nest,
    k: int,
    count: int,
    made: tuple[Axis, ...],
    values: dict[PrimVar | SizeVar, PrimExpr],
) -> Nest:
    """With other axes in place of some, spatial or reduced ones."""
    axes, reduction = nest.axes, nest.reduction
    if k < len(axes):
        return _rewritten(replace(nest, axes=(*axes[:k], *made, *axes[k + count :])), values)
    assert reduction is not None
    k -= len(axes)
    inner = (*reduction.axes[:k], *made, *reduction.axes[k + count :])
    return _rewritten(replace(nest, reduction=replace(reduction, axes=inner)), values)


def _join(a: Axis, b: Axis) -> tuple[Axis, dict[PrimVar | SizeVar, PrimExpr]]:
    var = PrimVar(f"{a.var.name}{b.var.name.removeprefix('v')}")
    extent = Analyzer().simplify(Binary("mul", a.extent, b.extent))
    values: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: Binary("floordiv", var, b.extent),
        b.var: Binary("floormod", var, b.extent),
    }
    return Axis(var, extent), values


def _rewritten(nest: Nest, values: dict[PrimVar | SizeVar, PrimExpr]) -> Nest:
    reduction = nest.reduction
    if reduction is not None:
        reduction = replace(
            reduction,
            value=substitute_prim(reduction.value, values),
            init=substitute_prim(reduction.init, values),
        )
    return replace(nest, reduction=reduction, finish=substitute_stmt(nest.finish, values))


def all_axes(nest: Nest) -> tuple[Axis, ...]:
    """Spatial axes, then the reduced ones."""
    return nest.axes if nest.reduction is None else (*nest.axes, *nest.reduction.axes)


@dataclass(frozen=True, slots=True)
class _Walks:
    """The flat index of each access of a nest, and what is known of the axes."""

    known: Analyzer
    indices: tuple[Poly, ...]


def _walks(nest: Nest) -> _Walks:
    known = known_of(all_axes(nest))
    accesses: Sequence[Load | Store] = [*nest.loads(), *nest.stores()]
    return _Walks(known, tuple(place(access, known) for access in accesses))


def _joinable(nest: Nest, walks: _Walks, a: Axis, b: Axis) -> bool:
    for index in walks.indices:
        outer, inner = stride(index, a.var), stride(index, b.var)
        if outer is None or inner is None:
            return False
        if outer != multiply(inner, from_expr(walks.known.simplify(b.extent))):
            return False
    return not any(
        _outside_accesses(e, a.var) or _outside_accesses(e, b.var) for e in _values(nest)
    )


def _values(nest: Nest) -> Iterable[PrimExpr]:
    if nest.reduction is not None:
        yield nest.reduction.value
        yield nest.reduction.init
    for s in walk_stmt(nest.finish):
        if isinstance(s, Store):
            yield s.value
        else:
            yield from stmt_exprs(s)


def _outside_accesses(e: PrimExpr, var: PrimVar) -> bool:
    """Whether a variable is used other than to index (loads of loads included)."""
    if e is var:
        return True
    if isinstance(e, Load):
        loads = [x for i in e.indices for x in prim_loads(i)]
        return any(depends(x, var) for x in loads)
    return any(_outside_accesses(x, var) for x in prim_children(e))
