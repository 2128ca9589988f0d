"""Which blocks make what a block takes, which take what it makes, and which make results."""

from __future__ import annotations

from unity.ir.stmt import Allocate, Block, PrimFunc
from unity.ir.visit import walk_stmt

from ....blocks.tree import block_path, blocks_below, scope_path


def scope_blocks(func: PrimFunc, name: str) -> list[Block]:
    """The blocks of a block's scope, in order, it among them."""
    path, _ = block_path(func, name)
    return blocks_below(scope_path(path)[0])


def producers(func: PrimFunc, name: str) -> list[Block]:
    """The blocks of the same scope that write what a block reads."""
    _, block = block_path(func, name)
    read = {r.buffer for r in block.reads}
    others = [b for b in scope_blocks(func, name) if b is not block]
    return [b for b in others if read & {r.buffer for r in b.writes}]


def consumers(func: PrimFunc, name: str) -> list[Block]:
    """The blocks of the same scope that read what a block writes."""
    _, block = block_path(func, name)
    written = {r.buffer for r in block.writes}
    others = [b for b in scope_blocks(func, name) if b is not block]
    return [b for b in others if written & {r.buffer for r in b.reads}]


def output_blocks(func: PrimFunc, name: str | None = None) -> list[Block]:
    """The blocks directly inside a block, or the kernel, that write what outlives it."""
    scope = func.body if name is None else block_path(func, name)[1].body
    own = {s.buffer for s in walk_stmt(scope) if isinstance(s, Allocate)}
    if name is not None:
        own |= set(block_path(func, name)[1].allocations)
    return [b for b in blocks_below(scope) if any(r.buffer not in own for r in b.writes)]
