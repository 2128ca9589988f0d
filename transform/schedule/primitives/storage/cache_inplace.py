"""cache_inplace: a nest updates a copy of a buffer, which is copied back behind it."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.stmt import Allocate, PrimFunc
from unity.ir.visit import walk_stmt

from ....blocks.dataflow import addressed_in, allocated, checked, copy_nest, top_of
from ....blocks.tree import (
    Outcome,
    all_blocks,
    block_path,
    illegal,
    sequence,
    unique,
    with_buffers,
)


def cache_inplace(func: PrimFunc, name: str, index: int, scope: str) -> Outcome:
    """A buffer that a block reads and writes is copied, updated there, and copied back.

    All of the block's nest goes to the copy. Where `cache_write` refuses a block that starts from
    what the buffer holds, this takes it there first.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its reads: of a buffer that it writes, too.
        scope: Of the copy: ``shared``, ``local`` ...

    Returns:
        The block that copies in, and the one that copies out.

    Raises:
        UnityError: There is no such read, the block does not write there, the buffer is made within
            the nest, or a foreign function gets its address there.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         with T.block("add"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = c[vi] + a[vi]
    ... ''').prim_funcs()["main"])
    >>> copy_in, copy_out = sch.cache_inplace("add", "c", "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        c_local = T.alloc((8,), "float32", scope="local")
        for ax0 in range(8):
            with T.block("c_local"):
                v0 = T.axis.remap("S", ax0)
                c_local[v0] = c[v0]
        for i in range(8):
            with T.block("add"):
                vi = T.axis.remap("S", i)
                c_local[vi] += a[vi]
        for ax0 in range(8):
            with T.block("c_back"):
                v0 = T.axis.remap("S", ax0)
                c[v0] = c_local[v0]
    """
    path, block = block_path(func, name)
    where = "cache_inplace, argument 2 'index'"
    if not 0 <= index < len(block.reads):
        raise illegal(where, f"{name!r} has {len(block.reads)} reads, got {index}")
    buffer = block.reads[index].buffer
    if all(r.buffer is not buffer for r in block.writes):
        raise illegal(where, f"{name!r} does not write {buffer.name!r}", "cache_read copies it")
    top = top_of(path)
    if any(isinstance(s, Allocate) and s.buffer is buffer for s in walk_stmt(top)):
        raise illegal(where, f"{buffer.name!r} is allocated within the block's nest")
    if buffer in addressed_in(top):
        raise illegal(where, f"a foreign function gets the address of {buffer.name!r}")
    called = f"{buffer.name}_{scope.replace('.', '_')}"
    cache = replace(buffer, name=called, strides=None, scope=scope, separators=())
    names = {b.name for b in all_blocks(func.body)}
    copy_in, copy_out = unique(called, names), unique(f"{buffer.name}_back", names)
    parts = (
        copy_nest(copy_in, cache, buffer, buffer.shape, True, lambda at: at),
        with_buffers(top, {buffer: cache}),
        copy_nest(copy_out, buffer, cache, buffer.shape, False, lambda at: at),
    )
    done = checked(allocated(func, path, cache, top, sequence(parts)), where)
    return Outcome(done, blocks=(copy_in, copy_out))
