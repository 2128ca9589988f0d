"""A block and what stands between it and a loop: what it touches and fills while the loops run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import prod

from unity.arith import Analyzer
from unity.arith.iter_map import IterMap, detect
from unity.arith.region import covers, end, intersection, lesser, relaxed
from unity.ir.empty_reduction import conjuncts, init_of_empty
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, Buffer, For, IfThen, PrimWhile, Range, Region, Stmt, Store
from unity.ir.visit import (
    prim_loads,
    stmt_children,
    stmt_loads,
    substitute_prim,
    variables,
    walk_stmt,
)

from .extents import number
from .limits import limited
from .tree import Path, Values, bound_to, conjunction, is_zero, known_above, loops_of


@dataclass(frozen=True, slots=True)
class Site:
    """A block and what stands between some statement above and it.

    Attributes:
        block: The block.
        above: The statements from that one down to the block, without it.
        loops: Those of them that are loops.
        known: What is known of variables at the block.
        outside: What is known of variables around the first of the loops, where none need run.
    """

    block: Block
    above: Path
    loops: tuple[For, ...]
    known: Analyzer
    outside: Analyzer = Analyzer()  # noqa: RUF009

    @property
    def is_certain(self) -> bool:
        """Whether nothing but loops and the block's predicate decides that it runs."""
        return not any(isinstance(s, IfThen | PrimWhile) for s in self.above)

    def decides_by(self) -> set[Buffer]:
        """The buffers that bounds of the loops, the predicate and the axes' values load."""
        block = self.block
        exprs = [e for x in self.loops for e in (x.begin, x.extent)]
        exprs += [e for a in block.axes for e in (a.value, a.domain.begin, a.domain.extent)]
        exprs += [] if block.predicate is None else [block.predicate]
        return {x.buffer for e in exprs for x in prim_loads(e)}

    def names(self, buffer: Buffer, *, writes_only: bool = False) -> bool:
        """Whether the block touches a buffer."""
        regions = self.block.writes if writes_only else (*self.block.reads, *self.block.writes)
        found = any(r.buffer is buffer for r in regions)
        return found or (not writes_only and buffer in self.decides_by())

    def touched(
        self, buffer: Buffer, *, writes_only: bool = False, closely: bool = False
    ) -> tuple[Range, ...] | None:
        """A rectangle that holds what the block touches of a buffer while the loops run.

        Args:
            buffer: The buffer.
            writes_only: Whether to leave out what is read.
            closely: Whether to leave out what the predicate does, though how much that is depends
                on loops around.
        """
        found: tuple[Range, ...] | None = None
        if not writes_only and buffer in self.decides_by():
            return tuple(Range(imm(0), n) for n in buffer.shape)
        regions = self.block.writes if writes_only else (*self.block.reads, *self.block.writes)
        for region in regions:
            if region.buffer is not buffer:
                continue
            ranges = self._limited(self.reached(region), region, closely=closely)
            whole = [Range(imm(0), n) for n in buffer.shape]
            ranges = tuple(
                r if self._is_point(r, own, w) else intersection(r, w, self.known)
                for r, own, w in zip(ranges, region.ranges, whole, strict=True)
            )
            if found is not None and found != ranges:
                return tuple(whole)
            found = ranges
        return found

    def _is_point(self, found: Range, own: Range, whole: Range) -> bool:
        """Whether a range is one value of an axis of the block that has all of a dimension.

        Of an axis that the predicate keeps in its domain it may be none: what is made for the block
        has to be kept there as well.
        """
        if found.extent != imm(1) or own.extent != imm(1):
            return False
        kept = set() if self.block.predicate is None else variables(self.block.predicate)
        axes = [a for a in self.block.axes if a.var is own.begin]
        return any(a.domain == whole and kept.isdisjoint(variables(a.value)) for a in axes)

    def places(self, buffer: Buffer) -> list[tuple[PrimExpr | None, ...]]:
        """For each region of a buffer the indices that no loop moves; None for the others."""
        moving = {x.var for x in self.loops}
        regions = (r for r in (*self.block.reads, *self.block.writes) if r.buffer is buffer)
        found: list[tuple[PrimExpr | None, ...]] = []
        for region in regions:
            outside = [self._outside(r) for r in region.ranges]
            found.append(
                tuple(
                    r.begin if r.extent == imm(1) and not variables(r.begin) & moving else None
                    for r in outside
                )
            )
        return found

    def reached(self, region: Region) -> tuple[Range, ...]:
        """A rectangle that holds a region of the block while the loops run, past the end too."""
        ranges = tuple(self._outside(r) for r in region.ranges)
        for loops in self._levels():
            over = {x.var: Range(x.begin, x.extent) for x in loops}
            ranges = relaxed(ranges, region.buffer.shape, over, self.known)
        return ranges

    def _limited(
        self, ranges: tuple[Range, ...], region: Region, *, closely: bool
    ) -> tuple[Range, ...]:
        """What is left of a rectangle where the block's predicate leaves so many of an index."""
        if self.block.predicate is None:
            return ranges
        parts = [p for p in conjuncts(self.block.predicate) if isinstance(p, Compare)]
        found = list(ranges)
        for k, r in enumerate(region.ranges):
            index = bound_to(r.begin, self.block.axes)
            moving = variables(index) & {x.var for x in self.loops}
            for part in parts if r.extent == imm(1) and moving else ():
                if part.op == "lt" and moving & variables(part.a):
                    left = self._below(found[k], index, part)
                    found[k] = left if closely or isinstance(left.extent, Imm) else found[k]
        return tuple(found)

    def _below(self, r: Range, index: PrimExpr, part: Compare) -> Range:
        """A range that an index takes, without what a part of a predicate leaves out."""
        beyond = self._beyond(index, part)
        if beyond is None:
            return r
        last = lesser(end(r), self.known.simplify(Binary("add", part.b, beyond)), self.known)
        return Range(r.begin, self.known.simplify(Binary("sub", last, r.begin)))

    def _levels(self) -> Sequence[Sequence[For]]:
        """The loops, innermost first; all together where no bound depends on another loop."""
        inside = {x.var for x in self.loops}
        if any((variables(x.begin) | variables(x.extent)) & inside for x in self.loops):
            return [[x] for x in reversed(self.loops)]
        return [self.loops] if self.loops else []

    def _outside(self, r: Range) -> Range:
        return Range(bound_to(r.begin, self.block.axes), bound_to(r.extent, self.block.axes))

    def asked(self) -> AbstractSet[PrimExpr]:
        """The parts of the block's predicate, as `settled` has them."""
        predicate = self.block.predicate
        return frozenset[PrimExpr]() if predicate is None else self.settled(conjuncts(predicate))

    def settled(self, parts: Iterable[PrimExpr]) -> AbstractSet[PrimExpr]:
        """Parts of a predicate, each the same wherever it says the same of loops around."""
        one: Values = {x.var: x.begin for x in self.loops if x.extent == imm(1)}
        return {self.known.simplify(substitute_prim(p, one)) for p in parts}

    def fills(
        self, buffer: Buffer, given: AbstractSet[PrimExpr] = frozenset()
    ) -> tuple[Range, ...] | None:
        """The rectangle that the block provably writes all of while the loops run.

        A loop that moves nothing about it must run, unless the block only changes what is there,
        or its init is written where there is nothing to reduce.

        Args:
            buffer: What it writes.
            given: What holds where it is asked for, as `asked` has it.
        """
        region = next((r for r in self.block.writes if r.buffer is buffer), None)
        if region is None or not self.is_certain or not stores_always(self.block.body):
            return None
        changes = self.block.init is None and self._loads(buffer)
        if any(r.extent != imm(1) for r in region.ranges):
            return self._own_box(buffer, changes)
        site = self if not given & self.asked() else self._given(given)
        return site._box([bound_to(r.begin, self.block.axes) for r in region.ranges], (), changes)

    def _loads(self, buffer: Buffer) -> bool:
        """Whether what the block does starts from what a buffer holds."""
        stmts = walk_stmt(self.block.body)
        return any(x.buffer is buffer for s in stmts for x in stmt_loads(s))

    def _given(self, given: AbstractSet[PrimExpr]) -> Site:
        """The site where parts of the block's predicate hold."""
        assert self.block.predicate is not None
        left = [p for p in conjuncts(self.block.predicate) if not self.settled([p]) <= given]
        return replace(self, block=replace(self.block, predicate=conjunction(left)))

    def _own_box(self, buffer: Buffer, changes: bool) -> tuple[Range, ...] | None:
        """The same of a block that is loops around one store."""
        own: list[For] = []
        known, body = self.known, self.block.body
        while isinstance(body, For):
            own.append(body)
            known = known.with_extent(body.var, body.begin, body.extent)
            body = body.body
        if not own or not isinstance(body, Store) or body.buffer is not buffer:
            return None
        inside = replace(self, loops=(*self.loops, *own), known=known)
        return inside._box([bound_to(i, self.block.axes) for i in body.indices], own, changes)

    def covers_domain(self) -> bool:
        """Whether the loops provably take the block to every point of its axes' domains.

        An axis without points is covered; a reduction over it leaves the init at all others.
        """
        axes = [a for a in self.block.axes if number(a.domain.extent) != 0]
        box = self._box([a.value for a in axes]) if self.is_certain else None
        return box is not None and covers(box, [a.domain for a in axes], self.known)

    def _box(
        self, indices: Sequence[PrimExpr], own: Sequence[For] = (), changes: bool = False
    ) -> tuple[Range, ...] | None:
        """The box that indices take every point of while loops run, some the block's own."""
        used = {v for i in indices for v in variables(i)}
        if not changes and not self._run_without(used):
            return None
        loops = [x for x in self.loops if x.var in used]
        under = limited(indices, loops, self.block.predicate, self.known)
        m = iteration_map(under.values, under.loops, under.known)
        if m is None or not m.is_bijective():
            return None
        box: list[Range] = []
        for s in m.sums:
            extent = m.compact_extent(s)
            assert extent is not None
            box.append(Range(s.base, extent))
        return self._clipped(tuple(box), indices, own, under.left)

    def _run_without(self, moved: AbstractSet[PrimVar]) -> bool:
        """Whether loops of other variables run where those around them do, or leave the init."""
        known = self.outside
        for loop in (x for x in self.loops if number(x.extent) != 1):
            runs = loop.var in moved or known.prove(Compare("ge", loop.extent, imm(1)))
            if not runs and init_of_empty(loop) is None:
                return False
            known = known.with_extent(loop.var, loop.begin, loop.extent)
        return True

    def _clipped(
        self,
        box: tuple[Range, ...],
        indices: Sequence[PrimExpr],
        own: Sequence[For],
        parts: Sequence[PrimExpr],
    ) -> tuple[Range, ...] | None:
        """What is left of a box under parts of a predicate: upper limits of indices only.

        Conditions on other loops, those that reduce, must hold where these begin.
        """
        result = list(box)
        first: Values = {x.var: x.begin for x in own}
        begins = [substitute_prim(i, first) for i in indices]
        for part in parts:
            if not isinstance(part, Compare) or part.op != "lt":
                return None
            cut = [k for k, i in enumerate(begins) if self._is_limited(i, part, own)]
            moving = [k for k in cut if variables(begins[k]) & variables(part.a)]
            place = next(iter((*moving, *cut)), None)  # rather not one that stands still
            if place is None:
                if not self._holds_first(part, indices):
                    return None
                continue
            if not self._in_steps(indices[place], part, own):
                return None
            result[place] = self._below(result[place], begins[place], part)
        return tuple(result)

    def _is_limited(self, index: PrimExpr, part: Compare, own: Sequence[For]) -> bool:
        """Whether a comparison limits an index; of a block with own loops, just this one."""
        return self.known.equal(index, part.a) if own else self._beyond(index, part) is not None

    def _in_steps(self, index: PrimExpr, part: Compare, own: Sequence[For]) -> bool:
        """Whether a condition on where the block's own loops begin holds for all that they do."""
        moving = [x for x in own if x.var in variables(index)]
        span = prod(number(x.extent) or 0 for x in moving)
        room = Binary("sub", part.b, part.a)
        return span == 1 or self.known.equal(Binary("floormod", room, imm(span)), imm(0))

    def _beyond(self, index: PrimExpr, part: Compare) -> PrimExpr | None:
        """By how much an index is greater than what is limited, the same while the loops run."""
        beyond = self.known.simplify(Binary("sub", index, part.a))
        return None if variables(beyond) & {x.var for x in self.loops} else beyond

    def _holds_first(self, part: Compare, indices: Sequence[PrimExpr]) -> bool:
        """Whether a condition that has nothing to do with indices holds where loops begin."""
        asked = variables(part)
        if asked & {v for i in indices for v in variables(i)}:
            return False
        first: Values = {x.var: x.begin for x in self.loops}
        known = self.known
        for loop in (x for x in self.loops if x.var in asked):
            if number(loop.extent) == 0:
                return True
            known = known.where_runs(loop.extent)
        return known.prove(substitute_prim(part, first))


