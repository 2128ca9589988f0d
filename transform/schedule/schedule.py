"""Schedule: a prim func and the recorded steps that transform it.

The IR is immutable: each step replaces `Schedule.func`, and what it replaced stays valid. What is
legal, and examples, are in the docstrings of the functions in `primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias, TypeVar, cast

from unity.errors import UnityError
from unity.ir.prim_expr import Operand, PrimVar
from unity.ir.stmt import Block, PrimFunc
from unity.ir.target import Target

from . import primitives as p
from .index_map import IndexMap
from .refs import AnyBlock, BlockRef, Decision, LoopRef
from .trace import Given, Instruction, Json, Trace, decode, encode, token_of
from .tree import (
    Outcome,
    block_path,
    blocks_below,
    distinct,
    honest,
    loop_path,
    loops_of,
    scope_path,
)

Out = TypeVar("Out", LoopRef, LoopRef | BlockRef, Decision)

AnyMap: TypeAlias = IndexMap | Callable[..., Sequence[Operand]]


class Schedule:
    """A prim func under transformation.

    Args:
        func: What to schedule; its blocks get distinct names.
        target: The machine it is for.
        seed: Of the sampling instructions.

    Attributes:
        func: The prim func as it is now.
        trace: What was done.
    """

    def __init__(
        self, func: PrimFunc, target: Target | None = None, seed: int | None = None
    ) -> None:
        self.func = honest(distinct(func))
        self.target = target
        self.trace = Trace()
        self._random = Random(seed)
        self._loops: dict[str, PrimVar] = {}
        self._drawn = 0

    def kernel(self) -> PrimFunc:
        """The prim func as it is now, marked as laid out: the compiler leaves its loops alone."""
        return replace(self.func, attrs=self.func.attrs.with_(scheduled=True))

    def replay(self, trace: Trace) -> Schedule:
        """Do what a trace says, with the decisions it holds; this schedule.

        Raises:
            UnityError: A step is refused here, or is none that there is.
        """
        known: dict[str, Given] = {}
        for step in trace:
            method = INSTRUCTIONS.get(step.name)
            if method is None:
                raise UnityError(f"there is no instruction {step.name!r}")
            args = [decode(a, known) for a in step.args]
            drawn = {} if step.decision is None else {"decision": step.decision}
            result = method(self, *args, **drawn)
            outputs = cast("Sequence[Given]", result if _many(result) else [result])
            known.update(zip(step.outputs, outputs, strict=False))
        return self

    # what there is

    def get_block(self, name: str) -> BlockRef:
        """A block by its name."""
        block_path(self.func, name)
        return BlockRef(name)

    def get_blocks(self) -> tuple[BlockRef, ...]:
        """The kernel's outermost blocks, in order: what a rule for many kernels starts from."""
        return _refs(blocks_below(self.func.body))

    def axis_kinds(self, block: AnyBlock) -> str:
        """The kinds of a block's axes, as ``T.axis.remap`` writes them: ``"SSR"``."""
        axes = block_path(self.func, _name(block))[1].axes
        return "".join(axis.kind for axis in axes)

    def get_loops(self, block: AnyBlock) -> tuple[LoopRef, ...]:
        """The loops around a block, outermost first, up to the block that holds it."""
        path, _ = block_path(self.func, _name(block))
        loops = [self._ref(s.var) for s in loops_of(scope_path(path))]
        return self._note("get_loops", (_as_ref(block),), tuple(loops))

    def get_child_blocks(self, of: AnyBlock | LoopRef) -> tuple[BlockRef, ...]:
        """The blocks directly inside a loop or a block."""
        if isinstance(of, LoopRef):
            return _refs(blocks_below(loop_path(self.func, self._var(of))[1]))
        return _refs(blocks_below(block_path(self.func, _name(of))[1].body))

    def get_producers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that write what a block reads."""
        return _refs(p.producers(self.func, _name(block)))

    def get_consumers(self, block: AnyBlock) -> tuple[BlockRef, ...]:
        """The blocks of the same scope that read what a block writes."""
        return _refs(p.consumers(self.func, _name(block)))

    # loops

    def split(self, loop: LoopRef, factors: Sequence[int | None]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one in another; one factor may be None."""
        return self._do("split", (loop, factors), p.split(self.func, self._var(loop), factors))[0]

    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Neighbouring loops become one."""
        return self._do("fuse", loops, p.fuse(self.func, self._vars(loops)))[0][0]

    def reorder(self, *loops: LoopRef) -> None:
        """Loops of a nest in the order given."""
        self._do("reorder", loops, p.reorder(self.func, self._vars(loops)))

    def tile(self, rows: LoopRef, columns: LoopRef, height: int, width: int) -> tuple[LoopRef, ...]:
        """Two nested loops over tiles, and two over the points of one."""
        done = p.tile(self.func, self._var(rows), self._var(columns), height, width)
        return self._do("tile", (rows, columns, height, width), done)[0]

    def parallel(self, loop: LoopRef) -> None:
        """The loop's iterations on threads."""
        self._do("parallel", (loop,), p.parallel(self.func, self._var(loop)))

    def vectorize(self, loop: LoopRef) -> None:
        """The loop's iterations in lanes."""
        self._do("vectorize", (loop,), p.vectorize(self.func, self._var(loop)))

    def unroll(self, loop: LoopRef) -> None:
        """The loop is to be written out."""
        self._do("unroll", (loop,), p.unroll(self.func, self._var(loop)))

    def bind(self, loop: LoopRef, thread: str) -> None:
        """The loop's iterations on the threads of a grid's axis."""
        self._do("bind", (loop, thread), p.bind(self.func, self._var(loop), thread))

    def annotate(self, at: LoopRef | AnyBlock, key: str, value: bool | float | str | None) -> None:
        """Set an attribute of a loop or a block."""
        done = p.annotate(self.func, self._at(at), key, value)
        self._do("annotate", (_as_ref(at), key, value), done)

    def unannotate(self, at: LoopRef | AnyBlock, key: str) -> None:
        """Remove an attribute of a loop or a block."""
        done = p.unannotate(self.func, self._at(at), key)
        self._do("unannotate", (_as_ref(at), key), done)

    def add_unit_loop(self, at: LoopRef | AnyBlock) -> LoopRef:
        """A loop of one iteration around a loop or a block."""
        done = p.add_unit_loop(self.func, self._at(at))
        return self._do("add_unit_loop", (_as_ref(at),), done)[0][0]

    def loop_partition(self, loop: LoopRef, extents: Sequence[int]) -> tuple[LoopRef, ...]:
        """One loop becomes several, one after another; the last takes what is left."""
        done = p.loop_partition(self.func, self._var(loop), extents)
        return self._do("loop_partition", (loop, extents), done)[0]

    # blocks

    def compute_inline(self, block: AnyBlock) -> None:
        """A block's formula goes where its result is read."""
        done = p.compute_inline(self.func, _name(block))
        self._do("compute_inline", (_as_ref(block),), done)

    def reverse_compute_inline(self, block: AnyBlock) -> None:
        """A block's formula goes where what it reads is made."""
        done = p.reverse_compute_inline(self.func, _name(block))
        self._do("reverse_compute_inline", (_as_ref(block),), done)

    def compute_at(self, block: AnyBlock, loop: LoopRef, first_of: LoopRef | None = None) -> None:
        """A block's nest moves into a loop of those that read its result."""
        outer = None if first_of is None else self._var(first_of)
        done = p.compute_at(self.func, _name(block), self._var(loop), outer)
        given = () if first_of is None else (first_of,)
        self._do("compute_at", (_as_ref(block), loop, *given), done)

    def reverse_compute_at(self, block: AnyBlock, loop: LoopRef) -> None:
        """A block's nest moves into a loop of the block that makes what it reads."""
        done = p.reverse_compute_at(self.func, _name(block), self._var(loop))
        self._do("reverse_compute_at", (_as_ref(block), loop), done)

    def cache_read(self, block: AnyBlock, index: int, scope: str) -> BlockRef:
        """A block reads a copy of a buffer; gives the block that copies."""
        done = p.cache_read(self.func, _name(block), index, scope)
        return self._do("cache_read", (_as_ref(block), index, scope), done)[1][0]

    def cache_write(self, block: AnyBlock, index: int, scope: str) -> BlockRef:
        """A block writes to a buffer that is copied out; gives the block that copies."""
        done = p.cache_write(self.func, _name(block), index, scope)
        return self._do("cache_write", (_as_ref(block), index, scope), done)[1][0]

    def reindex(self, block: AnyBlock, kind: str, index: int) -> BlockRef:
        """A block accesses a copy laid out by its axes; gives the block that copies."""
        done = p.reindex(self.func, _name(block), kind, index)
        return self._do("reindex", (_as_ref(block), kind, index), done)[1][0]

    def set_scope(self, block: AnyBlock, index: int, scope: str) -> None:
        """The scope of a temporary that a block writes."""
        done = p.set_scope(self.func, _name(block), index, scope)
        self._do("set_scope", (_as_ref(block), index, scope), done)

    def set_axis_separator(self, block: AnyBlock, index: int, separators: Sequence[int]) -> None:
        """Where the axes of a temporary that a block writes part into groups of one index each."""
        done = p.set_axis_separator(self.func, _name(block), index, separators)
        self._do("set_axis_separator", (_as_ref(block), index, separators), done)

    def storage_align(
        self, block: AnyBlock, index: int, axis: int, factor: int, offset: int
    ) -> None:
        """The stride of an axis of a temporary that a block writes."""
        done = p.storage_align(self.func, _name(block), index, axis, factor, offset)
        self._do("storage_align", (_as_ref(block), index, axis, factor, offset), done)

    def store_at(self, block: AnyBlock, index: int, loop: LoopRef) -> None:
        """Each iteration of a loop has a temporary that a block writes for itself."""
        done = p.store_at(self.func, _name(block), index, self._var(loop))
        self._do("store_at", (_as_ref(block), index, loop), done)

    def prefetch(
        self,
        block: AnyBlock,
        index: int,
        loop: LoopRef,
        at: LoopRef,
        shared_by: LoopRef | None = None,
        distance: int = 1,
    ) -> BlockRef:
        """What a block reads in a later iteration of a loop is asked for; gives what asks."""
        shared = None if shared_by is None else self._var(shared_by)
        ahead, here = self._var(loop), self._var(at)
        done = p.prefetch(self.func, _name(block), index, ahead, here, shared, distance)
        args = (_as_ref(block), index, loop, at, shared_by, distance)
        return self._do("prefetch", args, done)[1][0]

    # reductions, tiles and layouts

    def decompose_reduction(self, block: AnyBlock, loop: LoopRef) -> BlockRef:
        """A reduction's init becomes a block before a loop; gives that block."""
        done = p.decompose_reduction(self.func, _name(block), self._var(loop))
        return self._do("decompose_reduction", (_as_ref(block), loop), done)[1][0]

    def merge_reduction(self, init: AnyBlock, update: AnyBlock) -> None:
        """A block that sets what another adds to becomes its init."""
        done = p.merge_reduction(self.func, _name(init), _name(update))
        self._do("merge_reduction", (_as_ref(init), _as_ref(update)), done)

    def pad_einsum(self, block: AnyBlock, padding: Sequence[int]) -> tuple[BlockRef, ...]:
        """A contraction over axes rounded up; gives the blocks that copy to and from it."""
        done = p.pad_einsum(self.func, _name(block), padding)
        return self._do("pad_einsum", (_as_ref(block), padding), done)[1]

    def rfactor(self, loop: LoopRef, factor_axis: int = 0) -> BlockRef:
        """Partial results over a reduce loop; gives the block that makes them."""
        done = p.rfactor(self.func, self._var(loop), factor_axis)
        return self._do("rfactor", (loop, factor_axis), done)[1][0]

    def blockize(self, loop: LoopRef) -> BlockRef:
        """A block around a loop and the block in it; gives the one around."""
        done = p.blockize(self.func, self._var(loop))
        return self._do("blockize", (loop,), done)[1][0]

    def tensorize(self, loop: LoopRef, intrinsic: str) -> BlockRef:
        """What a loop computes by a tensor intrinsic; gives the block around it."""
        done = p.tensorize(self.func, self._var(loop), intrinsic)
        return self._do("tensorize", (loop, intrinsic), done)[1][0]

    def transform_layout(self, block: AnyBlock, index: int, index_map: AnyMap) -> None:
        """A temporary that a block writes, laid out by an index map."""
        m = _as_map(index_map)
        done = p.transform_layout(self.func, _name(block), index, m)
        self._do("transform_layout", (_as_ref(block), index, m), done)

    def transform_block_layout(self, block: AnyBlock, index_map: AnyMap) -> None:
        """A block over other axes, in a nest of its own."""
        m = _as_map(index_map)
        done = p.transform_block_layout(self.func, _name(block), m)
        self._do("transform_block_layout", (_as_ref(block), m), done)

    # what is left open

    def sample_perfect_tile(
        self, loop: LoopRef, parts: int, limit: int = 16, *, decision: Sequence[int] | None = None
    ) -> tuple[Decision, ...]:
        """Factors of a loop's extent, the innermost at most `limit`."""
        drawn = decision
        if drawn is None:
            drawn = p.sample_perfect_tile(self.func, self._var(loop), parts, limit, self._random)
        made = self._decisions(drawn)
        return self._note("sample_perfect_tile", (loop, parts, limit), made, list(drawn))

    def sample_categorical(
        self, candidates: Sequence[int], weights: Sequence[float], *, decision: int | None = None
    ) -> Decision:
        """One of several numbers; the decision is its index."""
        k = decision
        if k is None:
            k = p.sample_categorical(candidates, weights, self._random)
        made = self._decisions([candidates[k]])
        return self._note("sample_categorical", (candidates, weights), made, k)[0]

    def sample_compute_location(
        self, block: AnyBlock, *, decision: int | None = None
    ) -> LoopRef | None:
        """A loop that `compute_at` takes the block to, or None to leave it; -1 decides that."""
        found = p.compute_locations(self.func, _name(block))
        k = self._random.randrange(-1, len(found)) if decision is None else decision
        made = () if k < 0 else (self._ref(found[k]),)
        self._note("sample_compute_location", (_as_ref(block),), made, k)
        return made[0] if made else None

    def _decisions(self, values: Sequence[int]) -> tuple[Decision, ...]:
        first = self._drawn
        self._drawn += len(values)
        return tuple(Decision(v, f"v{first + k}") for k, v in enumerate(values))

    # bookkeeping

    def _do(
        self, name: str, args: Sequence[Given], done: Outcome
    ) -> tuple[tuple[LoopRef, ...], tuple[BlockRef, ...]]:
        self.func = done.func
        loops = tuple(self._ref(v) for v in done.loops)
        blocks = tuple(BlockRef(b) for b in done.blocks)
        made: tuple[LoopRef | BlockRef, ...] = (*loops, *blocks)
        self._note(name, args, made)
        return loops, blocks

    def _note(
        self, name: str, args: Sequence[Given], outputs: tuple[Out, ...], decision: Json = None
    ) -> tuple[Out, ...]:
        tokens = tuple(token_of(o) for o in outputs)
        step = Instruction(name, tuple(encode(a) for a in args), tokens, decision)
        self.trace = self.trace.with_(step)
        return outputs

    def _ref(self, var: PrimVar) -> LoopRef:
        """The token of a loop, a new one where it has none."""
        for token, known in self._loops.items():
            if known is var:
                return LoopRef(token)
        ref = LoopRef(f"l{len(self._loops)}")
        self._loops[ref.token] = var
        return ref

    def _var(self, loop: LoopRef) -> PrimVar:
        if loop.token not in self._loops:
            raise UnityError(f"the loop {loop.token!r} is of another schedule")
        return self._loops[loop.token]

    def _vars(self, loops: Sequence[LoopRef]) -> list[PrimVar]:
        return [self._var(loop) for loop in loops]

    def _at(self, at: LoopRef | AnyBlock) -> PrimVar | str:
        return self._var(at) if isinstance(at, LoopRef) else _name(at)


