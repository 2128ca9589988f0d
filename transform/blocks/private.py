"""Whether a loop's iterations each have their own use for a temporary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from unity.arith.region import covers
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Not
from unity.ir.stmt import Allocate, Block, Buffer, For, Range, Stmt
from unity.ir.visit import stmt_children, variables

from .site import Site, sites
from .tree import Path, buffers_in, driven, loops_of


def is_private(path: Path, buffer: Buffer) -> bool:
    """Whether what blocks in a loop take of a buffer was made in the same iteration.

    Or in the same iteration of a loop in it that holds all of them.

    Args:
        path: The way to the loop, from the allocation of the buffer at least.
        buffer: A temporary that is used in the loop only.
    """
    loop = path[-1]
    if not isinstance(loop, For) or loop.kind in ("vectorized", "unrolled"):
        return False
    return _makes_all(path, loop, buffer) or is_private((*path, *_inner(loop.body, buffer)), buffer)


def _inner(s: Stmt, buffer: Buffer) -> Path:
    """The way to the outermost loop that holds all uses of a buffer, or to where they part."""
    if isinstance(s, For | Block):
        return (s,)
    using = [c for c in stmt_children(s) if any(b is buffer for b in buffers_in(c))]
    return (s, *_inner(using[0], buffer)) if len(using) == 1 else (s,)


def _makes_all(path: Path, loop: For, buffer: Buffer) -> bool:
    below = [k for k, s in enumerate(path) if isinstance(s, Allocate) and s.buffer is buffer]
    outer = loops_of(path[below[-1] :])
    made: list[Site] = []
    for site in sites(loop.body, path):
        need = site.touched(buffer, closely=True)
        if need is None:
            continue
        block = site.block
        writes = any(r.buffer is buffer for r in block.writes)
        if block.init is not None and writes:
            if any(driven(block, x.var) - {"S"} for x in outer):
                return False
        elif _reads(block, buffer) and not _made(made, site, need, buffer):
            return False
        if writes:
            made.append(site)
    return True


def _made(makers: Sequence[Site], reader: Site, need: Sequence[Range], buffer: Buffer) -> bool:
    """Whether a block has made what another one takes, or one of two that are alternatives."""
    if any(_makes(m, reader, need, buffer) for m in makers):
        return True
    return any(
        _are_alternatives(a, b)
        and _makes(a, reader, need, buffer, b)
        and _makes(b, reader, need, buffer, a)
        for a, b in pairwise(makers)
    )


def _are_alternatives(a: Site, b: Site) -> bool:
    """Whether one of two blocks runs where the other one does not."""
    here, there = a.asked(), b.asked()
    parts = () if b.block.predicate is None else conjuncts(b.block.predicate)
    return any(
        isinstance(part, Not)
        and a.settled(conjuncts(part.a)) == here - there
        and b.settled([part]) == there - here
        for part in parts
    )


def _makes(
    maker: Site, reader: Site, need: Sequence[Range], buffer: Buffer, other: Site | None = None
) -> bool:
    """Whether a block has made what another one takes, wherever that runs.

    Args:
        maker: The block.
        reader: The other one.
        need: What it takes.
        buffer: Of this.
        other: One that makes it where the maker does not run.
    """
    inside = {x.var for x in reader.loops}
    given = {p for p in reader.asked() if not variables(p) & inside}
    if other is not None:
        given |= maker.asked() - other.asked()
    box = maker.fills(buffer, given)
    return box is not None and covers(box, need, reader.known)


def _reads(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in block.reads)


def own_temporaries(above: Path, stmts: Sequence[Stmt]) -> list[Buffer]:
    """The temporaries around some statements, in no loop with them, that nothing else uses."""
    found: list[Buffer] = []
    for s in reversed(above):
        match s:
            case For():
                break
            case Allocate():
                uses = [sum(b is s.buffer for b in buffers_in(x)) for x in (s.body, *stmts)]
                if uses[0] == sum(uses[1:]):
                    found.append(s.buffer)
            case _:
                pass
    return found[::-1]
