"""Which tiles lie within the image: where every access of a tile's stages is allowed.

A tile at the border asks for each pixel whether there is one. For the tiles within, all of that is
said by a few conditions on the tile alone: those of the pixels furthest out, whatever the extents.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unity.arith import Analyzer
from unity.arith import polynomial as poly
from unity.arith.polynomial import Poly
from unity.ir.prim_expr import (
    Binary,
    Compare,
    Load,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Stmt
from unity.ir.visit import map_prim, map_stmt, stmt_exprs, substitute_prim, walk_prim, walk_stmt

from ...blocks.extents import number
from ...blocks.nest import Axis
from ...roles.winograd import TileStage

_Values = dict[PrimVar | SizeVar, PrimExpr]


def within(
    conditions: Collection[PrimExpr], local: Sequence[Axis], tiles: Sequence[Axis], known: Analyzer
) -> PrimExpr | None:
    """The condition on a tile under which some conditions hold all over it.

    None where there is nothing to ask, where no tile meets it, or where it can't be told.

    Args:
        conditions: Over the tile's axes and those within it.
        local: The axes within a tile.
        tiles: The axes that tell the tile.
        known: The ranges of all axes.
    """
    least: dict[frozenset[tuple[poly.Monomial, int]], int] = {}
    for condition in conditions:
        if known.prove(condition):
            continue
        margin = _margin(condition)
        found = None if margin is None else _least(margin, local, known)
        if found is None or not _tells(found, tiles):
            return None
        constant = found.pop((), 0)
        rest = frozenset(found.items())
        least[rest] = min(constant, least.get(rest, constant))
    margins = [{**dict(rest), (): constant} for rest, constant in least.items()]
    if not margins or not all(_some_meets(margins, axis) for axis in tiles):
        return None
    asked: PrimExpr | None = None
    for p in margins:
        each = Compare("ge", poly.to_expr({m: c for m, c in p.items() if c}), imm(0))
        asked = each if asked is None else Binary("and", asked, each)
    return asked


def _margin(condition: PrimExpr) -> PrimExpr | None:
    """What a comparison says to be 0 or more."""
    match condition:
        case Compare("lt", a, b):
            return b - a - 1
        case Compare("le", a, b):
            return b - a
        case Compare("gt", a, b):
            return a - b - 1
        case Compare("ge", a, b):
            return a - b
        case _:
            return None


def _least(margin: PrimExpr, local: Sequence[Axis], known: Analyzer) -> Poly | None:
    """A margin where it is least along the axes within the tile; None if it is not linear there."""
    for axis in local:
        extent = number(axis.extent)
        up: _Values = {axis.var: axis.var + 1}
        rise = number(known.simplify(substitute_prim(margin, up) - margin))
        if extent is None or rise is None:
            return None
        at: _Values = {axis.var: imm(0 if rise >= 0 else extent - 1)}
        margin = known.simplify(substitute_prim(margin, at))
    return poly.from_expr(known.simplify(margin))


def _tells(margin: Poly, tiles: Sequence[Axis]) -> bool:
    """Whether a margin depends on the tile and on sizes alone."""
    ours = [a.var for a in tiles]
    atoms = (e for monomial in margin for atom in monomial for e in walk_prim(atom))
    return all(not isinstance(e, PrimVar) or e in ours for e in atoms)


def _some_meets(margins: Sequence[Poly], axis: Axis) -> bool:
    """Whether a tile along an axis may meet the margins that depend on nothing else."""
    extent = number(axis.extent)
    if extent is None:
        return True
    lines = [
        (p.get((axis.var,), 0), p.get((), 0)) for p in margins if p.keys() <= {(axis.var,), ()}
    ]
    return any(all(slope * at + c >= 0 for slope, c in lines) for at in range(extent))


def conditions_of(stage: TileStage) -> list[PrimExpr]:
    """What has to hold for a stage's loads, and for its stores."""
    found: list[PrimExpr] = []
    for s in walk_stmt(stage.finish):
        for top in stmt_exprs(s):
            for e in walk_prim(top):
                if isinstance(e, Select) and _guards(e, stage):
                    found += _conjuncts(e.condition)
    return [*found, *(c for g in stage.guards for c in _conjuncts(g))]


def settled(stage: TileStage) -> TileStage:
    """The stage where all its conditions hold."""

    def on_expr(e: PrimExpr) -> PrimExpr:
        if isinstance(e, Select) and _guards(e, stage):
            return on_expr(e.then)
        return map_prim(e, on_expr)

    def on_stmt(s: Stmt) -> Stmt:
        return map_stmt(s, on_stmt, on_expr)

    return TileStage(stage.name, on_stmt(stage.finish), stage.walked, stage.chosen, ())


def _guards(e: Select, stage: TileStage) -> bool:
    """Whether a choice is one of whether there is a pixel."""
    inside = list(walk_prim(e.condition))
    chooses = stage.chosen is not None and stage.chosen.var in inside
    known = all(isinstance(c, Compare) and _margin(c) for c in _conjuncts(e.condition))
    return known and not chooses and not any(isinstance(x, Load) for x in inside)


def _conjuncts(e: PrimExpr) -> list[PrimExpr]:
    if isinstance(e, Binary) and e.op == "and":
        return _conjuncts(e.a) + _conjuncts(e.b)
    return [e]
