"""cache_write at a loop: in each iteration a block works on a copy of what it makes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, BlockAxis, Buffer, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import walk_stmt

from ....blocks.dataflow import accesses, checked, loaded, order_of, site_of
from ....blocks.legality import breach, late_init
from ....blocks.motion import may_skip, refuse_shifting
from ....blocks.site import Site
from ....blocks.tree import (
    Outcome,
    Path,
    all_blocks,
    block_path,
    driven,
    illegal,
    known_above,
    known_at,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
    with_buffers,
    with_regions,
)
from ..location.compute_at import nest_over


def cache_write_at(func: PrimFunc, name: str, index: int, scope: str, var: PrimVar) -> Outcome:
    """In each iteration of a loop, a block stores to a copy of what it makes there.

    Sums that other iterations began are loaded first, so that the loop may stand among those of
    the reduction: they wait in memory while others have the registers. Those that begin in the
    first iteration are not loaded then. After Exo's ``stage_mem``.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its writes.
        scope: Of the copy.
        var: A loop around the block.

    Returns:
        The block that copies back; before it, the one that loads, where there is one.

    Raises:
        UnityError: There is no such write; an iteration does not make a box of the buffer, or
            others touch it there; the init may come late.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 64], c: f32[Buffer, 8]) -> None:
    ...     for i, k in T.grid(8, 64):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> i, k = sch.get_loops("sum")
    >>> (tile, row), (run, step) = sch.split(i, [None, 4]), sch.split(k, [None, 16])
    >>> sch.reorder(run, tile, step, row)
    >>> stored = sch.cache_write("sum", 0, "local", tile)
    >>> init = sch.decompose_reduction("sum", step)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 64], c: f32[Buffer, 8]) -> None:
        for k_0, i_0 in T.grid(4, 2):
            c_local = T.alloc((8,), "float32", scope="local")
            for v0_at in range(4):
                with T.block("c_local_load"):
                    v0 = T.axis.spatial(8, i_0 * 4 + v0_at)
                    T.where(0 < k_0)
                    c_local[v0] = c[v0]
            for i_1 in range(4):
                with T.block("sum_init"):
                    vi = T.axis.spatial(8, i_0 * 4 + i_1)
                    T.where(k_0 < 1)
                    c_local[vi] = 0.0
            for k_1, i_1 in T.grid(16, 4):
                with T.block("sum"):
                    vi = T.axis.spatial(8, i_0 * 4 + i_1)
                    vk = T.axis.reduce(64, k_0 * 16 + k_1)
                    c_local[vi] += a[vi, vk]
            for v0_at in range(4):
                with T.block("c_local"):
                    v0 = T.axis.spatial(8, i_0 * 4 + v0_at)
                    c[v0] = c_local[v0]
    """
    path, block = block_path(func, name)
    target, loop = loop_path(func, var)
    where = "cache_write, argument 4 'at'"
    if not any(s is loop for s in scope_path(path)):
        raise illegal(where, f"it is not around {name!r}")
    if loop.kind == "vectorized":
        raise illegal(where, "it is vectorized already")
    if not 0 <= index < len(block.writes):
        raise illegal(
            "cache_write, argument 2 'index'",
            f"{name!r} has {len(block.writes)} writes, got {index}",
        )
    buffer = block.writes[index].buffer
    _refuse_others(func, path, loop, buffer)
    above = path[len(target) : -1]
    site = Site(block, above, loops_of(above), known_above(path), known_at(target))
    box = site.fills(buffer)
    if box is None:
        raise illegal(where, f"what {name!r} makes of {buffer.name!r} in an iteration is no box")
    begins = block.init is not None and buffer not in loaded(block.init)
    began = [x for x in loops_of(scope_path(target)) if "R" in driven(block, x.var)]
    if begins and began:
        why = late_init(site_of(path)) or may_skip(scope_path(target))
        if why is not None:
            raise illegal(where, why)
    cache = replace(
        buffer, name=f"{buffer.name}_{scope.replace('.', '_')}", strides=None, scope=scope,
        separators=(),
    )  # fmt: skip
    names = {b.name for b in all_blocks(func.body)}
    known = known_at(target)
    parts: list[Stmt] = []
    blocks: list[str] = []
    if began or (buffer in loaded(block) and not begins):
        again = _not_first(began) if begins else []
        blocks.append(unique(f"{cache.name}_load", names))
        parts.append(_copy(func, blocks[0], cache, buffer, box, known, again))
    new = with_buffers(block, {buffer: cache})
    parts.append(replaced(replace(func, body=loop.body), [(block, new)]).body)
    blocks.insert(0, unique(cache.name, names))
    parts.append(_copy(func, blocks[0], buffer, cache, box, known))
    inner = replace(loop, body=Allocate(cache, sequence(parts)))
    return Outcome(checked(replaced(func, [(loop, inner)]), where), blocks=tuple(blocks))


def _refuse_others(func: PrimFunc, path: Path, loop: For, buffer: Buffer) -> None:
    """Refuse where others touch a buffer in a loop, or iterations depend on more than axes say."""
    where, block = "cache_write, argument 1 'block'", path[-1]
    assert isinstance(block, Block)
    why = breach(site_of(path))
    if why is not None:
        raise illegal(where, why)
    refuse_shifting(where, func, path)
    start, end = order_of(func, loop)
    for access in (a for part in accesses(func, buffer) for a in part):
        if access.block is not block and start <= access.order <= end:
            raise illegal(where, f"{buffer.name!r} is touched by others within the loop")
    if any(isinstance(s, Allocate) and s.buffer is buffer for s in walk_stmt(loop)):
        raise illegal(where, f"{buffer.name!r} is allocated within the loop")


def _copy(
    func: PrimFunc,
    name: str,
    to: Buffer,
    source: Buffer,
    box: Sequence[Range],
    known: Analyzer,
    conditions: Sequence[PrimExpr] = (),
) -> Stmt:
    """A nest that copies a box from one buffer to the same place in another."""
    axes = tuple(
        BlockAxis(PrimVar(f"v{k}"), "S", Range(imm(0), size), imm(0))
        for k, size in enumerate(to.shape)
    )
    point = tuple(a.var for a in axes)
    block = with_regions(Block(name, axes, (), (), Store(to, point, Load(source, point))))
    return nest_over(func, block, dict(zip(point, box, strict=True)), known, conditions)


def _not_first(loops: Sequence[For]) -> list[PrimExpr]:
    """The condition that not all of some loops are in their first iterations."""
    condition: PrimExpr | None = None
    for x in loops:
        later = Compare("lt", x.begin, x.var)
        condition = later if condition is None else Binary("or", condition, later)
    return [] if condition is None else [condition]