def stores_always(s: Stmt) -> bool:
    """Whether nothing in a block decides whether it stores."""
    return not any(
        isinstance(x, IfThen | PrimWhile | Block) or (isinstance(x, Store) and x.predicate)
        for x in walk_stmt(s)
    )


def iteration_map(
    values: Sequence[PrimExpr],
    loops: Sequence[For],
    known: Analyzer,
    predicate: PrimExpr | None = None,
) -> IterMap | None:
    """Values over loops as an iteration map, the loops counting from 0, under a predicate."""
    under = limited(values, loops, predicate, known)
    values, loops, known = under.values, under.loops, under.known
    inside = {x.var for x in loops}
    if any(variables(x.extent) & inside or variables(x.begin) & inside for x in loops):
        return None
    shift: Values = {x.var: Binary("add", x.var, x.begin) for x in loops if not is_zero(x.begin)}
    moved = [substitute_prim(v, shift) for v in values]
    return detect(moved, {x.var: x.extent for x in loops}, known)


def sites(
    top: Stmt, path: Path, wanted: Callable[[Block], bool] = lambda block: True
) -> list[Site]:
    """The wanted blocks of the scope below a statement at the end of a path, in order."""
    return list(_sites(top, path, (), wanted))


def _sites(s: Stmt, path: Path, above: Path, wanted: Callable[[Block], bool]) -> Iterator[Site]:
    if not isinstance(s, Block):
        for child in stmt_children(s):
            yield from _sites(child, path, (*above, s), wanted)
    elif wanted(s):
        outside = known_above((*path, (*above, s)[0]))
        yield Site(s, above, loops_of(above), known_above((*path, *above, s)), outside)
