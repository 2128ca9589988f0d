"""Which blocks make what a block takes, and which take what it makes."""

from __future__ import annotations

from unity.ir.stmt import Block, PrimFunc

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
