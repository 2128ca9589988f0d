"""skip_padding: steps of a reduction that read padding are not done."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import PrimFunc
from unity.ir.visit import prim_loads, rewrite_prim

from ....blocks.nest import padded_choice
from ....blocks.tree import (
    Outcome,
    block_path,
    bound_to,
    conjunction,
    illegal,
    replaced,
    with_regions,
)
from .partial_results import reduction_of


def skip_padding(func: PrimFunc, name: str) -> Outcome:
    """Steps of a reduction run where they read an element, none where that is padding.

    The condition of ``T.select(within, element, 0)`` becomes the block's predicate. Loops over taps
    are cut to those that see an element then, and written-out ones to the pixels that do. What
    padding is multiplied by is taken to be finite.

    Args:
        func: The prim func.
        name: A block without an init that reduces a formula with one such choice.

    Raises:
        UnityError: The block has an init, which is to come first (`decompose_reduction`); it is no
            reduction with one choice; the padding changes the result; the choice loads something.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], w: f32[Buffer, 3], c: f32[Buffer, 8]) -> None:
    ...     for i, k in T.grid(8, 3):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += T.select(vi + vk >= 1 and vi + vk < 9, a[vi + vk - 1], 0.0) * w[vk]
    ... ''').prim_funcs()["main"])
    >>> init = sch.decompose_reduction("sum", sch.get_loops("sum")[1])
    >>> sch.skip_padding("sum")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], w: f32[Buffer, 3], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("sum_init"):
                vi = T.axis.remap("S", i)
                c[vi] = 0.0
            for k in range(3):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    T.where(i + k >= 1 and i + k < 9)
                    c[vi] += a[vi + vk - 1] * w[vk]
    """
    where = "skip_padding, argument 1 'block'"
    _, block = block_path(func, name)
    if block.init is not None:
        raise illegal(where, f"{name!r} has an init", "decompose_reduction makes it another block")
    reduction, store = reduction_of(where, block)
    choice = padded_choice(reduction)
    if choice is None:
        raise illegal(where, f"{name!r} makes no choice, or one of which both parts count")
    if prim_loads(choice.condition):
        raise illegal(where, "the choice loads what it depends on")

    def chosen(e: PrimExpr) -> PrimExpr | None:
        return choice.then if e == choice else None

    taken = replace(store, value=rewrite_prim(store.value, chosen))
    own = () if block.predicate is None else conjuncts(block.predicate)
    within = conjuncts(bound_to(choice.condition, block.axes))
    update = with_regions(replace(block, body=taken, predicate=conjunction([*own, *within])))
    return Outcome(replaced(func, [(block, update)]))
