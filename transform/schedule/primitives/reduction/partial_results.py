"""Partial results of a reduction, one for each step of a loop, and the block that joins them."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, BlockAxis, Buffer, For, PrimFunc, Range, Store
from unity.ir.visit import prim_loads, substitute_prim, substitute_stmt, variables, walk_stmt

from ....blocks.combine import step_of
from ....blocks.dataflow import accesses, allocated, checked, order_of, site_of
from ....blocks.legality import breach, late_init, reaches_once
from ....blocks.nest import Reduction
from ....blocks.site import Site
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
    known_above,
    loop_path,
    loops_of,
    replaced,
    sequence,
    unique,
    with_regions,
)


def reduced_by(where: str, func: PrimFunc, var: PrimVar) -> tuple[Path, For]:
    """The way to the one block whose reduction a loop drives, and the loop.

    Raises:
        UnityError: It drives something else, or is no serial loop from 0.
    """
    _, loop = loop_path(func, var)
    below = blocks_below(loop)
    if len(below) != 1:
        raise illegal(where, "it holds not one block")
    path, block = block_path(func, below[0].name)
    if driven(block, var) != {"R"} or loop.kind != "serial" or not is_zero(loop.begin):
        raise illegal(where, f"it is no serial loop that drives reduce axes of {block.name!r} only")
    return path, loop


def factored(
    where: str,
    func: PrimFunc,
    path: Path,
    loop: For,
    factor_axis: int,
    root: For,
    suffix: str,
    scope: str | None,
) -> Outcome:
    """Partial results over a loop, and behind a nest the block that joins them.

    Args:
        where: The argument to blame.
        func: The prim func.
        path: The way to the block.
        loop: Drives reduce axes of it only.
        factor_axis: Where the loop's axis stands in the buffer of partial results.
        root: The nest: all loops of the reduction are in it.
        suffix: What the names of new things end with.
        scope: Of the partial results, which are then allocated around the nest; None for the
            block's whole scope, in the memory where the result lies.

    Returns:
        The loops around the block that joins, in that nest, and the block of the partial results.
    """
    block = path[-1]
    assert isinstance(block, Block)
    reduction, store = reduction_of(where, block)
    at = next(k for k, s in enumerate(path) if s is root)
    loops = loops_of(path[at:])
    reduces = [x for x in loops if "R" in driven(block, x.var)]
    if any(driven(block, x.var) != {"R"} for x in reduces):
        raise illegal(where, f"loops of {block.name!r} drive spatial and reduce axes")
    _refuse_unknown(where, func, path, root, store.buffer)
    shape = [*store.buffer.shape]
    shape.insert(factor_axis, loop.extent)
    partial = Buffer(
        f"{store.buffer.name}_{suffix}",
        tuple(shape),
        store.buffer.dtype,
        scope=scope or "global",
    )
    first = unique(f"{block.name}_{suffix}", {b.name for b in all_blocks(func.body)})
    mine = BlockAxis(PrimVar(f"v{loop.var.name}"), "S", Range(imm(0), loop.extent), loop.var)
    place = [*store.indices]
    place.insert(factor_axis, mine.var)
    parts = conjuncts(block.predicate) if block.predicate is not None else ()
    steps = {x.var for x in reduces}
    outer = conjunction([p for p in parts if not variables(p) & steps])
    inner = [p for p in parts if variables(p) & steps]
    rest = [x for x in reduces if x is not loop]
    made = _first(first, block, reduction, Load(partial, tuple(place)), mine, rest, inner, outer)
    second, nest = _second(block, loops, loop, store, partial, tuple(place), mine, outer, reduction)
    assert second.name == block.name
    body = replaced(replace(func, body=root), [(block, made)]).body
    both = sequence([body, nest])
    if scope is None:
        done = allocated(func, path, partial, root, both)
    else:
        done = replaced(func, [(root, Allocate(partial, both))])
    joining = tuple(s.var for s in walk_stmt(nest) if isinstance(s, For))
    return Outcome(checked(done, where), joining, (first,))


def _refuse_unknown(where: str, func: PrimFunc, path: Path, root: For, buffer: Buffer) -> None:
    """Refuse what is not known to add up to the same in another order, behind a nest."""
    block = path[-1]
    assert isinstance(block, Block)
    at = next(k for k, s in enumerate(path) if s is root)
    loops = loops_of(path[at:])
    site = Site(block, path[at:-1], loops, known_above(path))
    why = breach(site_of(path))
    if why is None and block.init is not None:
        why = late_init(site)
    elif why is None and not (site.is_certain and reaches_once(site)):
        why = f"the loops may reach points of the reduction {block.name!r} more than once"
    if why is not None:
        raise illegal(where, why)
    inside = {y.var for y in loops}
    if any((variables(x.begin) | variables(x.extent)) & inside for x in loops):
        raise illegal(where, "bounds of loops depend on other loops")
    start, end = order_of(func, root)
    for access in (a for part in accesses(func, buffer) for a in part):
        if access.block is not block and start <= access.order <= end:
            raise illegal(where, f"{buffer.name!r} is touched within the nest")


def reduction_of(where: str, block: Block) -> tuple[Reduction, Store]:
    """What a block reduces, and the store that does a step; refuses one that is no such.

    A block without an init goes on from what is there.
    """
    init, body = block.init, block.body
    if isinstance(init, Store | None) and isinstance(body, Store) and body.predicate is None:
        here = Load(body.buffer, body.indices)
        same = init is None or (
            (init.buffer, init.indices) == (body.buffer, body.indices) and init.predicate is None
        )
        step = step_of(body) if same else None
        if step is not None and not any(e.buffer is body.buffer for e in prim_loads(step[1])):
            op, value = step
            start = here if init is None else init.value
            return Reduction(op, (), value, start, PrimVar("result", value.dtype)), body
    raise illegal(where, f"{block.name!r} does not reduce one formula by an operation with a zero")


def _first(
    name: str,
    block: Block,
    reduction: Reduction,
    here: Load,
    mine: BlockAxis,
    rest: list[For],
    inner: list[PrimExpr],
    outer: PrimExpr | None,
) -> Block:
    """The block that makes partial results, each over the rest of the reduction's loops."""
    spatial = [a for a in block.axes if a.kind == "S"]
    own = [BlockAxis(PrimVar(f"v{x.var.name}"), "R", Range(x.begin, x.extent), x.var) for x in rest]
    loop = mine.value
    assert isinstance(loop, PrimVar)
    over: Values = {loop: mine.var, **{x.var: a.var for x, a in zip(rest, own, strict=True)}}
    known = Analyzer()
    for axis in (mine, *own):
        known = known.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
    values: Values = {
        a.var: known.simplify(substitute_prim(a.value, over)) for a in block.axes if a.kind == "R"
    }
    value: PrimExpr = substitute_prim(reduction.value, values)
    condition = conjunction([known.simplify(substitute_prim(p, over)) for p in inner])
    if condition is not None:
        value = Select(condition, value, reduction.identity)
    buffer, place = here.buffer, here.indices
    init = Store(buffer, place, reduction.identity) if own else None
    body = Store(buffer, place, Binary(reduction.op, here, value) if own else value)
    return with_regions(Block(name, (*spatial, mine, *own), (), (), body, init, outer))


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
    new = Block(
        block.name,
        (*axes, last),
        (),
        (),
        substitute_stmt(body, values),
        None if block.init is None else substitute_stmt(block.init, values),
        outer,
        attrs=block.attrs,
    )
    fresh: Values = {x.var: PrimVar(x.var.name, x.var.dtype) for x in kept}
    serial = [replace(x, kind="serial", thread=None) for x in kept]
    nest = substitute_stmt(around(serial, with_regions(new)), fresh)
    assert isinstance(nest, For | Block)
    return new, nest