def _name(block: AnyBlock) -> str:
    return block if isinstance(block, str) else block.name


def _as_ref(at: LoopRef | AnyBlock) -> LoopRef | BlockRef:
    return BlockRef(at) if isinstance(at, str) else at


def _as_map(given: AnyMap) -> IndexMap:
    return given if isinstance(given, IndexMap) else IndexMap.of(given)


def _refs(blocks: Sequence[Block]) -> tuple[BlockRef, ...]:
    return tuple(BlockRef(b.name) for b in blocks)


def _many(result: object) -> bool:
    return isinstance(result, tuple | list)


INSTRUCTIONS: dict[str, Callable[..., object]] = {
    method.__name__: method
    for method in (
        Schedule.get_loops,
        *(Schedule.split, Schedule.fuse, Schedule.reorder, Schedule.tile, Schedule.parallel),
        *(Schedule.vectorize, Schedule.unroll, Schedule.bind, Schedule.annotate),
        *(Schedule.unannotate, Schedule.add_unit_loop, Schedule.loop_partition),
        *(Schedule.compute_inline, Schedule.reverse_compute_inline, Schedule.compute_at),
        *(Schedule.reverse_compute_at, Schedule.cache_read, Schedule.cache_write),
        *(Schedule.reindex, Schedule.set_scope, Schedule.set_axis_separator),
        *(Schedule.storage_align, Schedule.store_at, Schedule.prefetch, Schedule.pad_einsum),
        *(Schedule.decompose_reduction, Schedule.merge_reduction, Schedule.rfactor),
        *(
            Schedule.blockize,
            Schedule.tensorize,
            Schedule.transform_layout,
            Schedule.transform_block_layout,
        ),
        *(Schedule.sample_perfect_tile, Schedule.sample_categorical),
        Schedule.sample_compute_location,
    )
}
"""What a trace may hold."""
