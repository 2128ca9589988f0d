"""Loops at a border: iterations in which the same points of written-out loops lie inside.

Pixels of a tile at the border of an image see some taps and not others. Which ones is known where
bounds are numbers: a loop falls apart in runs of iterations in each of which predicates hold at
the same points, so that they need not be asked. Where a bound depends on loops around, the
iterations before the first inside are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from unity.arith.polynomial import Poly, as_constant, from_expr, split_linear, to_expr
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.regions import add
from unity.ir.stmt import Block, For, PrimFunc, Stmt
from unity.ir.visit import bound_in, prim_loads, substitute_prim, substitute_stmt, variables

from ...blocks.conditions import TILE, computing, depends_on, without_parts
from ...blocks.dependence import loose_statement
from ...blocks.extents import number
from ...blocks.site import Site, sites
from ...blocks.tree import (
    NOTHING,
    Path,
    all_blocks,
    blocks_below,
    conjunction,
    driven,
    known_at,
    renewed,
    replaced,
)

MOST_RUNS, MOST_POINTS = 64, 1024
"""Runs of a loop, and points of those within that a predicate is asked at, at most."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A part of a block's predicate: ``step * loop + (one of moved) + rest >= 0``.

    Attributes:
        block: The block.
        part: The part.
        step: How it moves with the loop.
        inner: The loops within that it moves with, and how.
        moved: What these add at each of their points.
        rest: What else there is.
        is_border: Whether it joins a tile with a loop that reduces, or fails at the begin.
    """

    block: Block
    part: PrimExpr
    step: int
    inner: tuple[tuple[For, int], ...]
    moved: tuple[int, ...]
    rest: Poly
    is_border: bool

    def at(self, value: int) -> tuple[bool, ...]:
        """Where it holds in an iteration."""
        rest = as_constant(self.rest)
        assert rest is not None
        return tuple(m + self.step * value + rest >= 0 for m in self.moved)

    def changes(self) -> set[int]:
        """The iterations from which on it holds at points where it did not, or no longer."""
        rest = as_constant(self.rest)
        assert rest is not None
        if self.step > 0:
            return {-((m + rest) // self.step) for m in self.moved}
        return {(m + rest) // -self.step + 1 for m in self.moved}

    def room(self, moved: PrimExpr) -> PrimExpr:
        """What there is, and what loops add."""
        return Binary("add", to_expr(self.rest), moved)


def apart(loop: For, above: Path) -> list[Stmt] | None:
    """A loop as runs of iterations in which predicates hold at the same points.

    Args:
        loop: A serial or unrolled loop.
        above: The way to it.

    Returns:
        None where predicates say nothing of it, or not by numbers.
    """
    begin, extent = number(loop.begin), number(loop.extent)
    if begin is None or not extent:
        return None
    facts = [f for f in facts_of(loop, above) if as_constant(f.rest) is not None]
    if loop.kind != "unrolled":
        facts = [f for f in facts if len(f.moved) > 1]
    if not any(f.is_border or loop.kind == "unrolled" for f in facts):
        return None
    changes = {i for f in facts for i in f.changes() if begin < i < begin + extent}
    if len(changes) >= MOST_RUNS:
        return None
    names, bound = {b.name for b in all_blocks(loop.body)}, bound_in(loop)
    runs: list[Stmt] = []
    for first, behind in pairwise((begin, *sorted(changes), begin + extent)):
        body = _settled(loop, facts, [f.at(first) for f in facts], first)
        if not computing(body):
            continue
        part = replace(loop, begin=imm(first), extent=imm(behind - first), body=body)
        if loop.kind == "serial" and behind == first + 1:
            runs.append(substitute_stmt(body, {loop.var: imm(first)}))
        else:
            runs.append(part)
        if len(runs) > 1:
            runs[-1] = renewed(runs[-1], names, bound)
    return runs


def _settled(
    loop: For, facts: Sequence[Fact], holds: Sequence[tuple[bool, ...]], first: int
) -> Stmt:
    """A loop's body in a run of iterations, which the first stands for."""
    changes: list[tuple[Stmt, Stmt]] = []
    for block in dict.fromkeys(f.block for f in facts):
        parts: list[PrimExpr] = []
        runs = True
        assert block.predicate is not None
        for part in conjuncts(block.predicate):
            known = [h for f, h in zip(facts, holds, strict=True) if f.part is part]
            if not known:
                parts.append(part)
            elif not all(known[0]):
                parts.append(substitute_prim(part, {loop.var: imm(first)}))
                runs = runs and any(known[0])
        changes.append((block, replace(block, predicate=conjunction(parts)) if runs else NOTHING))
    return replaced(PrimFunc((), loop.body), changes).body


