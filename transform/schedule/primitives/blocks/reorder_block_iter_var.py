"""reorder_block_iter_var: a block's axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.stmt import PrimFunc

from ....blocks.tree import Outcome, block_path, illegal, replaced


def reorder_block_iter_var(func: PrimFunc, name: str, order: Sequence[int]) -> Outcome:
    """The axes of a block change places; its loops stay, and so does what it computes.

    Steps that make a new nest for a block (`compute_at`, `transform_block_layout`, `tensorize`)
    take its axes in their order.

    Args:
        func: The prim func.
        name: The block.
        order: For each place, the number of the axis that comes there.

    Raises:
        UnityError: The order is none of the block's axes.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 8, 4]) -> None:
    ...     for i, j in T.grid(8, 4):
    ...         with T.block("flip"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vj, vi]
    ... ''').prim_funcs()["main"])
    >>> sch.reorder_block_iter_var("flip", [1, 0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 8, 4]) -> None:
        for i, j in T.grid(8, 4):
            with T.block("flip"):
                vj, vi = T.axis.remap("SS", j, i)
                c[vi, vj] = a[vj, vi]
    """
    _, block = block_path(func, name)
    if sorted(order) != list(range(len(block.axes))):
        last = len(block.axes) - 1
        why = f"it holds each number from 0 to {last} once, got {list(order)}"
        raise illegal("reorder_block_iter_var, argument 2 'order'", why)
    axes = tuple(block.axes[k] for k in order)
    return Outcome(replaced(func, [(block, replace(block, axes=axes))]))
