"""rfactor: a reduction in two stages, the first with partial results for each step of a loop."""

from __future__ import annotations

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Block, For, PrimFunc

from ....blocks.dataflow import top_of
from ....blocks.tree import (
    Outcome,
    Path,
    blocks_below,
    driven,
    illegal,
    loop_path,
    loops_of,
    scope_path,
)
from .partial_results import factored, reduced_by, reduction_of


def rfactor(
    func: PrimFunc, var: PrimVar, factor_axis: int = 0, at: PrimVar | None = None
) -> Outcome:
    """Partial results over a reduce loop, then a reduction of those.

    Args:
        func: The prim func.
        var: A loop that drives reduce axes of one block.
        factor_axis: Where the loop's axis stands in the buffer of partial results.
        at: A loop around all loops of the reduction: each iteration has partial results of its
            own, which are local, and reduces them. None to have them all, and a nest that reduces
            them.

    Returns:
        The block that makes the partial results; the old one reduces them.

    Raises:
        UnityError: The block is no sum, product, minimum, maximum ... of a formula; the loop is
            not one of its reduction.

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
    >>> _, inner = sch.split(sch.get_loops("sum")[1], [None, 4])
    >>> partial = sch.rfactor(inner, 1)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        c_rf = T.alloc((4, 4), "float32")
        for i, k_0, k_1 in T.grid(4, 2, 4):
            with T.block("sum_rf"):
                vi, vk_1, vk_0 = T.axis.remap("SSR", i, k_1, k_0)
                with T.init():
                    c_rf[vi, vk_1] = 0.0
                c_rf[vi, vk_1] += a[vi, vk_0 * 4 + vk_1]
        for i, k_1 in T.grid(4, 4):
            with T.block("sum"):
                vi, vk_1 = T.axis.remap("SR", i, k_1)
                with T.init():
                    c[vi] = 0.0
                c[vi] += c_rf[vi, vk_1]
    """
    where = "rfactor, argument 1 'loop'"
    path, loop = reduced_by(where, func, var)
    block, top = path[-1], top_of(path)
    assert isinstance(block, Block)
    rank = len(reduction_of(where, block)[1].buffer.shape)
    if not 0 <= factor_axis <= rank:
        raise illegal(
            "rfactor, argument 2 'factor_axis'", f"{factor_axis} is above the rank {rank}"
        )
    if at is not None:
        root = _root(func, path, at)
        done = factored(where, func, path, loop, factor_axis, root, "rf", "local")
        return Outcome(done.func, blocks=done.blocks)
    if not isinstance(top, For) or len(blocks_below(top)) != 1:
        raise illegal(where, f"{block.name!r} is not alone in its nest")
    done = factored(where, func, path, loop, factor_axis, top, "rf", None)
    return Outcome(done.func, blocks=done.blocks)


def _root(func: PrimFunc, path: Path, at: PrimVar) -> For:
    """The outermost loop that reduces, in a loop around it."""
    where, block = "rfactor, argument 3 'at'", path[-1]
    assert isinstance(block, Block)
    outer, loops = loop_path(func, at)[1], loops_of(scope_path(path))
    place = next((k for k, x in enumerate(loops) if x is outer), None)
    if place is None:
        raise illegal(where, f"it is not around {block.name!r}")
    reduces = [k for k, x in enumerate(loops) if "R" in driven(block, x.var)]
    if reduces[0] <= place:
        raise illegal(where, f"{loops[reduces[0]].var.name!r}, which reduces, is not in it")
    return loops[reduces[0]]
