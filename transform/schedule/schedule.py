"""Schedule: a prim func and the recorded steps that transform it.

The IR is immutable: each step replaces `Schedule.func`, and what it replaced stays valid. What is
legal, and examples, are in the docstrings of the functions in `primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias, cast

from unity.errors import UnityError
from unity.ir.prim_expr import Operand
from unity.ir.stmt import Block, PrimFunc
from unity.machine.target import Target

from ..blocks.tree import (
    block_path,
    blocks_below,
    distinct,
    honest,
    loop_path,
    loops_of,
    scope_path,
)
from . import primitives as p
from .arguments import step
from .index_map import IndexMap
from .refs import AnyBlock, BlockRef, Decision, LoopRef, Memory, Name
from .state import State, as_ref, name_of
from .trace import Given, Trace, decode

AnyMap: TypeAlias = IndexMap | Callable[..., Sequence[Operand]]


class Schedule(State):
    """A prim func under transformation.

    Args:
        func: What to schedule; its blocks get distinct names.
        target: The machine it is for.
        seed: Of the sampling instructions.

    Attributes:
        func: The prim func as it is now.
        trace: What was done.
    """

    @step
    def __init__(
        self, func: PrimFunc, target: Target | None = None, seed: int | None = None
    ) -> None:
        super().__init__(honest(distinct(func)))
        self.target = target
        self._random = Random(seed)

    @step
    def kernel(self) -> PrimFunc:
        """The prim func as it is now, marked as laid out: the compiler leaves its loops alone."""
        return replace(self.func, attrs=self.func.attrs.with_(scheduled=True))

    @step
    def copy(self, seed: int | None = None) -> Schedule:
        """Another schedule in the same state, that goes its own way; this one's loops are its too.

        Args:
            seed: Of its sampling instructions.
        """
        other = Schedule(self.func, self.target, seed)
        other._continue(self)
        return other

    @step
    def replay(self, trace: Trace) -> Schedule:
        """Do what a trace says, with the decisions it holds; this schedule.

        Raises:
            UnityError: A step is refused here, or is none that there is.
        """
        known: dict[str, Given] = {}
        for each in trace:
            method = INSTRUCTIONS.get(each.name)
            if method is None:
                raise UnityError(f"there is no instruction {each.name!r}")
            args = [decode(a, known) for a in each.args]
            drawn = {} if each.decision is None else {"decision": each.decision}
            result = method(self, *args, **drawn)
            outputs = cast("Sequence[Given]", result if _many(result) else [result])
            if len(outputs) < len(each.outputs):
                raise UnityError(
                    f"{each.name} gives {len(outputs)} here, the trace goes on with "
                    f"{len(each.outputs)}: {', '.join(each.outputs)}",
                    hint="the trace is of a prim func with other blocks and loops",
                )
            known.update(zip(each.outputs, outputs, strict=False))
        return self

    # what there is

    @step
    def get_block(self, name: str) -> BlockRef:
        """A block by its name."""
        block_path(self.func, name)
        return BlockRef(name)

    @step
    def get_blocks(self) -> tuple[BlockRef, ...]:
        """The kernel's outermost blocks, in order: what a rule for many kernels starts from."""
        return _refs(blocks_below(self.func.body))

    @step
    def axis_kinds(self, block: AnyBlock) -> str:
        """The kinds of a block's axes, as ``T.axis.remap`` writes them: ``"SSR"``."""
        axes = block_path(self.func, name_of(block))[1].axes
        return "".join(axis.kind for axis in axes)

    @step
    def get_loops(self, block: AnyBlock) -> tuple[LoopRef, ...]:
        """The loops around a block, outermost first, up to the block that holds it."""
        path, _ = block_path(self.func, name_of(block))
        loops = [self._ref(s.var) for s in loops_of(scope_path(path))]
        return self._note("get_loops", (as_ref(block),), tuple(loops))

    @step
    def get_child_blocks(self, of: AnyBlock | LoopRef) -> tuple[BlockRef, ...]:
        """The blocks directly inside a loop or a block."""
        if isinstance(of, LoopRef):
            return _refs(blocks_below(loop_path(self.func, self._var(of))[1]))
        return _refs(blocks_below(block_path(self.func, name_of(of))[1].body))

    @step
    def get_producers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that write what a block reads."""
        return _refs(p.producers(self.func, name_of(block)))

    @step
    def get_consumers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that read what a block writes."""
        return _refs(p.consumers(self.func, name_of(block)))

    @step
    def specialize(self, sizes: Mapping[str, int]) -> None:
        """Unknown sizes become numbers."""
        self._do("specialize", (sizes,), p.specialize(self.func, sizes))

    # loops

    @step
    def split(self, loop: LoopRef, factors: Sequence[int | None]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one in another; one factor may be None."""
        return self._do("split", (loop, factors), p.split(self.func, self._var(loop), factors))[0]

    @step
    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Neighbouring loops become one."""
        return self._do("fuse", loops, p.fuse(self.func, self._vars(loops)))[0][0]

    @step
    def reorder(self, *loops: LoopRef) -> None:
        """Loops of a nest in the order given."""
        self._do("reorder", loops, p.reorder(self.func, self._vars(loops)))

    @step
    def tile(self, rows: LoopRef, columns: LoopRef, height: int, width: int) -> tuple[LoopRef, ...]:
        """Two nested loops over tiles, and two over the points of one."""
        done = p.tile(self.func, self._var(rows), self._var(columns), height, width)
        return self._do("tile", (rows, columns, height, width), done)[0]

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
    def annotate(self, at: LoopRef | AnyBlock, key: Name, value: bool | float | str | None) -> None:
        """Set an attribute of a loop or a block."""
        done = p.annotate(self.func, self._at(at), key, value)
        self._do("annotate", (as_ref(at), key, value), done)

    @step
    def unannotate(self, at: LoopRef | AnyBlock, key: Name) -> None:
        """Remove an attribute of a loop or a block."""
        done = p.unannotate(self.func, self._at(at), key)
        self._do("unannotate", (as_ref(at), key), done)

    @step
    def add_unit_loop(self, at: LoopRef | AnyBlock) -> LoopRef:
        """A loop of one iteration around a loop or a block."""
        done = p.add_unit_loop(self.func, self._at(at))
        return self._do("add_unit_loop", (as_ref(at),), done)[0][0]

    @step
    def loop_partition(self, loop: LoopRef, extents: Sequence[int]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one after another; the last takes what is left."""
        done = p.loop_partition(self.func, self._var(loop), extents)
        return self._do("loop_partition", (loop, extents), done)[0]

    # blocks

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

    @step
    def cache_read(self, block: AnyBlock, index: int | str, scope: Memory) -> BlockRef:
        """A block reads a copy of a buffer; gives the block that copies."""
        done = p.cache_read(self.func, *self._at_access("cache_read", block, index, "read"), scope)
        return self._do("cache_read", (as_ref(block), index, scope), done)[1][0]

    @step
    def cache_write(self, block: AnyBlock, index: int | str, scope: Memory) -> BlockRef:
        """A block writes to a buffer that is copied out; gives the block that copies."""
        done = p.cache_write(
            self.func, *self._at_access("cache_write", block, index, "write"), scope
        )
        return self._do("cache_write", (as_ref(block), index, scope), done)[1][0]

    @step
    def reindex(self, block: AnyBlock, kind: str, index: int | str) -> BlockRef:
        """A block accesses a copy laid out by its axes; gives the block that copies."""
        name, k = self._at_access("reindex", block, index, kind)
        done = p.reindex(self.func, name, kind, k)
        return self._do("reindex", (as_ref(block), kind, index), done)[1][0]

    @step
    def set_scope(self, block: AnyBlock, index: int | str, scope: Memory) -> None:
        """The scope of a temporary that a block writes."""
        done = p.set_scope(self.func, *self._at_access("set_scope", block, index, "write"), scope)
        self._do("set_scope", (as_ref(block), index, scope), done)

    @step
    def set_axis_separator(
        self, block: AnyBlock, index: int | str, separators: Sequence[int]
    ) -> None:
        """Where the axes of a temporary that a block writes part into groups of one index each."""
        done = p.set_axis_separator(
            self.func, *self._at_access("set_axis_separator", block, index, "write"), separators
        )
        self._do("set_axis_separator", (as_ref(block), index, separators), done)

    @step
    def storage_align(
        self, block: AnyBlock, index: int | str, axis: int, factor: int, offset: int
    ) -> None:
        """The stride of an axis of a temporary that a block writes."""
        done = p.storage_align(
            self.func,
            *self._at_access("storage_align", block, index, "write"),
            axis,
            factor,
            offset,
        )
        self._do("storage_align", (as_ref(block), index, axis, factor, offset), done)

    @step
    def store_at(self, block: AnyBlock, index: int | str, loop: LoopRef) -> None:
        """Each iteration of a loop has a temporary that a block writes for itself."""
        done = p.store_at(
            self.func, *self._at_access("store_at", block, index, "write"), self._var(loop)
        )
        self._do("store_at", (as_ref(block), index, loop), done)

    @step
    def prefetch(
        self,
        block: AnyBlock,
        index: int | str,
        loop: LoopRef,
        at: LoopRef,
        shared_by: LoopRef | None = None,
        distance: int = 1,
    ) -> BlockRef:
        """What a block reads in a later iteration of a loop is asked for; gives what asks."""
        shared = None if shared_by is None else self._var(shared_by)
        ahead, here = self._var(loop), self._var(at)
        name, k = self._at_access("prefetch", block, index, "read")
        done = p.prefetch(self.func, name, k, ahead, here, shared, distance)
        args = (as_ref(block), index, loop, at, shared_by, distance)
        return self._do("prefetch", args, done)[1][0]

    # reductions, tiles and layouts

    @step
    def decompose_reduction(self, block: AnyBlock, loop: LoopRef) -> BlockRef:
        """A reduction's init becomes a block before a loop; gives that block."""
        done = p.decompose_reduction(self.func, name_of(block), self._var(loop))
        return self._do("decompose_reduction", (as_ref(block), loop), done)[1][0]

    @step
    def merge_reduction(self, init: AnyBlock, update: AnyBlock) -> None:
        """A block that sets what another adds to becomes its init."""
        done = p.merge_reduction(self.func, name_of(init), name_of(update))
        self._do("merge_reduction", (as_ref(init), as_ref(update)), done)

    @step
    def pad_einsum(self, block: AnyBlock, padding: Sequence[int]) -> tuple[BlockRef, ...]:
        """A contraction over axes rounded up; gives the blocks that copy to and from it."""
        done = p.pad_einsum(self.func, name_of(block), padding)
        return self._do("pad_einsum", (as_ref(block), padding), done)[1]

    @step
    def rfactor(self, loop: LoopRef, factor_axis: int = 0) -> BlockRef:
        """Partial results over a reduce loop; gives the block that makes them."""
        done = p.rfactor(self.func, self._var(loop), factor_axis)
        return self._do("rfactor", (loop, factor_axis), done)[1][0]

    @step
    def blockize(self, loop: LoopRef) -> BlockRef:
        """A block around a loop and the block in it; gives the one around."""
        done = p.blockize(self.func, self._var(loop))
        return self._do("blockize", (loop,), done)[1][0]

    @step
    def tensorize(self, loop: LoopRef, intrinsic: str) -> BlockRef:
        """What a loop computes by a tensor intrinsic; gives the block around it."""
        done = p.tensorize(self.func, self._var(loop), intrinsic)
        return self._do("tensorize", (loop, intrinsic), done)[1][0]

    @step
    def transform_layout(self, block: AnyBlock, index: int | str, index_map: AnyMap) -> None:
        """A temporary that a block writes, laid out by an index map."""
        m = _as_map(index_map)
        done = p.transform_layout(
            self.func, *self._at_access("transform_layout", block, index, "write"), m
        )
        self._do("transform_layout", (as_ref(block), index, m), done)

    @step
    def transform_block_layout(self, block: AnyBlock, index_map: AnyMap) -> None:
        """A block over other axes, in a nest of its own."""
        m = _as_map(index_map)
        done = p.transform_block_layout(self.func, name_of(block), m)
        self._do("transform_block_layout", (as_ref(block), m), done)

    # what is left open

    @step
    def sample_perfect_tile(
        self, loop: LoopRef, parts: int, limit: int = 16, *, decision: Sequence[int] | None = None
    ) -> tuple[Decision, ...]:
        """Factors of a loop's extent, the innermost at most `limit`."""
        drawn = decision
        if drawn is not None:
            p.check_perfect_tile(self.func, self._var(loop), parts, limit, drawn)
        else:
            drawn = p.sample_perfect_tile(self.func, self._var(loop), parts, limit, self._random)
        made = self._decisions(drawn)
        return self._note("sample_perfect_tile", (loop, parts, limit), made, list(drawn))

    @step
    def sample_categorical(
        self, candidates: Sequence[int], weights: Sequence[float], *, decision: int | None = None
    ) -> Decision:
        """One of several numbers; the decision is its index."""
        k = p.sample_categorical(candidates, weights, self._random)
        if decision is not None:
            p.check_decision("sample_categorical", decision, range(len(candidates)))
            k = decision
        made = self._decisions([candidates[k]])
        return self._note("sample_categorical", (candidates, weights), made, k)[0]

    @step
    def sample_compute_location(
        self, block: AnyBlock, *, decision: int | None = None
    ) -> LoopRef | None:
        """A loop that `compute_at` takes the block to, or None to leave it; -1 decides that."""
        found = p.compute_locations(self.func, name_of(block))
        k = self._random.randrange(-1, len(found))
        if decision is not None:
            p.check_decision("sample_compute_location", decision, range(-1, len(found)))
            k = decision
        made = () if k < 0 else (self._ref(found[k]),)
        self._note("sample_compute_location", (as_ref(block),), made, k)
        return made[0] if made else None


def _as_map(given: AnyMap) -> IndexMap:
    return given if isinstance(given, IndexMap) else IndexMap.of(given)


def _refs(blocks: Sequence[Block]) -> tuple[BlockRef, ...]:
    return tuple(BlockRef(b.name) for b in blocks)


def _many(result: object) -> bool:
    return isinstance(result, tuple | list)


_NAMES = """
    get_loops specialize
    split fuse reorder tile parallel vectorize unroll bind annotate unannotate add_unit_loop
    loop_partition
    compute_inline reverse_compute_inline compute_at reverse_compute_at cache_read cache_write
    reindex set_scope set_axis_separator storage_align store_at prefetch pad_einsum
    decompose_reduction merge_reduction rfactor blockize tensorize transform_layout
    transform_block_layout
    sample_perfect_tile sample_categorical sample_compute_location
"""
INSTRUCTIONS: dict[str, Callable[..., object]] = {
    name: getattr(Schedule, name) for name in _NAMES.split()
}
"""What a trace may hold."""
