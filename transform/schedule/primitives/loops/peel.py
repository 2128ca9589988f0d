"""peel: the first iterations of a loop, and the last, in loops of their own."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import greater, lesser
from unity.errors import UnityError
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, PrimFunc, Store
from unity.ir.visit import substitute_stmt

from ....blocks.extents import number
from ....blocks.tree import (
    Outcome,
    Values,
    block_path,
    blocks_below,
    driven,
    illegal,
    known_above,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    with_regions,
)
from ..reduction.partial_results import reduction_of
from .loop_partition import intervals


def peel(func: PrimFunc, var: PrimVar, first: int = 1, last: int = 0) -> Outcome:
    """The first iterations of a loop before it and the last ones behind it.

    Where one step of a sum is left in the first part, it sets what the others add to: no pass over
    memory is needed to begin. Choices (`T.select`) that are the same in all of a part are made. The
    first part keeps the blocks' names and the loop's variable, the others have copies:
    `get_child_blocks` of a loop gives their names.

    Args:
        func: The prim func.
        var: The loop.
        first: How many iterations to take from its begin.
        last: How many to take from its end; fewer where there are no more.

    Returns:
        The loops, in order: one where no iterations are taken from an end.

    Raises:
        UnityError: A number is negative, or both are 0; the loop has a kind; it drives a reduction
            and its first part may be empty.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 16], c: f32[Buffer, 16]) -> None:
    ...     for k, i in T.grid(8, 16):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vk, vi]
    ... ''').prim_funcs()["main"])
    >>> begin, rest = sch.peel(sch.get_loops("sum")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 16], c: f32[Buffer, 16]) -> None:
        for k, i in T.grid(1, 16):
            with T.block("sum"):
                vi = T.axis.remap("S", i)
                c[vi] = a[0, vi]
        for k in range(1, 8):
            for i in range(16):
                with T.block("sum_1"):
                    vi = T.axis.spatial(16, i)
                    vk = T.axis.reduce(8, k)
                    c[vi] += a[vk, vi]
    """
    path, loop = loop_path(func, var)
    for k, (name, count) in enumerate((("first", first), ("last", last)), 2):
        if count < 0:
            raise illegal(f"peel, argument {k} '{name}'", f"it must not be negative, got {count}")
    if not first and not last:
        raise illegal("peel, argument 2 'first'", "nothing is taken from either end")
    known = known_above(path)
    ends: list[PrimExpr] = []
    if first:
        ends.append(lesser(imm(first), loop.extent, known))
    if last:
        least = ends[0] if ends else imm(0)
        rest = known.simplify(Binary("sub", loop.extent, imm(last)))
        ends.append(greater(rest, least, known))
    done = intervals("peel, argument 1 'loop'", func, path, ends)
    if number(loop_path(done.func, var)[1].extent) != 1:
        return done
    return replace(done, func=_begun(done.func, var))


def _begun(func: PrimFunc, var: PrimVar) -> PrimFunc:
    """With reductions of a single step, in a loop, that set what they would add to."""
    for below in blocks_below(loop_path(func, var)[1]):
        path, block = block_path(func, below.name)
        steps = [x for x in loops_of(scope_path(path)) if "R" in driven(block, x.var)]
        mine = block.init is not None and "R" in driven(block, var)
        if mine and all(number(x.extent) == 1 for x in steps):
            func = replaced(func, [(block, _single(block))])
    return func


def _single(block: Block) -> Block:
    """A reduction of one step as a block that stores it; itself where that is no formula."""
    try:
        reduction, store = reduction_of("peel", block)
    except UnityError:
        return block
    at: Values = {a.var: a.domain.begin for a in block.axes if a.kind == "R"}
    value = reduction.value
    if reduction.init != reduction.identity:
        value = Binary(reduction.op, reduction.init, value)
    body = substitute_stmt(Store(store.buffer, store.indices, value), at)
    spatial = tuple(a for a in block.axes if a.kind != "R")
    return with_regions(replace(block, axes=spatial, init=None, body=body))
