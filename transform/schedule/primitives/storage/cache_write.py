"""cache_write: a block writes to a buffer in another scope, which is copied out behind it."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import covers
from unity.ir.prim_expr import imm
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Range, Stmt
from unity.ir.visit import walk_stmt

from ....blocks.dataflow import (
    accesses,
    allocated,
    checked,
    copy_nest,
    loaded,
    site_of,
    top_of,
)
from ....blocks.legality import breach
from ....blocks.motion import refuse_shifting
from ....blocks.tree import (
    Outcome,
    all_blocks,
    block_path,
    illegal,
    replaced,
    sequence,
    unique,
    with_buffers,
)


def cache_write(func: PrimFunc, name: str, index: int, scope: str) -> Outcome:
    """The block stores to a buffer of its own; behind its nest, that is copied to the old one.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its writes.
        scope: Of the new buffer: ``shared``, ``local`` ...

    Returns:
        The block that copies.

    Raises:
        UnityError: There is no such write; the block does not make all of the buffer, or others
            touch it within the nest.

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
    >>> copy = sch.cache_write("double", 0, "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        c_local = T.alloc((8,), "float32", scope="local")
        for i in range(8):
            with T.block("double"):
                vi = T.axis.remap("S", i)
                c_local[vi] = a[vi] * 2.0
        for ax0 in range(8):
            with T.block("c_local"):
                v0 = T.axis.remap("S", ax0)
                c[v0] = c_local[v0]
    """
    path, block = block_path(func, name)
    where = "cache_write, argument 2 'index'"
    if not 0 <= index < len(block.writes):
        raise illegal(where, f"{name!r} has {len(block.writes)} writes, got {index}")
    buffer = block.writes[index].buffer
    top = top_of(path)
    refuse_if_shared(where, func, block, buffer, top)
    box = site_of(path).fills(buffer)
    known = site_of(path).known
    if box is None or not covers(box, [Range(imm(0), n) for n in buffer.shape], known):
        raise illegal(where, f"the block is not known to write all of {buffer.name!r}")
    called = f"{buffer.name}_{scope.replace('.', '_')}"
    cache = replace(buffer, name=called, strides=None, scope=scope, separators=())
    copy = unique(cache.name, {b.name for b in all_blocks(func.body)})
    nest = copy_nest(copy, buffer, cache, buffer.shape, False, lambda at: at)
    new = with_buffers(block, {buffer: cache})
    inner = replaced(replace(func, body=top), [(block, new)]).body
    both = sequence([inner, nest])
    return Outcome(checked(allocated(func, path, cache, top, both), where), blocks=(copy,))


def refuse_if_shared(where: str, func: PrimFunc, block: Block, buffer: Buffer, top: Stmt) -> None:
    """Refuse where others store to a buffer in a call that does, or touch it within a nest."""
    path, _ = block_path(func, block.name)
    if not all(a.block is block for a in accesses(func, buffer, path)[0]):
        raise illegal(where, f"others store to {buffer.name!r} too")
    begins = block.init is not None and buffer not in loaded(block.init)
    if buffer in loaded(block) and not begins:
        raise illegal(where, f"the block starts from what {buffer.name!r} holds before")
    why = breach(site_of(path))
    if why is not None:
        raise illegal(where, why)
    refuse_shifting(where, func, path)
    within = list(walk_stmt(top))
    for access in accesses(func, buffer)[1]:
        if access.block is not block and any(access.path[-1] is s for s in within):
            raise illegal(where, f"{buffer.name!r} is read within the block's nest")
    if any(isinstance(s, Allocate) and s.buffer is buffer for s in within):
        raise illegal(where, f"{buffer.name!r} is allocated within the block's nest")
