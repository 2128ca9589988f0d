"""Steps that change a nest of loops."""

from __future__ import annotations

from collections.abc import Sequence

from unity.script.printer import text

from .. import primitives as p
from ..arguments import step
from ..condition import ExtentLike, extent_of
from ..refs import AnyBlock, BlockRef, LoopRef, Name
from ..state import State, as_ref


class LoopSteps(State):
    """Steps that change a nest of loops."""

    @step
    def split(self, loop: LoopRef, factors: Sequence[int | None]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one in another; one factor may be None."""
        return self._loops("split", (loop, factors), p.split(self.func, self._var(loop), factors))

    @step
    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Neighbouring loops become one."""
        return self._loop("fuse", loops, p.fuse(self.func, self._vars(loops)))

    @step
    def reorder(self, *loops: LoopRef) -> None:
        """Loops of a nest in the order given."""
        self._do("reorder", loops, p.reorder(self.func, self._vars(loops)))

    @step
    def tile(self, rows: LoopRef, columns: LoopRef, height: int, width: int) -> tuple[LoopRef, ...]:
        """Two nested loops over tiles, and two over the points of one."""
        done = p.tile(self.func, self._var(rows), self._var(columns), height, width)
        return self._loops("tile", (rows, columns, height, width), done)

    @step
    def parallel(self, loop: LoopRef) -> None:
        """The loop's iterations on threads."""
        self._do("parallel", (loop,), p.parallel(self.func, self._var(loop)))

    @step
    def vectorize(self, loop: LoopRef) -> None:
        """The loop's iterations in lanes."""
        self._do("vectorize", (loop,), p.vectorize(self.func, self._var(loop)))

    @step
    def unroll(self, loop: LoopRef) -> None:
        """The loop is to be written out."""
        self._do("unroll", (loop,), p.unroll(self.func, self._var(loop)))

    @step
    def bind(self, loop: LoopRef, thread: Name) -> None:
        """The loop's iterations on the threads of a grid's axis."""
        self._do("bind", (loop, thread), p.bind(self.func, self._var(loop), thread))

    @step
    def add_unit_loop(self, at: LoopRef | AnyBlock) -> LoopRef:
        """A loop of one iteration around a loop or a block."""
        done = p.add_unit_loop(self.func, self._at(at))
        return self._loop("add_unit_loop", (as_ref(at),), done)

    @step
    def loop_partition(self, loop: LoopRef, extents: Sequence[int]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one after another; the last takes what is left."""
        done = p.loop_partition(self.func, self._var(loop), extents)
        return self._loops("loop_partition", (loop, extents), done)

    @step
    def peel(self, loop: LoopRef, first: int = 1, last: int = 0) -> tuple[LoopRef, ...]:
        """A loop's first iterations before it, the last ones behind it; gives the loops."""
        done = p.peel(self.func, self._var(loop), first, last)
        return self._loops("peel", (loop, first, last), done)

    @step
    def unswitch(self, loop: LoopRef, throughout: bool = False) -> tuple[LoopRef, ...]:
        """A choice that a loop does not change is made before it; gives the loops of both ways."""
        done = p.unswitch(self.func, self._var(loop), throughout)
        return self._loops("unswitch", (loop, throughout), done)

    @step
    def fuse_siblings(self, *loops: LoopRef) -> LoopRef:
        """Loops that stand one behind another become one, which does what all of them did."""
        return self._loop("fuse_siblings", loops, p.fuse_siblings(self.func, self._vars(loops)))

    @step
    def partition_siblings(self, at: ExtentLike, *loops: LoopRef) -> tuple[BlockRef, ...]:
        """Loops one behind another over a first interval, then over the rest; gives its blocks."""
        size = extent_of(at, self.func)
        done = p.partition_siblings(self.func, self._vars(loops), size)
        given = at if isinstance(at, int) else text(size)
        return self._blocks("partition_siblings", (given, *loops), done)

    @step
    def trim(self, loop: LoopRef) -> None:
        """The loop ends where the predicates of all blocks in it begin to fail."""
        self._do("trim", (loop,), p.trim(self.func, self._var(loop)))

    @step
    def trim_neutral(self, loop: LoopRef) -> None:
        """A reduction's loop ends where it would only take neutral elements: a causal mask's."""
        self._do("trim_neutral", (loop,), p.trim_neutral(self.func, self._var(loop)))

    @step
    def trim_unread(self, loop: LoopRef) -> None:
        """The loop ends where what it would still store to a temporary is read by no block."""
        self._do("trim_unread", (loop,), p.trim_unread(self.func, self._var(loop)))
