"""write_at: what a block makes in an iteration of a loop is copied out at its end."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Allocate, PrimFunc

from ....blocks.dataflow import accesses, addressed_in, checked, loaded, site_of
from ....blocks.legality import breach
from ....blocks.tree import (
    Outcome,
    all_blocks,
    block_path,
    driven,
    illegal,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
    with_buffers,
)
from .read_at import beside, copy_of, refuse_if_used, site_in


def write_at(func: PrimFunc, name: str, index: int, var: PrimVar, scope: str) -> Outcome:
    """Each iteration of a loop ends by copying out what the block made of a buffer in it.

    As `cache_write` followed by `reverse_compute_at`, but the copy is one iteration's own.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its writes.
        var: A loop around it, inside of which it reduces.
        scope: Of the copy: ``shared``, ``local`` ...

    Returns:
        The block that copies.

    Raises:
        UnityError: There is no such write; the loop is not around the block, or is vectorized; what
            the block writes in an iteration is no known box, not complete in it, or touched by
            others there.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> copy = sch.write_at("sum", 0, sch.get_loops("sum")[0], "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        for i in range(4):
            c_local = T.alloc((4,), "float32", scope="local")
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        c_local[vi] = 0.0
                    c_local[vi] += a[vi, vk]
            for v0_at in range(1):
                with T.block("c_local"):
                    v0 = T.axis.spatial(4, v0_at + i)
                    c[v0] = c_local[v0]
    """
    where = "write_at, argument 2 'index'"
    path, block = block_path(func, name)
    if not 0 <= index < len(block.writes):
        raise illegal(where, f"{name!r} has {len(block.writes)} writes, got {index}")
    buffer = block.writes[index].buffer
    target, loop, site = site_in("write_at, argument 3 'loop'", func, path, var)
    inner_func = replace(func, body=loop.body)
    touching = (a for part in accesses(inner_func, buffer) for a in part)
    others = {buffer} if any(a.block is not block for a in touching) else set()
    refuse_if_used(where, loop, buffer, others | addressed_in(loop.body))
    begins = block.init is not None and buffer not in loaded(block.init)
    if (buffer in loaded(block) and not begins) or buffer in site.decides_by():
        raise illegal(where, f"the block starts from what {buffer.name!r} holds before")
    why = breach(site_of(path))
    if why is not None:
        raise illegal(where, why)
    for outer in loops_of(scope_path(target)):
        if driven(block, outer.var) - {"S"}:
            why = f"{buffer.name!r} is complete only after {outer.var.name!r}"
            raise illegal("write_at, argument 3 'loop'", why)
    box = site.fills(buffer)
    if box is None:
        raise illegal(where, f"what is made of {buffer.name!r} in an iteration is no known box")
    cache = beside(buffer, scope)
    copy = unique(cache.name, {b.name for b in all_blocks(func.body)})
    nest = copy_of(func, copy, buffer, cache, box, target)
    new = with_buffers(block, {buffer: cache})
    body = replaced(inner_func, [(block, new)]).body
    inner = replace(loop, body=Allocate(cache, sequence([body, nest])))
    return Outcome(checked(replaced(func, [(loop, inner)]), where), blocks=(copy,))
