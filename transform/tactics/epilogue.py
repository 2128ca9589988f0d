"""Fusing what is done to a reduction's result behind it: bias and activation in the write-back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.prim_expr import Load, PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Store
from unity.ir.visit import rewrite_stmt, substitute_stmt

from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, is_formula


def fused(nest: Nest, consumer: Nest, *, padded: bool = False) -> Nest | None:
    """One stage for a reduction and the elementwise stage that reads its output point by point.

    Args:
        nest: The reduction; nothing but the consumer reads its output.
        consumer: The stage after it.
        padded: Whether there may be more sums than it takes; the stage is then over those.

    Returns:
        The stage, which no longer stores the reduction's output; None if they do not fit.
    """
    if nest.reduction is None or consumer.reduction is not None:
        return None
    if not isinstance(nest.finish, Store) or not is_formula(consumer.finish):
        return None
    buffer, points = nest.finish.buffer, nest.finish.indices
    reads = [x for x in consumer.loads() if x.buffer is buffer]
    if not reads or any(store.buffer is buffer for store in consumer.stores()):
        return None
    places = _axes_of_index(reads[0].indices, consumer)
    if places is None or any(x.indices != reads[0].indices for x in reads):
        return None
    here: dict[PrimExpr, Axis] = dict(zip(points, places, strict=True))
    values: dict[PrimVar | SizeVar, PrimExpr] = {}
    axes: list[Axis] = []
    for axis in nest.axes:
        there = here.get(axis.var)
        if there is None or not (there.extent == axis.extent or (padded and _fewer(there, axis))):
            return None
        values[there.var] = axis.var
        axes.append(replace(axis, extent=there.extent))
    if len(values) != len(consumer.axes):
        return None
    moved = substitute_stmt(consumer.finish, values)
    value = nest.finish.value

    def on_load(e: Load) -> PrimExpr | None:
        return value if e.buffer is buffer else None

    finish = rewrite_stmt(moved, None, load_fn=on_load)
    return replace(nest, axes=tuple(axes), finish=finish, output=consumer.output)


def _fewer(axis: Axis, other: Axis) -> bool:
    some, all_of_them = number(axis.extent), number(other.extent)
    return some is not None and all_of_them is not None and some < all_of_them


def _axes_of_index(indices: Sequence[PrimExpr], consumer: Nest) -> list[Axis] | None:
    """The axes that index an element, each once; None if something else does."""
    by_var = {a.var: a for a in consumer.axes}
    found = [by_var.get(i) for i in indices if isinstance(i, PrimVar)]
    axes = [a for a in found if a is not None]
    return axes if len(axes) == len(indices) == len({a.var for a in axes}) else None
