"""Steps that take reductions apart and put them together."""

from __future__ import annotations

from .. import primitives as p
from ..arguments import step
from ..refs import AnyBlock, BlockRef, LoopRef
from ..state import State, as_ref, name_of


class ReductionSteps(State):
    """Steps that take reductions apart and put them together."""

    @step
    def decompose_reduction(self, block: AnyBlock, loop: LoopRef) -> BlockRef:
        """A reduction's init becomes a block before a loop; gives that block."""
        done = p.decompose_reduction(self.func, name_of(block), self._var(loop))
        return self._block("decompose_reduction", (as_ref(block), loop), done)

    @step
    def merge_reduction(self, init: AnyBlock, update: AnyBlock) -> None:
        """A block that sets what another adds to becomes its init."""
        done = p.merge_reduction(self.func, name_of(init), name_of(update))
        self._do("merge_reduction", (as_ref(init), as_ref(update)), done)

    @step
    def fuse_reduction_epilogue(self, block: AnyBlock, epilogue: AnyBlock) -> None:
        """What a block joins to a reduction's result becomes what that begins with."""
        done = p.fuse_reduction_epilogue(self.func, name_of(block), name_of(epilogue))
        self._do("fuse_reduction_epilogue", (as_ref(block), as_ref(epilogue)), done)

    @step
    def rfactor(self, loop: LoopRef, factor_axis: int = 0, at: LoopRef | None = None) -> BlockRef:
        """Partial results over a reduce loop, all or in a loop; gives the block of them."""
        place = None if at is None else self._var(at)
        done = p.rfactor(self.func, self._var(loop), factor_axis, place)
        given = () if at is None else (at,)
        return self._block("rfactor", (loop, factor_axis, *given), done)

    @step
    def skip_padding(self, block: AnyBlock) -> None:
        """Steps of a reduction that read padding are not done: the choice becomes a predicate."""
        self._do("skip_padding", (as_ref(block),), p.skip_padding(self.func, name_of(block)))
