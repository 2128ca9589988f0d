"""rfactor: a reduction in two stages, the first with partial results for each step of a loop."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, For, PrimFunc, Range, Store
from unity.ir.visit import prim_loads, substitute_prim, substitute_stmt

from ....blocks.dataflow import accesses, allocated, checked, order_of, site_of, top_of
from ....blocks.legality import breach, late_init
from ....blocks.nest import Reduction
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    all_blocks,
    around,
    block_path,
    blocks_below,
    conjunction,
    driven,
    illegal,
    is_zero,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
    variables,
    with_regions,
)


def rfactor(func: PrimFunc, var: PrimVar, factor_axis: int = 0) -> Outcome:
    """Partial results over a reduce loop, then a reduction of those.

    Args:
        func: The prim func.
        var: A loop that drives reduce axes of one block.
        factor_axis: Where the loop's axis stands in the buffer of partial results.

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
    _, loop = loop_path(func, var)
    below = blocks_below(loop)
    if len(below) != 1:
        raise illegal(where, "it holds not one block")
    path, block = block_path(func, below[0].name)
    loops = loops_of(scope_path(path))
    reduction, store = _reduction(where, block)
    buffer = store.buffer
    if not 0 <= factor_axis <= len(buffer.shape):
        rank = len(buffer.shape)
        raise illegal(
            "rfactor, argument 2 'factor_axis'", f"{factor_axis} is above the rank {rank}"
        )
    if driven(block, var) != {"R"} or loop.kind != "serial":
        raise illegal(where, f"it is no serial loop that drives reduce axes of {block.name!r} only")
    reduces = [x for x in loops if "R" in driven(block, x.var)]
    if any(driven(block, x.var) != {"R"} or not is_zero(x.begin) for x in reduces):
        raise illegal(where, f"loops of {block.name!r} drive spatial and reduce axes")
    site = site_of(path)
    why = breach(site) or late_init(site)
    if why is not None:
        raise illegal(where, why)
    if any(variables(x.extent) & {y.var for y in loops} for x in loops):
        raise illegal(where, "bounds of loops depend on other loops")
    top = top_of(path)
    if not isinstance(top, For) or len(blocks_below(top)) != 1:
        raise illegal(where, f"{block.name!r} is not alone in its nest")
    start, end = order_of(func, top)
    for access in (a for part in accesses(func, buffer) for a in part):
        if access.block is not block and start <= access.order <= end:
            raise illegal(where, f"{buffer.name!r} is touched within the nest")
    return _factored(func, path, loop, reduction, store, factor_axis)


def _reduction(where: str, block: Block) -> tuple[Reduction, Store]:
    init, body = block.init, block.body
    if isinstance(init, Store) and isinstance(body, Store):
        here = Load(body.buffer, body.indices)
        same = (init.buffer, init.indices) == (body.buffer, body.indices)
        match body.value:
            case Binary("add" | "mul" | "min" | "max" | "and" | "or" as op, a, b) if same:
                value = b if a == here else a
                others = prim_loads(value)
                if here in (a, b) and not any(e.buffer is body.buffer for e in others):
                    result = PrimVar("result", value.dtype)
                    return Reduction(op, (), value, init.value, result), body
            case _:
                pass
    raise illegal(where, f"{block.name!r} does not reduce one formula by an operation with a zero")


def _factored(
    func: PrimFunc,
    path: Path,
    loop: For,
    reduction: Reduction,
    store: Store,
    factor_axis: int,
) -> Outcome:
    block, top, loops = path[-1], top_of(path), loops_of(scope_path(path))
    assert isinstance(block, Block)
    buffer = store.buffer
    shape = [*buffer.shape]
    shape.insert(factor_axis, loop.extent)
    partial = Buffer(f"{buffer.name}_rf", tuple(shape), buffer.dtype)
    names = {b.name for b in all_blocks(func.body)}
    first = unique(f"{block.name}_rf", names)
    spatial = [a for a in block.axes if a.kind == "S"]
    lanes = PrimVar(f"v{loop.var.name}")
    rest = [x for x in loops if "R" in driven(block, x.var) and x is not loop]
    own = [BlockAxis(PrimVar(f"v{x.var.name}"), "R", Range(imm(0), x.extent), x.var) for x in rest]
    mine = BlockAxis(lanes, "S", Range(imm(0), loop.extent), loop.var)
    over: Values = {loop.var: lanes, **{x.var: a.var for x, a in zip(rest, own, strict=True)}}
    values: Values = {a.var: substitute_prim(a.value, over) for a in block.axes if a.kind == "R"}
    at = [*store.indices]
    at.insert(factor_axis, lanes)
    place = tuple(at)
    parts = conjuncts(block.predicate) if block.predicate is not None else ()
    reducing = {x.var for x in (*rest, loop)}
    value: PrimExpr = substitute_prim(reduction.value, values)
    inner = conjunction([substitute_prim(p, over) for p in parts if variables(p) & reducing])
    if inner is not None:
        value = Select(inner, value, reduction.identity)
    outer = conjunction([p for p in parts if not variables(p) & reducing])
    made = with_regions(
        Block(
            first,
            (*spatial, mine, *own),
            (),
            (),
            Store(partial, place, Binary(reduction.op, Load(partial, place), value)),
            Store(partial, place, reduction.identity) if own else None,
            outer,
        )
    )
    if not own:
        made = with_regions(replace(made, body=Store(partial, place, value)))
    second, nest = _second(block, loops, loop, store, partial, place, mine, outer, reduction)
    assert second.name == block.name
    body = replaced(replace(func, body=top), [(block, made)]).body
    both = sequence([body, nest])
    where = "rfactor, argument 1 'loop'"
    return Outcome(checked(allocated(func, path, partial, top, both), where), blocks=(first,))


def _second(
    block: Block,
    loops: tuple[For, ...],
    loop: For,
    store: Store,
    partial: Buffer,
    place: tuple[PrimExpr, ...],
    mine: BlockAxis,
    outer: PrimExpr | None,
    reduction: Reduction,
) -> tuple[Block, For | Block]:
    """The block that reduces partial results, in its nest."""
    kept = [x for x in loops if "R" not in driven(block, x.var)] + [loop]
    axes = [
        BlockAxis(PrimVar(a.var.name), "S", a.domain, a.value) for a in block.axes if a.kind == "S"
    ]
    last = BlockAxis(PrimVar(mine.var.name), "R", mine.domain, mine.value)
    old = [a.var for a in block.axes if a.kind == "S"] + [mine.var]
    values: Values = dict(zip(old, [a.var for a in (*axes, last)], strict=True))
    body = Store(
        store.buffer,
        store.indices,
        Binary(reduction.op, Load(store.buffer, store.indices), Load(partial, place)),
    )
    init = block.init
    assert init is not None
    new = Block(
        block.name,
        (*axes, last),
        (),
        (),
        substitute_stmt(body, values),
        substitute_stmt(init, values),
        outer,
        attrs=block.attrs,
    )
    fresh: Values = {x.var: PrimVar(x.var.name, x.var.dtype) for x in kept}
    serial = [replace(x, kind="serial", thread=None) for x in kept]
    nest = substitute_stmt(around(serial, with_regions(new)), fresh)
    assert isinstance(nest, For | Block)
    return new, nest
