"""read_at: in each iteration of a loop, what a block reads there is copied, and read from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith.region import intersection
from unity.ir.prim_expr import Load, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Stmt
from unity.ir.visit import walk_stmt

from ....blocks.dataflow import addressed_in, checked, copy_nest, replaced_loads, stored
from ....blocks.motion import may_skip, refuse_shifting
from ....blocks.site import Site
from ....blocks.tree import (
    Outcome,
    Path,
    all_blocks,
    block_path,
    blocks_below,
    illegal,
    known_at,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
)
from ..location.compute_at import nest_over


def read_at(func: PrimFunc, name: str, index: int, var: PrimVar, scope: str) -> Outcome:
    """Each iteration of a loop begins by copying what the block reads of a buffer in it.

    As `cache_read` followed by `compute_at`, but the copy is one iteration's own, and the buffer
    may be made in the same nest, outside the loop.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its reads.
        var: A loop around it.
        scope: Of the copy: ``shared``, ``local`` ...

    Returns:
        The block that copies.

    Raises:
        UnityError: There is no such read; the loop is not around the block, or is vectorized; the
            buffer is made in the loop, or decides what the block runs over; the loop may be empty,
            and drives a reduction.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 10], c: f32[Buffer, 8, 3]) -> None:
    ...     for i, k in T.grid(8, 3):
    ...         with T.block("windows"):
    ...             vi, vk = T.axis.remap("SS", i, k)
    ...             c[vi, vk] = a[vi + vk]
    ... ''').prim_funcs()["main"])
    >>> copy = sch.read_at("windows", 0, sch.get_loops("windows")[0], "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10], c: f32[Buffer, 8, 3]) -> None:
        for i in range(8):
            a_local = T.alloc((10,), "float32", scope="local")
            for v0_at in range(3):
                with T.block("a_local"):
                    v0 = T.axis.spatial(10, v0_at + i)
                    a_local[v0] = a[v0]
            for k in range(3):
                with T.block("windows"):
                    vi, vk = T.axis.remap("SS", i, k)
                    c[vi, vk] = a_local[vi + vk]
    """
    where = "read_at, argument 2 'index'"
    path, block = block_path(func, name)
    if not 0 <= index < len(block.reads):
        raise illegal(where, f"{name!r} has {len(block.reads)} reads, got {index}")
    region = block.reads[index]
    buffer = region.buffer
    target, loop, site = site_in("read_at, argument 3 'loop'", func, path, var)
    refuse_if_used(where, loop, buffer, stored(loop.body) | addressed_in(loop.body))
    if buffer in site.decides_by():
        raise illegal(where, f"{buffer.name!r} decides what {name!r} runs over")
    whole = [Range(imm(0), n) for n in buffer.shape]
    known = known_at(target)
    ranges = [intersection(r, w, known) for r, w in zip(site.reached(region), whole, strict=True)]
    cache = beside(buffer, scope)
    copy = unique(cache.name, {b.name for b in all_blocks(func.body)})
    nest = copy_of(func, copy, cache, buffer, ranges, target)
    new = replaced_loads(block, buffer, lambda at: Load(cache, tuple(at)))
    body = replaced(replace(func, body=loop.body), [(block, new)]).body
    inner = replace(loop, body=Allocate(cache, sequence([nest, body])))
    return Outcome(checked(replaced(func, [(loop, inner)]), where), blocks=(copy,))


def site_in(where: str, func: PrimFunc, path: Path, var: PrimVar) -> tuple[Path, For, Site]:
    """A loop around a block, which is to have a copy of its own, and the block as seen from it."""
    target, loop = loop_path(func, var)
    block = path[-1]
    assert isinstance(block, Block)
    scope = scope_path(path)
    at = next((k for k, s in enumerate(scope) if s is loop), None)
    if at is None:
        raise illegal(where, f"it is not around {block.name!r}")
    if loop.kind in ("vectorized", "thread"):
        raise illegal(where, f"its iterations are {loop.kind}: none has memory of its own")
    why = may_skip(scope_path(target))
    if why is not None:
        raise illegal(where, why)
    refuse_shifting(where, func, path)
    above = scope[at + 1 : -1]
    return target, loop, Site(block, above, loops_of(above), known_at(path[:-1]), known_at(target))


def refuse_if_used(where: str, loop: For, buffer: Buffer, others: set[Buffer]) -> None:
    """Refuse a buffer that a loop allocates or others in it use."""
    if any(isinstance(s, Allocate) and s.buffer is buffer for s in walk_stmt(loop.body)):
        raise illegal(where, f"{buffer.name!r} is allocated in the loop")
    if any(s is buffer for b in blocks_below(loop) for s in b.allocations) or buffer in others:
        raise illegal(where, f"{buffer.name!r} is made in the loop by others")


def beside(buffer: Buffer, scope: str) -> Buffer:
    """A compact buffer like another, in some scope."""
    called = f"{buffer.name}_{scope.replace('.', '_')}"
    return replace(buffer, name=called, strides=None, scope=scope, separators=())


def copy_of(
    func: PrimFunc, name: str, to: Buffer, source: Buffer, ranges: Sequence[Range], at: Path
) -> Stmt:
    """A nest at a place that copies a part of a buffer to one of the same shape."""
    (block,) = blocks_below(copy_nest(name, to, source, source.shape, True, lambda i: i))
    over = {a.var: r for a, r in zip(block.axes, ranges, strict=True)}
    return nest_over(func, block, over, known_at(at))
