"""fuse_reduction_epilogue: what is joined to a reduction's result is what it begins with."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import covers
from unity.ir.prim_expr import Binary, Load, PrimExpr, imm
from unity.ir.stmt import Block, PrimFunc, Range, Store
from unity.ir.visit import prim_loads, substitute_prim

from ....blocks.dataflow import (
    accesses,
    axes_of_index,
    checked,
    is_param,
    loaded,
    order_of,
    plain_store,
    site_of,
    sole_store,
    spans,
    without_unused,
)
from ....blocks.legality import breach, late_init
from ....blocks.motion import made_late
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Path,
    Values,
    block_path,
    driven,
    illegal,
    loops_of,
    replaced,
    with_regions,
)
from .partial_results import reduction_of

EPILOGUE = "fuse_reduction_epilogue, argument 2 'epilogue'"


def fuse_reduction_epilogue(func: PrimFunc, name: str, epilogue: str) -> Outcome:
    """A block that joins a bias to a reduction's result goes into the reduction's init.

    The bias is joined first instead of last, by the operation that reduces: a sum begins with it,
    a maximum with its bound. Sums of floats may round differently, as with `rfactor`. After TVM's
    ``fuse_reduction_epilogue``.

    Args:
        func: The prim func.
        name: A block that reduces one formula to a temporary.
        epilogue: A block that stores what the temporary holds, joined to something else by the
            operation of the reduction (or less something, of a sum); nothing else reads it.

    Raises:
        UnityError: They are no such pair, or what the epilogue reads is not there earlier.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], b: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
    ...     t = T.alloc((4,), "float32")
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 t[vi] = 0.0
    ...             t[vi] += a[vi, vk]
    ...     for i in range(4):
    ...         with T.block("bias"):
    ...             vi = T.axis.spatial(4, i)
    ...             c[vi] = t[vi] + b[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.fuse_reduction_epilogue("sum", "bias")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], b: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    c[vi] = 0.0 + b[vi]
                c[vi] += a[vi, vk]
    """
    where = "fuse_reduction_epilogue, argument 1 'block'"
    path, block = block_path(func, name)
    after, last = block_path(func, epilogue)
    if block.init is None:
        raise illegal(where, f"{name!r} has no init")
    reduction, step = reduction_of(where, block)
    buffer = step.buffer
    if is_param(func, buffer) or not sole_store(block, buffer, func):
        raise illegal(where, f"{buffer.name!r} is a parameter, or others store to it")
    site = site_of(path)
    why = breach(site) or late_init(site)
    if why is not None:
        raise illegal(where, why)
    box = site.fills(buffer)
    if box is None or not covers(box, [Range(imm(0), n) for n in buffer.shape], site.known):
        raise illegal(where, f"it is not known to make all of {buffer.name!r}")
    store, joined = _joined(last, step, reduction.op)
    axes = axes_of_index(joined.indices, last)
    own = site_of(after)
    if axes is None or len(axes) != len(last.axes):
        raise illegal(EPILOGUE, f"it reads {buffer.name!r} elsewhere than at its axes")
    if not spans(axes, buffer.shape, own.known) or not own.covers_domain():
        raise illegal(EPILOGUE, f"it does not run over all of {buffer.name!r}")
    why = breach(own) or made_late(func, after, path, loaded(last) - {buffer})
    if why is not None:
        raise illegal(EPILOGUE, why)
    _refuse_others(func, path, after, store, joined)
    values: Values = {a.var: i for a, i in zip(axes, step.indices, strict=True)}
    place = tuple(substitute_prim(i, values) for i in store.indices)
    here = Load(store.buffer, place)
    begin = _with(store.value, joined, reduction.init, values)
    new = replace(
        block,
        init=Store(store.buffer, place, begin),
        body=Store(store.buffer, place, Binary(reduction.op, here, reduction.value)),
    )
    func = replaced(func, [(last, NOTHING), (block, with_regions(new))])
    return Outcome(checked(without_unused(func), where))


def _joined(last: Block, step: Store, op: str) -> tuple[Store, Load]:
    """The epilogue's store, and its load of what is reduced."""
    store = plain_store(last)
    if store is None:
        raise illegal(EPILOGUE, f"{last.name!r} is more than the store of one formula")
    match store.value:
        case Binary(joins, Load() as a, b) if a.buffer is step.buffer:
            load, other = a, b
            fits = joins == op or (joins == "sub" and op == "add")
        case Binary(joins, a, Load() as b) if b.buffer is step.buffer:
            load, other, fits = b, a, joins == op
        case _:
            raise illegal(EPILOGUE, f"{last.name!r} does not join something to what is reduced")
    if not fits or load.predicate is not None or store.buffer.dtype != step.buffer.dtype:
        raise illegal(EPILOGUE, f"it does not join it by the {op!r} that reduces")
    if any(e.buffer in (step.buffer, store.buffer) for e in prim_loads(other)):
        raise illegal(EPILOGUE, "what it joins depends on what is reduced, or stored")
    return store, load


def _with(value: PrimExpr, joined: Load, init: PrimExpr, values: Values) -> PrimExpr:
    """The epilogue's formula of what the reduction began with, over the reduction's axes."""
    assert isinstance(value, Binary)
    a, b = (init if e is joined else substitute_prim(e, values) for e in (value.a, value.b))
    return Binary(value.op, a, b)


def _refuse_others(func: PrimFunc, path: Path, after: Path, store: Store, joined: Load) -> None:
    """Refuse where others use what is reduced, or touch before what the epilogue stores to."""
    block, last = path[-1], after[-1]
    assert isinstance(block, Block)
    start, here = order_of(func, block)[0], order_of(func, last)[0]
    if start > here:
        raise illegal(EPILOGUE, f"it stands before {block.name!r}")
    for loop in loops_of(path):
        if any(loop is s for s in after) and driven(block, loop.var) - {"S"}:
            raise illegal(EPILOGUE, f"{block.name!r} is complete only after {loop.var.name!r}")
    readers = (a.block for a in accesses(func, joined.buffer)[1])
    if any(b is not block and b is not last for b in readers):
        raise illegal(EPILOGUE, f"others read {joined.buffer.name!r}, too")
    stores, loads = accesses(func, store.buffer)
    if any(a.block is not last for a in stores) or any(a.order <= here for a in loads):
        raise illegal(EPILOGUE, f"{store.buffer.name!r} is touched before it")
