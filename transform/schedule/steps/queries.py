"""What a schedule is asked: its blocks and loops, and which of them feed which."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.stmt import Block

from ...blocks.extents import number
from ...blocks.tree import block_path, blocks_below, loop_path, loops_of, scope_path
from .. import primitives as p
from ..arguments import query, step
from ..refs import AnyBlock, BlockRef, LoopRef
from ..state import State, as_ref, name_of


class Queries(State):
    """The blocks and loops that there are."""

    @query
    def get_block(self, name: str) -> BlockRef:
        """A block by its name."""
        block_path(self.func, name)
        return BlockRef(name)

    @query
    def get_blocks(self) -> tuple[BlockRef, ...]:
        """The kernel's outermost blocks, in order: what a rule for many kernels starts from."""
        return _refs(blocks_below(self.func.body))

    @query
    def axis_kinds(self, block: AnyBlock) -> str:
        """The kinds of a block's axes, as ``T.axis.remap`` writes them: ``"SSR"``."""
        axes = block_path(self.func, name_of(block))[1].axes
        return "".join(axis.kind for axis in axes)

    @query
    def extent(self, loop: LoopRef) -> int | None:
        """How often a loop runs, where that is a number; None where sizes decide it."""
        return number(loop_path(self.func, self._var(loop))[1].extent)

    @step
    def get_loops(self, block: AnyBlock) -> tuple[LoopRef, ...]:
        """The loops around a block, outermost first, up to the block that holds it."""
        path, _ = block_path(self.func, name_of(block))
        loops = [self._ref(s.var) for s in loops_of(scope_path(path))]
        return self._note("get_loops", (as_ref(block),), tuple(loops))

    @query
    def get_child_blocks(self, of: AnyBlock | LoopRef) -> tuple[BlockRef, ...]:
        """The blocks directly inside a loop or a block."""
        if isinstance(of, LoopRef):
            return _refs(blocks_below(loop_path(self.func, self._var(of))[1]))
        return _refs(blocks_below(block_path(self.func, name_of(of))[1].body))

    @query
    def get_producers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that write what a block reads."""
        return _refs(p.producers(self.func, name_of(block)))

    @query
    def get_consumers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that read what a block writes."""
        return _refs(p.consumers(self.func, name_of(block)))

    @query
    def get_output_blocks(self, of: AnyBlock | None = None) -> tuple[BlockRef, ...]:
        """The blocks directly inside a block, or the kernel, that write what outlives it."""
        return _refs(p.output_blocks(self.func, None if of is None else name_of(of)))


def _refs(blocks: Sequence[Block]) -> tuple[BlockRef, ...]:
    return tuple(BlockRef(b.name) for b in blocks)
