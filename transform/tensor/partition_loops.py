"""PartitionLoops: whole tiles without conditions, and what is left of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.arith.region import extremes, greater, lesser
from unity.ir.empty_reduction import conjuncts
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, imm
from unity.ir.stmt import Block, For, IfThen, PrimFunc, Range, Stmt
from unity.ir.visit import map_stmt, substitute_stmt, walk_prim, walk_stmt

from ..passes import Context, Pass, Sight
from ..schedule.dependence import loose_statement, sites
from ..schedule.tree import (
    Path,
    all_blocks,
    conjunction,
    known_at,
    renewed,
    sequence,
    variables,
)
from .functions import map_prim_funcs, with_body

TILE = ("vectorized", "unrolled")
"""Loops that are written out: a condition in them is met in each step of what is around."""


@dataclass(frozen=True, slots=True)
class PartitionLoops(Pass):
    """Loops over tiles run over those that lie inside whole, then over the one that does not.

    The predicate that `split` leaves with a factor that does not divide an extent is so met once
    outside what runs often. A loop on threads stays one, and asks in each iteration. A loop whose
    last iterations do nothing at all is cut short. Blocks with an init are left as they are:
    `decompose_reduction` comes before.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range((n + 7) // 8):
    ...         for j in T.vectorized(8):
    ...             with T.block("copy"):
    ...                 vi = T.axis.spatial(n, i * 8 + j)
    ...                 T.where(i * 8 + j < n)
    ...                 c[vi] = a[vi]
    ... ''')
    >>> print(print_module(PartitionLoops()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n // 8):
            for j in T.vectorized(8):
                with T.block("copy"):
                    vi = T.axis.spatial(n, i * 8 + j)
                    c[vi] = a[vi]
        for i in range(n // 8, n // 8 + ((n + 7) // 8 - n // 8)):
            for j in T.vectorized(8):
                with T.block("copy_1"):
                    vi = T.axis.spatial(n, i * 8 + j)
                    T.where(i * 8 + j < n)
                    c[vi] = a[vi]

    Attributes:
        depth: How many loops may be partitioned within what is left of others.
    """

    sees: ClassVar[Sight] = "kernel"

    depth: int = 2

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, self.partition)

    def partition(self, func: PrimFunc) -> PrimFunc:
        """The prim func with its loops partitioned; itself if there is nothing to gain."""
        if not any(isinstance(s, Block) and s.predicate is not None for s in walk_stmt(func.body)):
            return func
        return with_body(func, self._stmt(func.body, (), self.depth))

    def _stmt(self, s: Stmt, above: Path, depth: int) -> Stmt:
        if isinstance(s, Block):
            return s
        if isinstance(s, For) and s.kind in ("serial", "parallel"):
            conditions = _conditions(s, above)
            hot = [c for c in conditions if c.is_hot]
            if hot and depth > 0:
                return self._apart(s, above, depth, conditions, hot)
            s = _cut_short(s, above, conditions)
        return map_stmt(s, lambda x: self._stmt(x, (*above, s), depth), lambda e: e)

    def _apart(
        self,
        loop: For,
        above: Path,
        depth: int,
        conditions: Sequence[Condition],
        hot: Sequence[Condition],
    ) -> Stmt:
        known = known_at((*above, loop))
        first = loop.begin
        last = known.simplify(Binary("add", first, loop.extent))
        whole = _least([c.whole for c in hot], known)
        dropped = [c for c in conditions if known.prove(Compare("ge", c.whole, whole))]
        body = _without(loop.body, dropped)
        names = {b.name for b in all_blocks(loop.body)}
        bound = {loop.var}
        renewed(loop.body, set(), bound)
        rest = renewed(loop.body, names, bound)
        inner = self._stmt(body, (*above, loop), depth)
        if loop.kind == "parallel":
            if isinstance(whole, Imm) and known.prove(Compare("ge", whole, last - 1)):
                rest = substitute_stmt(rest, {loop.var: whole})
            rest = self._stmt(rest, (*above, loop), depth - 1)
            inside = Compare("lt", loop.var, whole)
            return replace(loop, body=IfThen(inside, inner, rest))
        known = known_at(above)
        cut = _clamped(whole, first, last, known)
        if _in_all(hot, loop):
            last = lesser(last, _greatest([c.some for c in hot], known), known)
        main = replace(loop, extent=known.simplify(Binary("sub", cut, first)), body=inner)
        var = replace(loop.var)
        left = known.simplify(Binary("sub", last, cut))
        rest = substitute_stmt(rest, {loop.var: var})
        tail = replace(loop, var=var, begin=cut, extent=left, body=rest)
        tail = replace(tail, body=self._stmt(tail.body, (*above, tail), depth - 1))
        return sequence(main, tail)


@dataclass(frozen=True, slots=True)
class Condition:
    """A part ``e < limit`` of a block's predicate, where `e` grows with a loop's variable.

    Attributes:
        block: The block.
        part: The part.
        whole: The first value of the variable at which it does not hold all through an iteration.
        some: The first at which it holds nowhere.
        is_hot: Whether it is met in loops that are written out.
    """

    block: Block
    part: PrimExpr
    whole: PrimExpr
    some: PrimExpr
    is_hot: bool


def _conditions(loop: For, above: Path) -> list[Condition]:
    """What predicates below a loop say of it; nothing where a block there has an init."""
    found: list[Condition] = []
    if loose_statement(loop.body) is not None:
        return found
    for site in sites(loop.body, (*above, loop)):
        if site.block.init is not None:
            return []
        for part in () if site.block.predicate is None else conjuncts(site.block.predicate):
            condition = _condition(loop, site.block, site.loops, part, site.known)
            if condition is not None:
                found.append(condition)
    return found


def _condition(
    loop: For, block: Block, inner: Sequence[For], part: PrimExpr, known: Analyzer
) -> Condition | None:
    if not isinstance(part, Compare) or part.op != "lt":
        return None
    if any(isinstance(e, Load) for e in walk_prim(part)):
        return None  # the loop may write what is compared with
    gone = {x.var for x in inner}
    poly, by = split_linear(from_expr(known.simplify(part.a)), loop.var)
    step = None if by is None else as_constant(by)
    rest = to_expr(poly)
    if step is None or step <= 0 or variables(part.b) & {loop.var, *gone}:
        return None
    moving = [x for x in inner if x.var in variables(rest)]
    if any(variables(x.begin) | variables(x.extent) for x in moving):
        return None
    ends = extremes(rest, {x.var: Range(x.begin, x.extent) for x in moving}, known)
    if ends is None or loop.var in variables(rest):
        return None

    def first(at: PrimExpr) -> PrimExpr:
        room = Binary("add", Binary("sub", part.b, at), imm(step - 1))
        return known.simplify(Binary("floordiv", room, imm(step)))

    hot = bool(moving) and all(x.kind in TILE for x in moving)
    return Condition(block, part, first(ends[1]), first(ends[0]), hot)


def _cut_short(loop: For, above: Path, conditions: Sequence[Condition]) -> For:
    """The loop without its last iterations, where none of its blocks runs."""
    if loop.kind != "serial":
        return loop
    known = known_at(above)
    last = Binary("add", loop.begin, loop.extent)
    for condition in conditions:
        same = [c for c in conditions if known.equal(c.some, condition.some)]
        if not _in_all(same, loop) or known.prove(Compare("ge", condition.some, last)):
            continue
        left = lesser(last, condition.some, known)
        extent = known.simplify(Binary("max", Binary("sub", left, loop.begin), imm(0)))
        surely = [c for c in same if known.equal(c.whole, c.some)]
        return replace(loop, extent=extent, body=_without(loop.body, surely))
    return loop


def _in_all(conditions: Sequence[Condition], loop: For) -> bool:
    """Whether every block below a loop has one of the conditions."""
    return all(any(c.block is b for c in conditions) for b in all_blocks(loop.body))


def _without(s: Stmt, conditions: Sequence[Condition]) -> Stmt:
    """The statement with parts of predicates taken away, as they hold."""
    if isinstance(s, Block):
        gone = [c.part for c in conditions if c.block is s]
        if s.predicate is None or not gone:
            return s
        kept = [p for p in conjuncts(s.predicate) if not any(p is x for x in gone)]
        return replace(s, predicate=conjunction(kept))
    return map_stmt(s, lambda x: _without(x, conditions), lambda e: e)


def _clamped(e: PrimExpr, low: PrimExpr, high: PrimExpr, known: Analyzer) -> PrimExpr:
    least = lesser(e, high, known)
    if known.prove(Compare("ge", least, low)):
        return least
    return known.simplify(Binary("max", least, low))


def _least(values: Sequence[PrimExpr], known: Analyzer) -> PrimExpr:
    found = values[0]
    for value in values[1:]:
        found = lesser(found, value, known)
    return found


def _greatest(values: Sequence[PrimExpr], known: Analyzer) -> PrimExpr:
    found = values[0]
    for value in values[1:]:
        found = greater(found, value, known)
    return found