def begun_late(loop: For, above: Path) -> For:
    """The loop without its first iterations, where none of its blocks runs."""
    found = [f for f in facts_of(loop, above) if f.moved == (0,) and f.step > 0 and f.is_border]
    doing = computing(loop.body)
    known = known_at(above)
    for fact in found:
        same = [
            f
            for f in found
            if f.step == fact.step and known.equal(to_expr(f.rest), to_expr(fact.rest))
        ]
        if not all(any(f.block is b for f in same) for b in doing):
            continue
        room = Binary("sub", imm(fact.step - 1), to_expr(fact.rest))
        first = known.simplify(Binary("floordiv", room, imm(fact.step)))
        begin = known.simplify(Binary("max", loop.begin, first))
        end = Binary("add", loop.begin, loop.extent)
        extent = known.simplify(Binary("max", Binary("sub", end, begin), imm(0)))
        if loop.kind == "unrolled" and not (isinstance(extent, Imm) and isinstance(begin, Imm)):
            continue
        body = without_parts(loop.body, [(f.block, f.part) for f in same])
        return begun_late(replace(loop, begin=begin, extent=extent, body=body), above)
    return loop


def facts_of(loop: For, above: Path) -> list[Fact]:
    """What predicates below a loop say of it; nothing where a block there has an init."""
    blocks = blocks_below(loop.body)
    if any(b.init is not None for b in blocks) or not any(depends_on(b, loop) for b in blocks):
        return []
    if loose_statement(loop.body) is not None:
        return []
    found: list[Fact] = []
    for site in sites(loop.body, (*above, loop), lambda b: depends_on(b, loop)):
        assert site.block.predicate is not None
        for part in conjuncts(site.block.predicate):
            fact = _fact(loop, site, part)
            if fact is not None:
                found.append(fact)
    return found


def _fact(loop: For, site: Site, part: PrimExpr) -> Fact | None:
    e = _at_least_zero(part)
    if e is None or prim_loads(e):
        return None
    poly = from_expr(site.known.simplify(e))
    poly, step = _linear(poly, loop.var)
    if not step:
        return None
    inner = [x for x in site.loops if x.var in variables(e)]
    factors: list[tuple[For, int]] = []
    moves: list[list[int]] = []
    points = 1
    for x in inner:
        poly, factor = _linear(poly, x.var)
        begin, extent = number(x.begin), number(x.extent)
        points *= extent or MOST_POINTS
        if factor is None or begin is None or not extent or points > MOST_POINTS:
            return None
        factors.append((x, factor))
        moves.append([factor * i for i in range(begin, begin + extent)])
    if variables(to_expr(poly)) & {loop.var, *(x.var for x in site.loops)}:
        return None
    if inner and not any(x.kind in TILE for x in inner):
        return None
    kinds = {k for x in (loop, *inner) for k in driven(site.block, x.var)}
    mixed = kinds >= {"S", "R"}
    moved = tuple(sum(p) for p in product(*moves))
    return Fact(site.block, part, step, tuple(factors), moved, poly, mixed or step > 0)


def _at_least_zero(part: PrimExpr) -> PrimExpr | None:
    """What is at least zero where a comparison holds."""
    match part:
        case Compare("ge", a, b):
            return Binary("sub", a, b)
        case Compare("gt", a, b):
            return add(Binary("sub", a, b), imm(-1))
        case Compare("le", a, b):
            return Binary("sub", b, a)
        case Compare("lt", a, b):
            return add(Binary("sub", b, a), imm(-1))
        case _:
            return None


def _linear(poly: Poly, var: PrimVar) -> tuple[Poly, int | None]:
    """``poly == rest + factor * var``; the factor is None where that is no number."""
    rest, factor = split_linear(poly, var)
    return (poly, None) if factor is None else (rest, as_constant(factor))
