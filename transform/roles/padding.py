"""Where a reduction that reads through a stage that pads finds elements, and not padding.

Every element that is read stands under a condition, ``0 <= 2 * y + ky - 1 < 56``: an `Edge` for
each comparison. Taps that read padding add nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import Poly, as_constant, from_expr, split_linear, to_expr
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import (
    Binary,
    Compare,
    PrimExpr,
    PrimVar,
    Select,
    imm,
)
from unity.ir.visit import walk_prim

from ..blocks.access import all_axes, known_of, mentions
from ..blocks.nest import Axis, Nest, Reduction, padded_choice


@dataclass(frozen=True, slots=True)
class Edge:
    """``step * axis + pace * tap + rest >= 0``: what holds where an element is, not padding.

    Attributes:
        axis: A spatial axis.
        tap: A reduced one.
        step: How far the place moves with the axis.
        pace: How far it moves with the tap, not 0.
        rest: Where it starts.
    """

    axis: PrimVar
    tap: PrimVar
    step: int
    pace: int
    rest: PrimExpr


@dataclass(frozen=True, slots=True)
class Padding:
    """What a stage reads under conditions.

    Attributes:
        choice: Between an element and what stands for a missing one; None if all is there.
        edges: Where there are elements.
    """

    choice: Select | None
    edges: tuple[Edge, ...]


def padding_of(nest: Nest) -> Padding | None:
    """Where what a stage adds up is there.

    None where conditions are no edges, or where what stands for a missing element would matter.
    """
    reduction = nest.reduction
    assert reduction is not None
    selects = {e for e in walk_prim(reduction.value) if isinstance(e, Select)}
    if not selects:
        return Padding(None, ())
    if len(selects) > 1:
        return None
    (select,) = selects
    known = known_of(all_axes(nest))
    edges: list[Edge] = []
    for part in conjuncts(known.simplify(select.condition)):
        edge = _edge(part, nest.axes, reduction, known)
        if edge is None:
            return None
        edges.append(edge)
    return None if padded_choice(reduction) is None else Padding(select, tuple(edges))


def _edge(e: PrimExpr, axes: Sequence[Axis], reduction: Reduction, known: Analyzer) -> Edge | None:
    match e:
        case Compare("ge", a, b):
            place = known.simplify(Binary("sub", a, b))
        case Compare("gt", a, b):
            place = known.simplify(Binary("sub", Binary("sub", a, b), imm(1)))
        case Compare("le", a, b):
            place = known.simplify(Binary("sub", b, a))
        case Compare("lt", a, b):
            place = known.simplify(Binary("sub", Binary("sub", b, a), imm(1)))
        case _:
            return None
    rest = from_expr(place)
    moved: list[tuple[PrimVar, int]] = []
    for group in (axes, reduction.axes):
        found = [a.var for a in group if mentions(rest, a.var)]
        if len(found) != 1:
            return None
        rest, factor = _linear(rest, found[0])
        if factor is None:
            return None
        moved.append((found[0], factor))
    (axis, step), (tap, pace) = moved
    return Edge(axis, tap, step, pace, to_expr(rest))


def _linear(p: Poly, var: PrimVar) -> tuple[Poly, int | None]:
    rest, factor = split_linear(p, var)
    if factor is None or mentions(rest, var):
        return p, None
    return rest, as_constant(factor)
