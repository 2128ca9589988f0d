"""Steps that change what a block is: its axes, and what is inside of it."""

from __future__ import annotations

from collections.abc import Sequence

from .. import primitives as p
from ..arguments import step
from ..index_map import AnyMap, as_map
from ..refs import AnyBlock, BlockRef, LoopRef
from ..state import State, as_ref, name_of


class BlockSteps(State):
    """Steps that change what a block is."""

    @step
    def decompose_padding(self, block: AnyBlock, loop: LoopRef) -> BlockRef:
        """A padded copy becomes a fill before a loop, and a copy within bounds; gives the fill."""
        done = p.decompose_padding(self.func, name_of(block), self._var(loop))
        return self._block("decompose_padding", (as_ref(block), loop), done)

    @step
    def pad_einsum(self, block: AnyBlock, padding: Sequence[int]) -> tuple[BlockRef, ...]:
        """A contraction over axes rounded up; gives the blocks that copy to and from it."""
        done = p.pad_einsum(self.func, name_of(block), padding)
        return self._blocks("pad_einsum", (as_ref(block), padding), done)

    @step
    def blockize(self, loop: LoopRef) -> BlockRef:
        """A block around a loop and the block in it; gives the one around."""
        done = p.blockize(self.func, self._var(loop))
        return self._block("blockize", (loop,), done)

    @step
    def blockize_body(self, loop: LoopRef) -> BlockRef:
        """A block around all that an iteration of a loop does; gives it."""
        done = p.blockize_body(self.func, self._var(loop))
        return self._block("blockize_body", (loop,), done)

    @step
    def tensorize(self, loop: LoopRef, intrinsic: str) -> BlockRef:
        """What a loop computes by a tensor intrinsic; gives the block around it."""
        done = p.tensorize(self.func, self._var(loop), intrinsic)
        return self._block("tensorize", (loop, intrinsic), done)

    @step
    def tile_axis(self, block: AnyBlock, axis: int, size: int) -> None:
        """An axis of what makes a temporary in tiles of one size, the last of them full as well."""
        done = p.tile_axis(self.func, name_of(block), axis, size)
        self._do("tile_axis", (as_ref(block), axis, size), done)

    @step
    def tile_lines(self, block: AnyBlock, axis: int, lines: int) -> None:
        """Lines of what makes a temporary in tiles that go on evenly from one to the next."""
        done = p.tile_lines(self.func, name_of(block), axis, lines)
        self._do("tile_lines", (as_ref(block), axis, lines), done)

    @step
    def reorder_block_iter_var(self, block: AnyBlock, order: Sequence[int]) -> None:
        """A block's axes in another order, its loops as they are."""
        done = p.reorder_block_iter_var(self.func, name_of(block), order)
        self._do("reorder_block_iter_var", (as_ref(block), order), done)

    @step
    def transform_block_layout(self, block: AnyBlock, index_map: AnyMap) -> None:
        """A block over other axes, in a nest of its own."""
        m = as_map(index_map)
        done = p.transform_block_layout(self.func, name_of(block), m)
        self._do("transform_block_layout", (as_ref(block), m), done)

    @step
    def round_up(self, *blocks: AnyBlock) -> None:
        """Blocks lose predicates that only keep them from what lies beyond temporaries' ends."""
        done = p.round_up(self.func, [name_of(b) for b in blocks])
        self._do("round_up", tuple(map(as_ref, blocks)), done)
