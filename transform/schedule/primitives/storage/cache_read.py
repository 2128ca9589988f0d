"""cache_read: a block reads a copy of a buffer in another scope."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import Load
from unity.ir.stmt import Allocate, Buffer, PrimFunc, Stmt
from unity.ir.visit import walk_stmt

from ....blocks.dataflow import allocated, checked, copy_nest, replaced_loads, stored, top_of
from ....blocks.tree import Outcome, all_blocks, block_path, illegal, replaced, sequence, unique


def cache_read(func: PrimFunc, name: str, index: int, scope: str) -> Outcome:
    """A copy of a buffer is made before the block's nest; the block reads that.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its reads.
        scope: Of the copy: ``shared``, ``local`` ...

    Returns:
        The block that copies.

    Raises:
        UnityError: There is no such read, or the buffer is made within the block's nest.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = a[vi] * 2.0
    ... ''').prim_funcs()["main"])
    >>> copy = sch.cache_read("double", 0, "shared")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        a_shared = T.alloc((8,), "float32", scope="shared")
        for ax0 in range(8):
            with T.block("a_shared"):
                v0 = T.axis.remap("S", ax0)
                a_shared[v0] = a[v0]
        for i in range(8):
            with T.block("double"):
                vi = T.axis.remap("S", i)
                c[vi] = a_shared[vi] * 2.0
    """
    path, block = block_path(func, name)
    where = "cache_read, argument 2 'index'"
    if not 0 <= index < len(block.reads):
        raise illegal(where, f"{name!r} has {len(block.reads)} reads, got {index}")
    buffer = block.reads[index].buffer
    top = top_of(path)
    refuse_if_made_inside(where, top, buffer)
    called = f"{buffer.name}_{scope.replace('.', '_')}"
    cache = replace(buffer, name=called, strides=None, scope=scope, separators=())
    new = replaced_loads(block, buffer, lambda at: Load(cache, tuple(at)))
    copy = unique(cache.name, {b.name for b in all_blocks(func.body)})
    nest = copy_nest(copy, cache, buffer, buffer.shape, True, lambda at: at)
    inner = replaced(replace(func, body=top), [(block, new)]).body
    both = sequence([nest, inner])
    return Outcome(checked(allocated(func, path, cache, top, both), where), blocks=(copy,))


def refuse_if_made_inside(where: str, top: Stmt, buffer: Buffer) -> None:
    """Refuse where a nest stores to a buffer or allocates it."""
    own = any(isinstance(s, Allocate) and s.buffer is buffer for s in walk_stmt(top))
    if own or buffer in stored(top):
        raise illegal(where, f"{buffer.name!r} is made within the block's nest")
