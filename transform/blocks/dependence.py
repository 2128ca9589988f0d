"""What blocks under a loop need of one another: may its iterations run in any order, or at once?

Points of a block's spatial axes are independent if it keeps its word (`legality.py`), so what is
left to ask is whether the loops reach each point once, and whether a block takes what another makes
from its own iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith import Analyzer
from unity.arith.region import covers
from unity.ir.prim_expr import Binary, Compare, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, Range, Seq, Stmt, Store
from unity.ir.visit import stmt_children, substitute_prim, variables, walk_stmt

from .legality import INTRINSIC, breach, commutes, late_init, reaches_once
from .site import Site, iteration_map, sites
from .tree import Path, driven, facts, path_to
from .trust import unless_trusted

_KEPT: dict[tuple[int, ...], Path] = {}
"""Loops whose iterations may run at once, held so that nothing else gets their places."""
_MOST_KEPT = 256


def loose_statement(s: Stmt) -> Stmt | None:
    """A statement below that acts outside any block; None if all is in blocks."""
    match s:
        case Block():
            return None
        case For() | Allocate() | Seq():
            return next((x for c in stmt_children(s) if (x := loose_statement(c))), None)
        case _:
            return s


def shares_iterations(body: Stmt, path: Path, *, apart: bool = False) -> str | None:
    """Why blocks below a loop need several of its iterations in order; None if they don't.

    Args:
        body: What is in the loop.
        path: The way to it.
        apart: Whether iterations are known to reach different points of the blocks. What is read
            and stored to later in the same iteration then is of no concern to others.
    """
    private = {s.buffer for s in walk_stmt(body) if isinstance(s, Allocate)}
    found = sites(body, path)
    if len(found) == 1:
        return None
    for k, later in enumerate(found):
        written = {r.buffer for r in later.block.writes} - private
        for buffer in _touched(later) - private:
            before = [s for s in found[:k] if s.names(buffer)]
            makers = [s for s in before if s.names(buffer, writes_only=True)]
            if not makers and not any(s.names(buffer, writes_only=True) for s in found[k:]):
                continue
            if apart and _in_slices(found, buffer, path):
                continue
            need = later.touched(buffer)
            assert need is not None
            boxes = [m.fills(buffer) for m in makers]
            if any(box is not None and covers(box, need, later.known) for box in boxes):
                continue
            if apart and not makers:
                before = [s for s in before if not _covered(s, later, buffer)]
            if makers or (before and buffer in written):
                other = (makers or before)[0].block.name
                return (
                    f"block {later.block.name!r} touches of {buffer.name!r} what block "
                    f"{other!r} touches in other iterations"
                )
            after = [s for s in found[k + 1 :] if s.names(buffer, writes_only=True)]
            if apart:
                after = [s for s in after if not _covered(later, s, buffer)]
            if buffer not in _touched(later, reads_only=True):  # it may only set it anew
                box = later.fills(buffer)
                after = [s for s in after if box is None or not _within(s, buffer, box)]
            if after:
                return (
                    f"block {later.block.name!r} reads {buffer.name!r}, which block "
                    f"{after[0].block.name!r} writes later"
                )
    return None


def _in_slices(found: Sequence[Site], buffer: Buffer, path: Path) -> bool:
    """Whether each iteration of the loop that a path ends with touches a slice of its own."""
    loop = path[-1]
    if not isinstance(loop, For) or any(buffer in s.decides_by() for s in found):
        return False
    touching = [s for s in found if s.names(buffer)]
    places = [place for site in touching for place in site.places(buffer)]
    known = touching[0].known
    slices = [
        first
        for first, *others in zip(*places, strict=True)
        if first is not None and all(x is not None and known.equal(x, first) for x in others)
    ]
    m = iteration_map(slices, [loop], known)
    if m is not None and m.is_injective():
        return True
    boxes = [
        site.reached(r)
        for site in touching
        for r in (*site.block.reads, *site.block.writes)
        if r.buffer is buffer
    ]
    return any(_move_apart(ranges, loop.var, known) for ranges in zip(*boxes, strict=True))


def _move_apart(ranges: Sequence[Range], var: PrimVar, known: Analyzer) -> bool:
    """Whether ranges that begin at one place move on by all they hold when a loop steps."""
    first, step = ranges[0].begin, Binary("add", var, imm(1))
    moved = Binary("sub", substitute_prim(first, {var: step}), first)
    return all(
        known.equal(r.begin, first) and known.prove(Compare("ge", moved, r.extent)) for r in ranges
    )


def _covered(reader: Site, writer: Site, buffer: Buffer) -> bool:
    """Whether all that a block touches of a buffer is stored to by another one's iteration."""
    box = writer.fills(buffer)
    return box is not None and _within(reader, buffer, box)


def _fixed(site: Site) -> list[PrimVar]:
    """The axes that stay where they are while the loops of a site run."""
    moving = {x.var for x in site.loops}
    return [a.var for a in site.block.axes if not variables(a.value) & moving]


