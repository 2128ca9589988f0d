"""merge_reduction: a block that sets what another adds to becomes that one's init."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import covers
from unity.ir.equality import structural_equal
from unity.ir.prim_expr import imm
from unity.ir.stmt import PrimFunc, Range, Store
from unity.ir.visit import substitute_stmt

from ....blocks.dataflow import (
    accesses,
    axes_of_index,
    checked,
    loaded,
    order_of,
    plain_store,
    site_of,
)
from ....blocks.legality import breach, late_init
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Values,
    block_path,
    illegal,
    loops_of,
    replaced,
    with_regions,
)


def merge_reduction(func: PrimFunc, init: str, update: str) -> Outcome:
    """The inverse of `decompose_reduction`.

    Args:
        func: The prim func.
        init: A block that stores one formula, over all of a buffer.
        update: A block with reduce axes that alone goes on from there.

    Raises:
        UnityError: They are no such pair.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         with T.block("zero"):
    ...             vi = T.axis.spatial(4, i)
    ...             c[vi] = 0.0
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> sch.merge_reduction("zero", "sum")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    c[vi] = 0.0
                c[vi] += a[vi, vk]
    """
    where = "merge_reduction, argument 1 'init'"
    first_path, first = block_path(func, init)
    path, block = block_path(func, update)
    store = plain_store(first)
    if store is None or loaded(first):
        raise illegal(where, f"{init!r} is more than the store of one value")
    buffer = store.buffer
    axes = axes_of_index(store.indices, first)
    box = site_of(first_path).fills(buffer)
    known = site_of(first_path).known
    if axes is None or box is None or len(axes) != len(first.axes):
        raise illegal(where, f"it does not store to {buffer.name!r} at its axes")
    if not covers(box, [Range(imm(0), n) for n in buffer.shape], known):
        raise illegal(where, f"it does not store to all of {buffer.name!r}")
    where = "merge_reduction, argument 2 'update'"
    body = block.body
    if block.init is not None or not isinstance(body, Store) or body.buffer is not buffer:
        raise illegal(where, f"{update!r} is no store to {buffer.name!r} without an init")
    places = axes_of_index(body.indices, block)
    spatial = [a for a in block.axes if a.kind == "S"]
    if places is None or len(places) != len(spatial) or any(a.kind != "S" for a in places):
        raise illegal(where, f"it does not store to {buffer.name!r} at its spatial axes")
    if len(spatial) == len(block.axes) or any(a.kind == "O" for a in block.axes):
        raise illegal(where, "it has no reduce axis")
    stores, loads = accesses(func, buffer)
    start, end = order_of(func, first)[1], order_of(func, block)[0]
    if start > end:
        raise illegal(where, f"it stands before {init!r}")
    if any(a.block is not first and a.block is not block for a in stores):
        raise illegal(where, f"others store to {buffer.name!r} too")
    if any(a.block is not block and a.order < end for a in loads):
        raise illegal(where, f"{buffer.name!r} is read before it")
    shared = [s for s in loops_of(path) if any(s is x for x in first_path)]
    site = site_of(path)
    why = breach(site) or late_init(site)
    if shared or why is not None or not site.covers_domain():
        raise illegal(where, why or "it is not known to reach each point, behind all of the init")
    if not structural_equal(tuple(a.domain for a in axes), tuple(a.domain for a in places)):
        raise illegal(where, "its spatial axes run over something else")
    values: Values = {a.var: p.var for a, p in zip(axes, places, strict=True)}
    new = with_regions(replace(block, init=substitute_stmt(store, values)))
    return Outcome(checked(replaced(func, [(first, NOTHING), (block, new)]), where))
