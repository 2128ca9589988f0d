"""Whether a loop's iterations each have their own use for a temporary."""

from __future__ import annotations

from unity.arith.region import covers
from unity.ir.stmt import Allocate, Block, Buffer, For, Range, Stmt
from unity.ir.visit import stmt_children

from .site import sites
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
    made: list[tuple[Range, ...]] = []
    for site in sites(loop.body, path):
        need = site.touched(buffer)
        if need is None:
            continue
        block = site.block
        writes = any(r.buffer is buffer for r in block.writes)
        if block.init is not None and writes:
            if any(driven(block, x.var) - {"S"} for x in outer):
                return False
        elif _reads(block, buffer) and not any(covers(box, need, site.known) for box in made):
            return False
        box = site.fills(buffer)
        if box is not None:
            made.append(box)
    return True


def _reads(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in block.reads)
