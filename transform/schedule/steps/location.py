"""Steps that move a block to where its result is made or read."""

from __future__ import annotations

from .. import primitives as p
from ..arguments import step
from ..refs import AnyBlock, LoopRef
from ..state import State, as_ref, name_of


class LocationSteps(State):
    """Steps that move a block to where its result is made or read."""

    @step
    def compute_inline(self, block: AnyBlock) -> None:
        """A block's formula goes where its result is read."""
        done = p.compute_inline(self.func, name_of(block))
        self._do("compute_inline", (as_ref(block),), done)

    @step
    def reverse_compute_inline(self, block: AnyBlock) -> None:
        """A block's formula goes where what it reads is made."""
        done = p.reverse_compute_inline(self.func, name_of(block))
        self._do("reverse_compute_inline", (as_ref(block),), done)

    @step
    def compute_at(self, block: AnyBlock, loop: LoopRef, first_of: LoopRef | None = None) -> None:
        """A block's nest moves into a loop of those that read its result."""
        outer = None if first_of is None else self._var(first_of)
        done = p.compute_at(self.func, name_of(block), self._var(loop), outer)
        given = () if first_of is None else (first_of,)
        self._do("compute_at", (as_ref(block), loop, *given), done)

    @step
    def reverse_compute_at(self, block: AnyBlock, loop: LoopRef) -> None:
        """A block's nest moves into a loop of the block that makes what it reads."""
        done = p.reverse_compute_at(self.func, name_of(block), self._var(loop))
        self._do("reverse_compute_at", (as_ref(block), loop), done)
