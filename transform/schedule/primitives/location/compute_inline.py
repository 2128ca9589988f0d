"""compute_inline: a block's formula goes where its result is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import PrimFunc
from unity.ir.visit import substitute_prim

from ....blocks.dataflow import (
    accesses,
    axes_of_index,
    checked,
    is_param,
    loaded,
    order_of,
    plain_store,
    replaced_loads,
    site_of,
    sole_store,
    without_unused,
)
from ....blocks.legality import uses_loop
from ....blocks.motion import unsettled
from ....blocks.tree import NOTHING, Outcome, Values, block_path, illegal, replaced


def compute_inline(func: PrimFunc, name: str) -> Outcome:
    """Without a block: what reads its result computes it.

    Args:
        func: The prim func.
        name: A block that stores one formula, indexed by its axes, in a temporary.

    Raises:
        UnityError: It is no such block, others store there too, or what it reads changes before
            its result is read.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[vi] = a[vi] * 2.0
    ...     for i in range(8):
    ...         with T.block("flip"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = t[7 - vi]
    ... ''').prim_funcs()["main"])
    >>> sch.compute_inline("double")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("flip"):
                vi = T.axis.remap("S", i)
                c[vi] = a[7 - vi] * 2.0
    """
    where = "compute_inline, argument 1 'block'"
    path, block = block_path(func, name)
    store = plain_store(block)
    if store is None:
        raise illegal(where, f"{name!r} is more than the store of one formula")
    buffer, value = store.buffer, store.value
    axes = axes_of_index(store.indices, block)
    if axes is None or len(axes) != len(block.axes):
        raise illegal(where, f"{name!r} does not index {buffer.name!r} by its axes, each once")
    if is_param(func, buffer):
        raise illegal(where, f"it stores to {buffer.name!r}, a parameter")
    if not sole_store(block, buffer, func) or buffer in loaded(block):
        raise illegal(where, f"it is not all that makes {buffer.name!r}")
    _, loads = accesses(func, buffer)
    start, _ = order_of(func, block)
    if any(a.order < start for a in loads):
        raise illegal(where, f"{buffer.name!r} is read before it")
    name_used = uses_loop(site_of(path))
    if name_used is not None:
        raise illegal(where, f"it uses {name_used!r} other than by an axis")
    why = unsettled(func, block, path, [a.path for a in loads])
    if why is not None:
        raise illegal(where, why)

    def at(indices: Sequence[PrimExpr]) -> PrimExpr:
        values: Values = {a.var: i for a, i in zip(axes, indices, strict=True)}
        return substitute_prim(value, values)

    removed = replaced(func, [(block, NOTHING)])
    inlined = replace(removed, body=replaced_loads(removed.body, buffer, at))
    return Outcome(checked(without_unused(inlined), where))
