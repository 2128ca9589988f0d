"""blockize_body: what a loop does in an iteration as one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import extremes
from unity.ir.prim_expr import Binary, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, For, PrimFunc, Range, Stmt
from unity.ir.visit import map_stmts, substitute_prim, substitute_stmt, variables

from ....blocks.dataflow import checked, site_of
from ....blocks.legality import breach
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    block_path,
    blocks_below,
    illegal,
    is_zero,
    known_above,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    unique,
    with_regions,
)

WHERE = "blockize_body, argument 1 'loop'"


def blockize_body(func: PrimFunc, var: PrimVar) -> Outcome:
    """A block around all that an iteration of a loop does, whose axes are the loops around.

    What is inside is a kernel of its own: its loops are those within the block, axes count from
    where the loops around stand (those that stand still are gone), and steps do not see these.

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
    known = known_above(path)
    for axis in axes:
        known = known.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
    body = _within(substitute_stmt(loop.body, at), around, known)
    name = unique(f"{inside[-1].name}_o", {b.name for b in all_blocks(func.body)})
    whole = with_regions(Block(name, axes, (), (), body))
    done = replaced(func, [(loop, replace(loop, body=whole))])
    why = breach(site_of(block_path(done, name)[0]))
    if why is not None:
        raise illegal(WHERE, why)
    return Outcome(checked(done, WHERE), blocks=(name,))


def _within(s: Stmt, around: Sequence[PrimVar], known: Analyzer) -> Stmt:
    """The body of a block over some axes: the axes of blocks in it count from where these stand."""

    def go(x: Stmt, loops: tuple[For, ...]) -> Stmt:
        match x:
            case For():
                return map_stmts(x, lambda y: go(y, (*loops, x)))
            case Block():
                return with_regions(_from_there(x, loops, known), around)
            case _:
                return map_stmts(x, lambda y: go(y, loops))

    return go(s, ())


def _from_there(block: Block, loops: Sequence[For], known: Analyzer) -> Block:
    """A block whose spatial axes say what the loops within do; those that none moves are gone."""
    here: Values = {x.var: x.begin for x in loops}
    over = {x.var: Range(x.begin, x.extent) for x in loops}
    values: Values = {}
    axes: list[BlockAxis] = []
    for axis in block.axes:
        base = known.simplify(substitute_prim(axis.value, here))
        inside = variables(axis.value) <= here.keys()
        if axis.kind != "S" or (inside and variables(axis.value) and is_zero(base)):
            axes.append(axis)
            continue
        rest = known.simplify(Binary("sub", axis.value, base))
        ends = extremes(rest, over, known) if variables(rest) <= here.keys() else None
        if not variables(axis.value) & here.keys():
            values[axis.var] = axis.value
        elif ends is None or not is_zero(ends[0]):
            axes.append(axis)
        else:
            extent = known.simplify(Binary("add", ends[1], imm(1)))
            values[axis.var] = axis.var if is_zero(base) else Binary("add", base, axis.var)
            axes.append(replace(axis, domain=Range(imm(0), extent), value=rest))
    init = None if block.init is None else substitute_stmt(block.init, values)
    return replace(block, axes=tuple(axes), body=substitute_stmt(block.body, values), init=init)
