"""What blocks under a loop need of one another: may its iterations run in any order, or at once?

A block's spatial axes are independent by its signature, so what is left to ask is whether the loops
reach each point once, and whether a block takes what another makes from its own iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.iter_map import IterMap, detect
from unity.arith.region import covers, end, intersection, lesser, relaxed
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, imm
from unity.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    For,
    IfThen,
    PrimWhile,
    Range,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import stmt_children, substitute_prim, walk_stmt

from .tree import Path, Values, bound_to, driven, is_zero, known_at, loops_of, path_to, variables


@dataclass(frozen=True, slots=True)
class Site:
    """A block and the loops between some statement above and it."""

    block: Block
    loops: tuple[For, ...]
    known: Analyzer

    def names(self, buffer: Buffer, *, writes_only: bool = False) -> bool:
        """Whether the block touches a buffer."""
        regions = self.block.writes if writes_only else (*self.block.reads, *self.block.writes)
        return any(r.buffer is buffer for r in regions)

    def touched(self, buffer: Buffer, *, writes_only: bool = False) -> tuple[Range, ...] | None:
        """A rectangle that holds what the block touches of a buffer while the loops run."""
        found: tuple[Range, ...] | None = None
        regions = self.block.writes if writes_only else (*self.block.reads, *self.block.writes)
        for region in regions:
            if region.buffer is not buffer:
                continue
            ranges = tuple(self._outside(r) for r in region.ranges)
            for loops in self._levels():
                over = {x.var: Range(x.begin, x.extent) for x in loops}
                ranges = relaxed(ranges, buffer.shape, over, self.known)
            whole = [Range(imm(0), n) for n in buffer.shape]
            ranges = tuple(
                intersection(r, w, self.known) for r, w in zip(ranges, whole, strict=True)
            )
            if found is not None and found != ranges:
                return tuple(whole)
            found = ranges
        return found

    def _levels(self) -> Sequence[Sequence[For]]:
        """The loops, innermost first; all together where no bound depends on another loop."""
        inside = {x.var for x in self.loops}
        if any((variables(x.begin) | variables(x.extent)) & inside for x in self.loops):
            return [[x] for x in reversed(self.loops)]
        return [self.loops] if self.loops else []

    def _outside(self, r: Range) -> Range:
        return Range(bound_to(r.begin, self.block.axes), bound_to(r.extent, self.block.axes))

    def fills(self, buffer: Buffer) -> tuple[Range, ...] | None:
        """The rectangle that the block provably writes all of while the loops run."""
        region = next((r for r in self.block.writes if r.buffer is buffer), None)
        if region is None or not _stores_always(self.block.body):
            return None
        if any(r.extent != imm(1) for r in region.ranges):
            return None
        return self._box([bound_to(r.begin, self.block.axes) for r in region.ranges])

    def covers_domain(self) -> bool:
        """Whether the loops provably take the block to every point of its axes' domains."""
        box = self._box([a.value for a in self.block.axes])
        return box is not None and covers(box, [a.domain for a in self.block.axes], self.known)

    def _box(self, indices: Sequence[PrimExpr]) -> tuple[Range, ...] | None:
        """The box that indices take every point of while the loops run."""
        used = {v for i in indices for v in variables(i)}
        m = iteration_map(indices, [x for x in self.loops if x.var in used], self.known)
        if m is None or not m.is_bijective():
            return None
        box: list[Range] = []
        for s in m.sums:
            extent = m.compact_extent(s)
            assert extent is not None
            box.append(Range(s.base, extent))
        return self._clipped(tuple(box), indices)

    def _clipped(
        self, box: tuple[Range, ...], indices: Sequence[PrimExpr]
    ) -> tuple[Range, ...] | None:
        """What is left of a box under the block's predicate: upper limits of indices only.

        Conditions on other loops, those that reduce, must hold where these begin.
        """
        result = list(box)
        for part in () if self.block.predicate is None else conjuncts(self.block.predicate):
            if not isinstance(part, Compare) or part.op != "lt":
                return None
            place = next((k for k, i in enumerate(indices) if self.known.equal(i, part.a)), None)
            if place is None:
                if not self._holds_first(part, indices):
                    return None
                continue
            r = result[place]
            last = lesser(end(r), part.b, self.known)
            extent = self.known.simplify(Binary("sub", last, r.begin))
            result[place] = Range(r.begin, extent)
        return tuple(result)

    def _holds_first(self, part: Compare, indices: Sequence[PrimExpr]) -> bool:
        """Whether a condition that has nothing to do with indices holds where loops begin."""
        used = {v for i in indices for v in variables(i)}
        if variables(part) & used:
            return False
        first: Values = {x.var: x.begin for x in self.loops}
        return self.known.prove(substitute_prim(part, first))


def _stores_always(s: Stmt) -> bool:
    return not any(
        isinstance(x, IfThen | PrimWhile | Block) or (isinstance(x, Store) and x.predicate)
        for x in walk_stmt(s)
    )


