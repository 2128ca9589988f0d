"""reverse_compute_inline: a block's formula goes where what it reads is made."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.foreign import foreign_symbol
from unity.ir.prim_expr import Load, PrimExpr
from unity.ir.stmt import Block, Buffer, Let, PrimFunc, Stmt, Store
from unity.ir.visit import (
    prim_loads,
    rewrite_stmt,
    stmt_exprs,
    substitute_stmt,
    walk_stmt,
)

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
from ....blocks.legality import reaches_once, uses_loop
from ....blocks.motion import made_late
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Values,
    all_blocks,
    block_path,
    illegal,
    replaced,
    with_regions,
)


def reverse_compute_inline(func: PrimFunc, name: str) -> Outcome:
    """Without a block: the one that makes what it reads stores its result instead.

    Args:
        func: The prim func.
        name: A block that stores one formula, parts of which may have names, of a temporary's
            element at its axes; nothing else reads the temporary, which one block without a
            reduction makes.

    Raises:
        UnityError: It is no such block.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("flip"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[7 - vi] = a[vi]
    ...     for i in range(8):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = t[vi] * 2.0
    ... ''').prim_funcs()["main"])
    >>> sch.reverse_compute_inline("double")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("flip"):
                vi = T.axis.remap("S", i)
                c[7 - vi] = a[vi] * 2.0
    """
    where = "reverse_compute_inline, argument 1 'block'"
    path, block = block_path(func, name)
    store = plain_store(replace(block, body=_last(block.body)))
    if store is None:
        raise illegal(where, f"{name!r} is more than the store of one formula")
    reads = [x for s in walk_stmt(block.body) for e in stmt_exprs(s) for x in prim_loads(e)]
    inner = [b for b in dict.fromkeys(e.buffer for e in reads) if not is_param(func, b)]
    makers = [maker for b in inner if (maker := _maker(func, block, b)) is not None]
    if not makers:
        raise illegal(where, "no block without a reduction makes what it alone reads")
    order = [b.name for b in all_blocks(func.body)]
    maker = max(makers, key=lambda b: order.index(b.name))  # what it reads else is made before
    made = maker.body
    assert isinstance(made, Store)
    indices = [e.indices for e in reads if e.buffer is made.buffer]
    axes = axes_of_index(indices[0], block)
    site = site_of(path)
    if axes is None or len(axes) != len(block.axes) or any(i != indices[0] for i in indices):
        raise illegal(where, f"it reads {made.buffer.name!r} elsewhere than at its axes")
    if not spans(axes, made.buffer.shape, site.known) or not site.covers_domain():
        raise illegal(where, f"it does not run over all of {made.buffer.name!r}")
    maker_path, _ = block_path(func, maker.name)
    why = made_late(func, path, maker_path, loaded(block) - {made.buffer})
    if why is not None:
        raise illegal(where, why)
    stores, loads = accesses(func, store.buffer, path)
    here, _ = order_of(func, block)
    if any(a.block is not block for a in stores) or any(a.order <= here for a in loads):
        raise illegal(where, f"{store.buffer.name!r} is touched before it")
    maker_site = site_of(maker_path)
    if store.buffer in loaded(block) and not reaches_once(maker_site):
        raise illegal(where, f"the loops may reach points of {maker.name!r} more than once")
    for each in (site, maker_site):
        used = uses_loop(each)
        if used is not None:
            raise illegal(where, f"{each.block.name!r} uses {used!r} other than by an axis")
    values: Values = {a.var: i for a, i in zip(axes, made.indices, strict=True)}

    def taken(e: PrimExpr) -> PrimExpr | None:
        return made.value if isinstance(e, Load) and e.buffer is made.buffer else None

    body = rewrite_stmt(substitute_stmt(block.body, values), None, taken)
    new = with_regions(replace(maker, body=body))
    func = replaced(func, [(block, NOTHING), (maker, new)])
    return Outcome(checked(without_unused(func), where))


def _last(s: Stmt) -> Stmt:
    """What stands behind values that are given names; a call of C code stays, as it is refused."""
    while isinstance(s, Let) and foreign_symbol(s.value) is None:
        s = s.body
    return s


def _maker(func: PrimFunc, reader: Block, buffer: Buffer) -> Block | None:
    """The block that makes all of what only `reader` reads."""
    for b in all_blocks(func.body):
        store = plain_store(b)
        if store is None or store.buffer is not buffer or b is reader:
            continue
        others = [a for a in accesses(func, store.buffer)[1] if a.block is not reader]
        if sole_store(b, store.buffer, func) and not others:
            return b
    return None