def _touched(site: Site, *, reads_only: bool = False) -> set[Buffer]:
    regions = (*site.block.reads, *(() if reads_only else site.block.writes))
    return {r.buffer for r in regions} | site.decides_by()


def _within(site: Site, buffer: Buffer, box: Sequence[Range]) -> bool:
    """Whether all that a block touches of a buffer lies in a box."""
    touched = site.touched(buffer)
    return touched is not None and covers(box, touched, site.known)


@unless_trusted
def may_reorder(loops: Sequence[For], order: Sequence[For], path: Path) -> str | None:
    """Why perfectly nested loops (outermost first, `path` to it) may not have another order."""
    inner = loops[-1].body
    loose = loose_statement(inner)
    if loose is not None:
        return f"a {type(loose).__name__} stands outside any block"
    found = sites(loops[0], path[:-1])
    for site in found:
        block = site.block
        kinds = {k for loop in loops for k in driven(block, loop.var)}
        if "O" in kinds:
            return f"it drives an opaque axis of block {block.name!r}"
        why = None if INTRINSIC in block.attrs else breach(site)
        if why is not None:
            return why
        if any(axis.kind == "R" for axis in block.axes):
            why = _may_reorder_steps(site, found, loops, order)
            if why is not None:
                return why
    below = path_to(loops[0], lambda s: s is inner)
    assert below is not None
    return shares_iterations(inner, (*path[:-1], *below[:-1]))


def _may_reorder_steps(
    site: Site, others: Sequence[Site], loops: Sequence[For], order: Sequence[For]
) -> str | None:
    """Why a reduction's loops may not have another order."""
    block = site.block
    if not reaches_once(site):
        return f"the loops may reach points of the reduction {block.name!r} more than once"
    before, now = ([x for x in each if "R" in driven(block, x.var)] for each in (loops, order))
    if all(a is b for a, b in zip(before, now, strict=True)):
        return None
    if not commutes(block):
        return f"the steps of the reduction {block.name!r} are not known to come in any order"
    for other in others:
        if other is not site and any(other.names(r.buffer) for r in block.writes):
            return f"block {other.block.name!r} touches what single steps of {block.name!r} make"
    return late_init(site) if block.init is not None else None


@unless_trusted
def may_run_at_once(loop: For, path: Path, *, joined: bool = False) -> str | None:
    """Why the iterations of a loop may not run at once; None if they may.

    It is asked again after each step: of a loop in which nothing changed it is known.

    Args:
        loop: The loop.
        path: The way to it.
        joined: Whether what iterations add to one place is joined first, as lanes of a vector are.
    """
    key = (id(loop.body), joined, *facts(path))
    if key in _KEPT:
        return None
    why = _need_order(loop, path, joined=joined)
    if why is None:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        _KEPT[key] = path
    return why


def _need_order(loop: For, path: Path, *, joined: bool) -> str | None:
    """The same, found out."""
    loose = loose_statement(loop.body)
    if loose is not None:
        return f"a {type(loose).__name__} stands outside any block"
    private = {s.buffer for s in walk_stmt(loop.body) if isinstance(s, Allocate)}
    for site in sites(loop, path[:-1]):
        block = site.block
        if all(r.buffer in private for r in block.writes):
            continue
        kinds = driven(block, loop.var)
        if joined and kinds == {"R"}:
            why = _may_join(site, loop)
            if why is None:
                continue
            return why
        if kinds - {"S"}:
            kind = "an opaque" if "O" in kinds else "a reduce"
            return f"it drives {kind} axis of block {block.name!r}"
        values = [a.value for a in block.axes if a.kind == "S"]
        used = {loop.var} | {v for e in values for v in variables(e)}
        over = [x for x in site.loops if x.var in used]
        m = iteration_map(values, over, site.known, block.predicate)
        if m is None or not m.is_injective():
            return f"different iterations reach one point of block {block.name!r}"
        why = None if INTRINSIC in block.attrs else breach(site)
        if why is not None:
            why = breach(site, _fixed(site))
        if why is not None:
            return why
    return shares_iterations(loop.body, path, apart=True)


def _may_join(site: Site, loop: For) -> str | None:
    """Why steps of a reduction, one a lane, may not be joined to one step; None if they may."""
    block, store = site.block, site.block.body
    if loop.body is not block or not isinstance(store, Store):
        return f"it drives a reduce axis of block {block.name!r}"
    if block.init is not None:
        return f"the init of block {block.name!r} stands among the steps"
    if not commutes(block):
        return f"the steps of the reduction {block.name!r} are not known to come in any order"
    lanes = {a.var for a in block.axes if loop.var in variables(a.value)}
    if any(variables(i) & lanes for i in store.indices):
        return f"lanes of block {block.name!r} may meet in one place"
    return breach(site)
