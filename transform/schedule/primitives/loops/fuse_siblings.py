"""fuse_siblings: loops that stand one behind another become one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from unity.arith import Analyzer
from unity.arith.region import end
from unity.ir.prim_expr import Binary, Compare, Load, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Region, Seq, Stmt
from unity.ir.visit import substitute_prim, substitute_stmt, walk_prim

from ....blocks.dataflow import checked, loaded, stored
from ....blocks.dependence import loose_statement
from ....blocks.legality import INTRINSIC, calls_foreign
from ....blocks.motion import may_skip
from ....blocks.site import Site, sites
from ....blocks.tree import (
    NOTHING,
    Outcome,
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

WHERE = "fuse_siblings, argument 1 'loops'"


def fuse_siblings(func: PrimFunc, loops: Sequence[PrimVar]) -> Outcome:
    """One loop over what several did one after another: stages in one pass.

    What a later loop takes in an iteration must be there by then. So no iteration of it may touch
    what an earlier loop stores to in an iteration further on, or the other way round.

    Args:
        func: The prim func.
        loops: Two or more of one extent, in the order in which they stand. What stands between
            them comes behind the one loop, or before it if a later one needs it; temporaries around
            some of them are then around all.

    Returns:
        The loop, which is the first one.

    Raises:
        UnityError: They are no such loops; iterations of one need several of another; what stands
            between needs an earlier one, and a later one that.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     t = T.alloc((4,), "float32")
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 t[vi] = 0.0
    ...             t[vi] += a[vi, vk]
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("share"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj] / t[vi]
    ... ''').prim_funcs()["main"])
    >>> row = sch.fuse_siblings(sch.get_loops("sum")[0], sch.get_loops("share")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        t = T.alloc((4,), "float32")
        for i in range(4):
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        t[vi] = 0.0
                    t[vi] += a[vi, vk]
            for j in range(8):
                with T.block("share"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = a[vi, vj] / t[vi]
    """
    func, paths, found, before = _siblings(func, loops)
    first, path = found[0], paths[0]
    known = known_above(path)
    inside = {b for x in found for b in stored(x.body)}
    for loop, each in zip(found, paths, strict=True):
        if loop.kind != "serial":
            raise illegal(WHERE, f"{loop.var.name!r} is {loop.kind} already")
        if not known.equal(loop.begin, first.begin) or not known.equal(loop.extent, first.extent):
            raise illegal(
                WHERE, f"{loop.var.name!r} does not run over what {first.var.name!r} does"
            )
        bounds = [x for e in (loop.begin, loop.extent) for x in walk_prim(e)]
        if any(isinstance(x, Load) and x.buffer in inside for x in bounds):
            raise illegal(WHERE, f"the bounds of {loop.var.name!r} load what they store to")
        loose = loose_statement(loop.body)
        if loose is not None:
            raise illegal(WHERE, f"a {type(loose).__name__} stands outside any block")
        why = may_skip(scope_path(each))
        if why is not None:
            raise illegal(WHERE, why)
    bodies = [substitute_stmt(x.body, {x.var: first.var}) for x in found[1:]]
    parts = [replace(first, body=b) for b in (first.body, *bodies)]
    groups = [sites(part.body, (*path[:-1], part)) for part in parts]
    once = is_trusted() or known.prove(Compare("le", first.extent, imm(1)))
    for earlier, later in () if once else combinations(groups, 2):
        for a in earlier:
            for b in later:
                _refuse_conflict(a, b, first)
    fused = replace(first, body=sequence([part.body for part in parts]))
    gone = (*before, *found[1:])
    changes: list[tuple[Stmt, Stmt]] = [(first, sequence([*before, fused]))]
    changes += [(x, NOTHING) for x in gone]
    return Outcome(checked(replaced(func, changes), WHERE), (first.var,))


def _siblings(
    func: PrimFunc, loops: Sequence[PrimVar]
) -> tuple[PrimFunc, list[Path], list[For], list[Stmt]]:
    """The prim func with loops in one sequence, the ways to them, these, and what comes first."""
    if len(loops) < 2 or len(set(loops)) < len(loops):
        raise illegal(WHERE, "there must be two at least, each given once")
    func = _in_one_sequence(func, loops)
    paths, found = zip(*(loop_path(func, var) for var in loops), strict=True)
    parent = paths[0][-2] if len(paths[0]) > 1 else None
    if isinstance(parent, Seq):
        places = [next((k for k, s in enumerate(parent.stmts) if s is x), -1) for x in found]
        if places[0] >= 0 and places == sorted(places):
            before = _needed_first(parent.stmts[places[0] : places[-1]], found)
            return func, list(paths), list(found), before
    raise illegal(WHERE, "they do not stand one behind another")


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


def _needed_first(stmts: Sequence[Stmt], loops: Sequence[For]) -> list[Stmt]:
    """What stands between loops that a later one needs; refuses what needs an earlier one, too."""
    first: list[Stmt] = []
    for k, s in enumerate(stmts):
        if any(s is x for x in loops):
            continue
        behind = [x for x in loops if not any(x is y for y in stmts[:k])]
        needed = [(x, shared) for x in behind if (shared := _shared(s, x))]
        for block in (b for x in (s, *behind) for b in all_blocks(x)):
            _refuse_foreign(block)
        earlier = [x for x in stmts[:k] if not any(x is y for y in first)]
        if not needed:
            continue
        loop, shared = needed[0]
        if any(_shared(s, x) for x in earlier):
            names = ", ".join(sorted(b.name for b in shared))
            raise illegal(WHERE, f"what stands before {loop.var.name!r} and it both touch {names}")
        first.append(s)
    return first


def _shared(one: Stmt, other: Stmt) -> set[Buffer]:
    """What both of two statements touch that one of them stores to."""
    here, there = stored(one) | loaded(one), stored(other) | loaded(other)
    return (stored(one) & there) | (stored(other) & here)


def _refuse_conflict(a: Site, b: Site, loop: For) -> None:
    """Refuse where a later stage's block may touch what an earlier one does in iterations to come.

    Args:
        a: The block of the earlier loop, over the variable of the fused one.
        b: The block of the later loop, likewise.
        loop: The fused loop.
    """
    for site in (a, b):
        _refuse_foreign(site.block)
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
                WHERE,
                f"block {b.block.name!r} may touch of {buffer.name!r} what block "
                f"{a.block.name!r} touches in later iterations",
            )


def _refuse_foreign(block: Block) -> None:
    why = None if INTRINSIC in block.attrs else calls_foreign(block)
    if why is not None:
        raise illegal(WHERE, why)


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
