"""A loop that others share with a block of which a part is to run before: would they see it?"""

from __future__ import annotations

from unity.arith.region import covers
from unity.ir.prim_expr import Compare, imm
from unity.ir.stmt import Block, Buffer, For, PrimFunc, Stmt

from .dataflow import loaded, stored
from .dependence import loose_statement
from .motion import refuse_shifting
from .site import sites
from .tree import Path, block_path, blocks_below, driven, illegal, known_at


def refuse_begun(where: str, func: PrimFunc, path: Path, loop: For, begins: Stmt) -> None:
    """Refuse a loop in which others would see that the beginning of a block came before it.

    Args:
        where: The argument that names the loop.
        func: The prim func.
        path: The way to the block.
        loop: A loop on it.
        begins: What is to run before the loop: stores to all that the block makes in it.
    """
    block = path[-1]
    assert isinstance(block, Block)
    loose = loose_statement(loop.body)
    if loose is not None:
        raise illegal(where, f"a {type(loose).__name__} in it stands outside any block")
    others = [b for b in blocks_below(loop) if b is not block]
    if not others:
        return
    refuse_shifting(where, func, path)
    at = next(k for k, s in enumerate(path) if s is loop)
    for k, x in enumerate(path[:-1]):
        if k < at or not isinstance(x, For) or not driven(block, x.var) - {"S"}:
            continue
        empty = not known_at(path[:k]).prove(Compare("ge", x.extent, imm(1)))
        if empty and len(blocks_below(x)) > 1:
            raise illegal(where, f"{x.var.name!r} may be empty, and holds other blocks as well")
    taken, begun = loaded(begins), stored(begins)
    for other in others:
        for buffer in stored(other) & (taken | begun):
            raise illegal(where, f"block {other.name!r} stores to {buffer.name!r} in it, too")
        for buffer in begun:
            if not _reads_after(func, path, other, buffer):
                why = f"block {other.name!r} may read of {buffer.name!r} what is not begun yet"
                raise illegal(where, why)


def _reads_after(func: PrimFunc, path: Path, other: Block, buffer: Buffer) -> bool:
    """Whether what a block touches of a buffer is made before, in the same iteration."""
    there, _ = block_path(func, other.name)
    joint = max(k for k, s in enumerate(path) if isinstance(s, For) and any(s is x for x in there))
    loop = path[joint]
    assert isinstance(loop, For)
    found = sites(loop.body, path[: joint + 1])
    maker, reader = (next(s for s in found if s.block is b) for b in (path[-1], other))
    if not reader.names(buffer):
        return True
    need, box = reader.touched(buffer), maker.fills(buffer)
    if need is None or box is None or found.index(maker) > found.index(reader):
        return False
    return covers(box, need, reader.known)
