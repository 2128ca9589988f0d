"""Steps that change where values lie: copies, scopes, layouts."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.dtype import dtype as dtype_of
from unity.script.printer import text

from .. import primitives as p
from ..arguments import step
from ..condition import ConditionLike, condition_of
from ..index_map import AnyMap, as_map
from ..refs import AnyBlock, BlockRef, LoopRef, Memory
from ..state import State, as_ref, name_of


class StorageSteps(State):
    """Steps that change where values lie."""

    @step
    def cache_read(self, block: AnyBlock, index: int | str, scope: Memory) -> BlockRef:
        """A block reads a copy of a buffer; gives the block that copies."""
        self._require_scope("cache_read", scope)
        done = p.cache_read(self.func, *self._at_access("cache_read", block, index, "read"), scope)
        return self._block("cache_read", (as_ref(block), index, scope), done)

    @step
    def cache_write(
        self, block: AnyBlock, index: int | str, scope: Memory, at: LoopRef | None = None
    ) -> BlockRef:
        """A block writes to a buffer that is copied out, perhaps in a loop; gives that block."""
        self._require_scope("cache_write", scope)
        name, k = self._at_access("cache_write", block, index, "write")
        if at is None:
            done = p.cache_write(self.func, name, k, scope)
            return self._block("cache_write", (as_ref(block), index, scope), done)
        done = p.cache_write_at(self.func, name, k, scope, self._var(at))
        return self._block("cache_write", (as_ref(block), index, scope, at), done)

    @step
    def cache_index(
        self, block: AnyBlock, scope: Memory, threshold: int = 0
    ) -> tuple[BlockRef, ...]:
        """Indices that a block computes to read by stand in tables; gives what makes these."""
        done = p.cache_index(self.func, name_of(block), scope, threshold)
        return self._blocks("cache_index", (as_ref(block), scope, threshold), done)

    @step
    def cache_operand(self, block: AnyBlock, index: int, scope: Memory) -> BlockRef:
        """A factor of a product is computed beforehand; gives the block that does so."""
        self._require_scope("cache_operand", scope)
        done = p.cache_operand(self.func, name_of(block), index, scope)
        return self._block("cache_operand", (as_ref(block), index, scope), done)

    @step
    def cache_inplace(
        self, block: AnyBlock, index: int | str, scope: Memory
    ) -> tuple[BlockRef, ...]:
        """A block updates a copy of a buffer; gives the blocks that copy in and out."""
        self._require_scope("cache_inplace", scope)
        name, k = self._at_access("cache_inplace", block, index, "read")
        done = p.cache_inplace(self.func, name, k, scope)
        return self._blocks("cache_inplace", (as_ref(block), index, scope), done)

    @step
    def read_at(self, block: AnyBlock, index: int | str, loop: LoopRef, scope: Memory) -> BlockRef:
        """Each iteration of a loop copies what a block reads in it; gives the block that copies."""
        self._require_scope("read_at", scope)
        name, k = self._at_access("read_at", block, index, "read")
        done = p.read_at(self.func, name, k, self._var(loop), scope)
        return self._block("read_at", (as_ref(block), index, loop, scope), done)

    @step
    def write_at(self, block: AnyBlock, index: int | str, loop: LoopRef, scope: Memory) -> BlockRef:
        """Each iteration of a loop copies out what a block made; gives the block that copies."""
        self._require_scope("write_at", scope)
        name, k = self._at_access("write_at", block, index, "write")
        done = p.write_at(self.func, name, k, self._var(loop), scope)
        return self._block("write_at", (as_ref(block), index, loop, scope), done)

    @step
    def reindex(self, block: AnyBlock, kind: str, index: int | str) -> BlockRef:
        """A block accesses a copy laid out by its axes; gives the block that copies."""
        name, k = self._at_access("reindex", block, index, kind)
        done = p.reindex(self.func, name, kind, k)
        return self._block("reindex", (as_ref(block), kind, index), done)

    @step
    def reindex_cache_read(
        self,
        block: AnyBlock,
        index: int | str,
        scope: Memory,
        index_map: AnyMap,
        place: int | None = None,
    ) -> BlockRef:
        """A block reads a copy laid out by a map of its axes; gives the block that copies."""
        self._require_scope("reindex_cache_read", scope)
        m = as_map(index_map)
        name, k = self._at_access("reindex_cache_read", block, index, "read")
        done = p.reindex_cache_read(self.func, name, k, scope, m, place)
        given = () if place is None else (place,)
        return self._block("reindex_cache_read", (as_ref(block), index, scope, m, *given), done)

    @step
    def reindex_cache_write(
        self, block: AnyBlock, index: int | str, scope: Memory, index_map: AnyMap
    ) -> BlockRef:
        """A block writes to a copy laid out by a map of its axes; gives the block that copies."""
        self._require_scope("reindex_cache_write", scope)
        m = as_map(index_map)
        name, k = self._at_access("reindex_cache_write", block, index, "write")
        done = p.reindex_cache_write(self.func, name, k, scope, m)
        return self._block("reindex_cache_write", (as_ref(block), index, scope, m), done)

    @step
    def set_dtype(self, block: AnyBlock, index: int | str, dtype: str) -> None:
        """A temporary of floats that a block writes holds them as wider ones."""
        name, k = self._at_access("set_dtype", block, index, "write")
        done = p.set_dtype(self.func, name, k, dtype_of(dtype))
        self._do("set_dtype", (as_ref(block), index, dtype), done)

    @step
    def set_scope(self, block: AnyBlock, index: int | str, scope: Memory) -> None:
        """The scope of a temporary that a block writes."""
        self._require_scope("set_scope", scope)
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
    def compact_buffer(self, block: AnyBlock, index: int | str) -> None:
        """A temporary that a block writes is as large as what an iteration uses of it."""
        access = self._at_access("compact_buffer", block, index, "write")
        done = p.compact_buffer(self.func, *access)
        self._do("compact_buffer", (as_ref(block), index), done)

    @step
    def store_in(
        self, block: AnyBlock, index: int | str, other: AnyBlock, place: int | str
    ) -> None:
        """A temporary that a block writes lies where another block writes later."""
        name, k = self._at_access("store_in", block, index, "write")
        host, at = self._at_access("store_in", other, place, "write")
        done = p.store_in(self.func, name, k, host, at)
        self._do("store_in", (as_ref(block), index, as_ref(other), place), done)

    @step
    def stream_stores(self, parameter: int | str) -> None:
        """What is stored to a parameter, by its name or place, goes past the caches."""
        self._do("stream_stores", (parameter,), p.stream_stores(self.func, parameter))

    @step
    def rolling_buffer(self, block: AnyBlock, index: int | str, loop: LoopRef) -> None:
        """Iterations of a loop leave to the next what it needs of a temporary, too."""
        name, k = self._at_access("rolling_buffer", block, index, "write")
        done = p.rolling_buffer(self.func, name, k, self._var(loop))
        self._do("rolling_buffer", (as_ref(block), index, loop), done)

    @step
    def prefetch(
        self,
        block: AnyBlock,
        index: int | str,
        loop: LoopRef,
        at: LoopRef,
        shared_by: LoopRef | None = None,
        distance: int = 1,
        when: ConditionLike | None = None,
        all_share: bool = False,
        sharers: int | None = None,
    ) -> BlockRef:
        """What a block reads in a later iteration of a loop is asked for; gives what asks."""
        shared = None if shared_by is None else self._var(shared_by)
        ahead, here = self._var(loop), self._var(at)
        name, k = self._at_access("prefetch", block, index, "read")
        fact = None if when is None else condition_of(when, self.func)
        shares = all_share, sharers
        done = p.prefetch(self.func, name, k, ahead, here, shared, distance, fact, *shares)
        said = None if fact is None else text(fact)
        args = (as_ref(block), index, loop, at, shared_by, distance, said, *shares)
        return self._block("prefetch", args, done)

    @step
    def transform_layout(self, block: AnyBlock, index: int | str, index_map: AnyMap) -> None:
        """A temporary that a block writes, laid out by an index map."""
        m = as_map(index_map)
        done = p.transform_layout(
            self.func, *self._at_access("transform_layout", block, index, "write"), m
        )
        self._do("transform_layout", (as_ref(block), index, m), done)
