"""Padding left out: a reduction over a padded copy reads what there is and skips the rest.

A convolution is written as a stage that pads and one that adds up. Joined, every element that is
read stands under a condition, ``0 <= 2 * y + ky - 1 < 56``: an `Edge` for each comparison. Taps
that read padding add nothing, so that the schedule may leave them out instead of testing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.polynomial import Poly, as_constant, from_expr, split_linear, to_expr
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Compare,
    Imm,
    Load,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Store
from unity.ir.visit import rewrite_prim, substitute_prim, walk_prim

from ..blocks.access import all_axes, known_of, mentions
from ..blocks.nest import Axis, Nest, Reduction
from ..blocks.padded import padded_choice


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


def unpadded(pad: Nest, nest: Nest) -> Nest | None:
    """The stage that reads through a padding stage; None if that does more than padding."""
    if pad.reduction is not None or nest.reduction is None or not isinstance(pad.finish, Store):
        return None
    value, indices = pad.finish.value, pad.finish.indices
    places = [i for i in indices if isinstance(i, PrimVar)]
    if len(set(places)) != len(indices) or not _is_padding(value):
        return None

    def on_load(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Load) or e.buffer is not pad.output:
            return None
        here: dict[PrimVar | SizeVar, PrimExpr] = dict(zip(places, e.indices, strict=True))
        return substitute_prim(value, here)

    reduction = replace(nest.reduction, value=rewrite_prim(nest.reduction.value, on_load))
    return replace(nest, reduction=reduction)


def _is_padding(value: PrimExpr) -> bool:
    match value:
        case Select(_, Load() | Cast(_, Load()), Imm()):
            return True
        case _:
            return False


def without_padding(nest: Nest) -> tuple[Nest, tuple[Edge, ...]] | None:
    """The stage as if all it reads were there, and where it is.

    None where conditions are no edges, or where what stands for a missing element would matter.
    """
    reduction = nest.reduction
    assert reduction is not None
    selects = {e for e in walk_prim(reduction.value) if isinstance(e, Select)}
    if not selects:
        return nest, ()
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
    if padded_choice(reduction) is None:
        return None
    bare = rewrite_prim(reduction.value, lambda e: select.then if e == select else None)
    return replace(nest, reduction=replace(reduction, value=bare)), tuple(edges)


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
