"""Loops that stand one behind another: whether one may do what all of them do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from unity.arith import Analyzer
from unity.arith.region import end
from unity.ir.prim_expr import Binary, Compare, Load, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Region, Seq, Stmt
from unity.ir.visit import substitute_prim, substitute_stmt, walk_prim

from ....blocks.dataflow import loaded, stored
from ....blocks.dependence import loose_statement
from ....blocks.legality import INTRINSIC, calls_foreign
from ....blocks.motion import may_skip
from ....blocks.site import Site, sites
from ....blocks.tree import (
    NOTHING,
    Path,
    Values,
    all_blocks,
    illegal,
    known_above,
    loop_path,
    replaced,
    scope_path,
    sequence,
)
from ....blocks.trust import is_trusted


@dataclass(frozen=True, slots=True)
class Siblings:
    """Loops of one extent in one sequence.

    Attributes:
        func: The prim func, temporaries around some of the loops allocated around all of them.
        paths: The ways to the loops.
        loops: The loops, in order.
        before: What stands between them that a later one needs.
    """

    func: PrimFunc
    paths: tuple[Path, ...]
    loops: tuple[For, ...]
    before: tuple[Stmt, ...]

    def fused(self) -> PrimFunc:
        """The prim func with one loop in the place of the first one, which does what all do."""
        first, *others = self.loops
        bodies = [substitute_stmt(x.body, {x.var: first.var}) for x in others]
        whole = replace(first, body=sequence([first.body, *bodies]))
        return self.with_(sequence([*self.before, whole]))

    def with_(self, instead: Stmt) -> PrimFunc:
        """The prim func with something in the place of the first one, the others gone."""
        changes: list[tuple[Stmt, Stmt]] = [(self.loops[0], instead)]
        changes += [(x, NOTHING) for x in (*self.before, *self.loops[1:])]
        return replaced(self.func, changes)


def siblings_at(where: str, func: PrimFunc, loops: Sequence[PrimVar]) -> Siblings:
    """Loops that may be one: what a later one takes in an iteration is there by then.

    Args:
        where: The argument that names them.
        func: The prim func.
        loops: Their variables, in the order in which they stand.

    Raises:
        UnityError: They are no such loops; iterations of one need several of another; what stands
            between needs an earlier one, and a later one that.
    """
    func, paths, found, before = _siblings(where, func, loops)
    first, path = found[0], paths[0]
    known = known_above(path)
    inside = {b for x in found for b in stored(x.body)}
    for loop, each in zip(found, paths, strict=True):
        if loop.kind != "serial":
            raise illegal(where, f"{loop.var.name!r} is {loop.kind} already")
        if not known.equal(loop.begin, first.begin) or not known.equal(loop.extent, first.extent):
            raise illegal(
                where, f"{loop.var.name!r} does not run over what {first.var.name!r} does"
            )
        bounds = [x for e in (loop.begin, loop.extent) for x in walk_prim(e)]
        if any(isinstance(x, Load) and x.buffer in inside for x in bounds):
            raise illegal(where, f"the bounds of {loop.var.name!r} load what they store to")
        loose = loose_statement(loop.body)
        if loose is not None:
            raise illegal(where, f"a {type(loose).__name__} stands outside any block")
        why = may_skip(scope_path(each))
        if why is not None:
            raise illegal(where, why)
    if not is_trusted() and not known.prove(Compare("le", first.extent, imm(1))):
        bodies = [substitute_stmt(x.body, {x.var: first.var}) for x in found[1:]]
        parts = [replace(first, body=b) for b in (first.body, *bodies)]
        groups = [sites(part.body, (*path[:-1], part)) for part in parts]
        for earlier, later in combinations(groups, 2):
            for a in earlier:
                for b in later:
                    _refuse_conflict(where, a, b, first)
    return Siblings(func, tuple(paths), tuple(found), tuple(before))


def _siblings(
    where: str, func: PrimFunc, loops: Sequence[PrimVar]
) -> tuple[PrimFunc, list[Path], list[For], list[Stmt]]:
    """The prim func with loops in one sequence, the ways to them, these, and what comes first."""
    if len(loops) < 2 or len(set(loops)) < len(loops):
        raise illegal(where, "there must be two at least, each given once")
    func = _in_one_sequence(func, loops)
    paths, found = zip(*(loop_path(func, var) for var in loops), strict=True)
    parent = paths[0][-2] if len(paths[0]) > 1 else None
    if isinstance(parent, Seq):
        places = [next((k for k, s in enumerate(parent.stmts) if s is x), -1) for x in found]
        if places[0] >= 0 and places == sorted(places):
            before = _needed_first(where, parent.stmts[places[0] : places[-1]], found)
            return func, list(paths), list(found), before
    raise illegal(where, "they do not stand one behind another")


def _in_one_sequence(func: PrimFunc, loops: Sequence[PrimVar]) -> PrimFunc:
    """The prim func, temporaries around some of the loops allocated around all of them."""
    paths = [loop_path(func, var)[0] for var in loops]
    depth = next(
        (k for k, s in enumerate(paths[0]) if any(k >= len(p) or p[k] is not s for p in paths[1:])),
        0,  # one is around the others
    )
    parent = paths[0][depth - 1] if depth else None
    if not isinstance(parent, Seq):
        return func
    hoisted: list[Buffer] = []

    def flat(s: Stmt) -> list[Stmt]:
        if not any(s is x for p in paths for x in p[:-1]):
            return [s]
        match s:
            case Allocate():
                hoisted.append(s.buffer)
                return flat(s.body)
            case Seq():
                return [x for each in s.stmts for x in flat(each)]
            case _:
                return [s]

    whole: Stmt = Seq(tuple(x for each in parent.stmts for x in flat(each)))
    for buffer in reversed(hoisted):
        whole = Allocate(buffer, whole)
    return replaced(func, [(parent, whole)]) if hoisted else func


def _needed_first(where: str, stmts: Sequence[Stmt], loops: Sequence[For]) -> list[Stmt]:
    """What stands between loops that a later one needs; refuses what needs an earlier one, too."""
    first: list[Stmt] = []
    for k, s in enumerate(stmts):
        if any(s is x for x in loops):
            continue
        behind = [x for x in loops if not any(x is y for y in stmts[:k])]
        needed = [(x, shared) for x in behind if (shared := _shared(s, x))]
        for block in (b for x in (s, *behind) for b in all_blocks(x)):
            _refuse_foreign(where, block)
        earlier = [x for x in stmts[:k] if not any(x is y for y in first)]
        if not needed:
            continue
        loop, shared = needed[0]
        if any(_shared(s, x) for x in earlier):
            names = ", ".join(sorted(b.name for b in shared))
            raise illegal(where, f"what stands before {loop.var.name!r} and it both touch {names}")
        first.append(s)
    return first


def _shared(one: Stmt, other: Stmt) -> set[Buffer]:
    """What both of two statements touch that one of them stores to."""
    here, there = stored(one) | loaded(one), stored(other) | loaded(other)
    return (stored(one) & there) | (stored(other) & here)


def _refuse_conflict(where: str, a: Site, b: Site, loop: For) -> None:
    """Refuse where a later stage's block may touch what an earlier one does in iterations to come.

    Args:
        where: The argument that names the loops.
        a: The block of the earlier loop, over the variable of the fused one.
        b: The block of the later loop, likewise.
        loop: The fused loop.
    """
    for site in (a, b):
        _refuse_foreign(where, site.block)
    further = PrimVar("further")
    known = b.known.with_extent(further, imm(0), loop.extent)
    to_come: Values = {loop.var: Binary("add", Binary("add", loop.var, imm(1)), further)}
    for buffer, one, other in _pairs(a, b):
        moved = [
            Range(substitute_prim(r.begin, to_come), substitute_prim(r.extent, to_come))
            for r in one
        ]
        if not _apart(moved, other, known):
            raise illegal(
                where,
                f"block {b.block.name!r} may touch of {buffer.name!r} what block "
                f"{a.block.name!r} touches in later iterations",
            )


def _refuse_foreign(where: str, block: Block) -> None:
    why = None if INTRINSIC in block.attrs else calls_foreign(block)
    if why is not None:
        raise illegal(where, why)


def _pairs(a: Site, b: Site) -> Iterator[tuple[Buffer, Sequence[Range], Sequence[Range]]]:
    """What both touch of a buffer that one of them stores to."""
    for one, writes in _regions(a):
        for other, also in _regions(b):
            if one.buffer is other.buffer and (writes or also):
                yield one.buffer, a.reached(one), b.reached(other)


def _regions(site: Site) -> Iterator[tuple[Region, bool]]:
    """What a block touches, and whether it stores there; what decides about it, whole."""
    yield from ((r, False) for r in site.block.reads)
    yield from ((r, True) for r in site.block.writes)
    for buffer in site.decides_by():
        yield Region(buffer, tuple(Range(imm(0), n) for n in buffer.shape)), False


def _apart(one: Sequence[Range], other: Sequence[Range], known: Analyzer) -> bool:
    """Whether boxes share nothing: along some axis one ends before the other begins."""
    return any(
        known.prove(Compare("le", end(p), q.begin)) or known.prove(Compare("le", end(q), p.begin))
        for p, q in zip(one, other, strict=True)
    )