def iteration_map(
    values: Sequence[PrimExpr], loops: Sequence[For], known: Analyzer
) -> IterMap | None:
    """Values over loops as an iteration map, the loops counting from 0."""
    inside = {x.var for x in loops}
    if any(variables(x.extent) & inside or variables(x.begin) & inside for x in loops):
        return None
    shift: Values = {x.var: Binary("add", x.var, x.begin) for x in loops if not is_zero(x.begin)}
    moved = [substitute_prim(v, shift) for v in values]
    return detect(moved, {x.var: x.extent for x in loops}, known)


def sites(top: Stmt, path: Path) -> list[Site]:
    """The blocks of the scope below a statement at the end of a path, in order."""
    found: list[Site] = []

    def go(s: Stmt, above: tuple[Stmt, ...]) -> None:
        if isinstance(s, Block):
            known = known_at((*path, *above))
            found.append(Site(s, loops_of(above), known))
            return
        for child in stmt_children(s):
            go(child, (*above, s))

    go(top, ())
    return found


def loose_statement(s: Stmt) -> Stmt | None:
    """A statement below that acts outside any block; None if all is in blocks."""
    match s:
        case Block():
            return None
        case For() | Allocate() | Seq():
            return next((x for c in stmt_children(s) if (x := loose_statement(c))), None)
        case _:
            return s


def shares_iterations(body: Stmt, path: Path) -> str | None:
    """Why blocks below a loop need several of its iterations in order; None if they don't."""
    private = {s.buffer for s in walk_stmt(body) if isinstance(s, Allocate)}
    found = sites(body, path)
    if len(found) == 1:
        return None
    for k, later in enumerate(found):
        written = {r.buffer for r in later.block.writes} - private
        for buffer in {r.buffer for r in (*later.block.reads, *later.block.writes)} - private:
            before = [s for s in found[:k] if s.names(buffer)]
            makers = [s for s in before if s.names(buffer, writes_only=True)]
            if not makers and not any(s.names(buffer, writes_only=True) for s in found[k:]):
                continue
            need = later.touched(buffer)
            assert need is not None
            boxes = [m.fills(buffer) for m in makers]
            if any(box is not None and covers(box, need, later.known) for box in boxes):
                continue
            if makers or (before and buffer in written):
                other = (makers or before)[0].block.name
                return (
                    f"block {later.block.name!r} touches of {buffer.name!r} what block "
                    f"{other!r} touches in other iterations"
                )
            after = [s for s in found[k + 1 :] if s.names(buffer, writes_only=True)]
            if buffer not in {r.buffer for r in later.block.reads}:  # it may only set it anew
                box = later.fills(buffer)
                after = [s for s in after if box is None or not _within(s, buffer, box)]
            if after:
                return (
                    f"block {later.block.name!r} reads {buffer.name!r}, which block "
                    f"{after[0].block.name!r} writes later"
                )
    return None


def _within(site: Site, buffer: Buffer, box: Sequence[Range]) -> bool:
    """Whether all that a block touches of a buffer lies in a box."""
    touched = site.touched(buffer)
    return touched is not None and covers(box, touched, site.known)


def may_reorder(loops: Sequence[For], path: Path) -> str | None:
    """Why perfectly nested loops (outermost first, `path` to it) need their order."""
    inner = loops[-1].body
    loose = loose_statement(inner)
    if loose is not None:
        return f"a {type(loose).__name__} stands outside any block"
    for site in sites(loops[0], path[:-1]):
        block = site.block
        kinds = {k for loop in loops for k in driven(block, loop.var)}
        if "O" in kinds:
            return f"it drives an opaque axis of block {block.name!r}"
        if any(axis.kind == "R" for axis in block.axes):
            m = iteration_map([a.value for a in block.axes], site.loops, site.known)
            if m is None or not m.is_injective():
                return f"the loops reach points of the reduction {block.name!r} more than once"
    below = path_to(loops[0], lambda s: s is inner)
    assert below is not None
    return shares_iterations(inner, (*path[:-1], *below[:-1]))


def may_run_at_once(loop: For, path: Path) -> str | None:
    """Why the iterations of a loop may not run at once; None if they may."""
    loose = loose_statement(loop.body)
    if loose is not None:
        return f"a {type(loose).__name__} stands outside any block"
    private = {s.buffer for s in walk_stmt(loop.body) if isinstance(s, Allocate)}
    for site in sites(loop, path[:-1]):
        block = site.block
        if all(r.buffer in private for r in block.writes):
            continue
        kinds = driven(block, loop.var)
        if kinds - {"S"}:
            kind = "an opaque" if "O" in kinds else "a reduce"
            return f"it drives {kind} axis of block {block.name!r}"
        values = [a.value for a in block.axes if a.kind == "S"]
        used = {loop.var} | {v for e in values for v in variables(e)}
        over = [x for x in site.loops if x.var in used]
        m = iteration_map(values, over, site.known)
        if m is None or not m.is_injective():
            return f"different iterations reach one point of block {block.name!r}"
    return shares_iterations(loop.body, path)
