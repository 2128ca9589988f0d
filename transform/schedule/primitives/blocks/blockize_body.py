"""blockize_body: what a loop does in an iteration as one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Block, BlockAxis, For, PrimFunc, Range, Stmt
from unity.ir.visit import map_stmt, substitute_prim, substitute_stmt

from ....blocks.dataflow import checked, site_of
from ....blocks.legality import breach
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    block_path,
    blocks_below,
    illegal,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    unique,
    variables,
    with_regions,
)

WHERE = "blockize_body, argument 1 'loop'"


def blockize_body(func: PrimFunc, var: PrimVar) -> Outcome:
    """A block around all that an iteration of a loop does, whose axes are the loops around.

    What is inside is a kernel of its own: its loops are those within the block, axes that stand
    still there are gone, and steps on it do not see what is around.

    Args:
        func: The prim func.
        var: The loop.

    Returns:
        The block, which has the name of the last one in it.

    Raises:
        UnityError: Iterations of the loops around depend on one another, or may.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     for i in range(4):
    ...         t = T.alloc((1,), "float32")
    ...         for k in range(8):
    ...             with T.block("sum"):
    ...                 vi, vk = T.axis.remap("SR", i, k)
    ...                 with T.init():
    ...                     t[0] = 0.0
    ...                 t[0] += a[vi, vk]
    ...         for j in range(8):
    ...             with T.block("share"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 c[vi, vj] = a[vi, vj] / t[0]
    ... ''').prim_funcs()["main"])
    >>> row = sch.blockize_body(sch.get_loops("sum")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        for i in range(4):
            with T.block("share_o"):
                vi_o = T.axis.remap("S", i)
                t = T.alloc((1,), "float32")
                for k in range(8):
                    with T.block("sum"):
                        vk = T.axis.remap("R", k)
                        with T.init():
                            t[0] = 0.0
                        t[0] += a[vi_o, vk]
                for j in range(8):
                    with T.block("share"):
                        vj = T.axis.remap("S", j)
                        c[vi_o, vj] = a[vi_o, vj] / t[0]
    """
    path, loop = loop_path(func, var)
    loops = loops_of(scope_path(path))
    inside = blocks_below(loop)
    if not inside:
        raise illegal(WHERE, "it holds no block")
    looped = {x.var for x in loops}
    for x in loops:
        if (variables(x.begin) | variables(x.extent)) & looped:
            raise illegal(WHERE, f"the bounds of {x.var.name!r} are other loops'")
        if x.kind not in ("serial", "parallel"):
            raise illegal(WHERE, f"{x.var.name!r} is {x.kind}")
    axes = tuple(
        BlockAxis(PrimVar(f"v{x.var.name}_o"), "S", Range(x.begin, x.extent), x.var) for x in loops
    )
    at: Values = {x.var: a.var for x, a in zip(loops, axes, strict=True)}
    around = [a.var for a in axes]
    body = _within(substitute_stmt(loop.body, at), around)
    name = unique(f"{inside[-1].name}_o", {b.name for b in all_blocks(func.body)})
    whole = with_regions(Block(name, axes, (), (), body))
    done = replaced(func, [(loop, replace(loop, body=whole))])
    why = breach(site_of(block_path(done, name)[0]))
    if why is not None:
        raise illegal(WHERE, why)
    return Outcome(checked(done, WHERE), blocks=(name,))


def _within(s: Stmt, around: Sequence[PrimVar]) -> Stmt:
    """The body of a block over some axes: blocks in it lose theirs that no loop moves."""

    def go(x: Stmt, moving: frozenset[PrimVar]) -> Stmt:
        match x:
            case For():
                below = moving | {x.var}
                return map_stmt(x, lambda y: go(y, below), lambda e: e)
            case Block():
                return with_regions(_without_still(x, moving), around)
            case _:
                return map_stmt(x, lambda y: go(y, moving), lambda e: e)

    return go(s, frozenset())


def _without_still(block: Block, moving: frozenset[PrimVar]) -> Block:
    still: Values = {
        a.var: a.value for a in block.axes if a.kind == "S" and not variables(a.value) & moving
    }
    axes = tuple(
        replace(
            a,
            domain=Range(
                substitute_prim(a.domain.begin, still), substitute_prim(a.domain.extent, still)
            ),
        )
        for a in block.axes
        if a.var not in still
    )
    init = None if block.init is None else substitute_stmt(block.init, still)
    return replace(block, axes=axes, body=substitute_stmt(block.body, still), init=init)
