"""What a block relies on that is to run at another time, or in a nest of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unity.arith.region import covers
from unity.ir.prim_expr import Compare, imm
from unity.ir.stmt import Block, Buffer, For, PrimFunc, PrimWhile, Stmt
from unity.ir.visit import prim_loads

from .dataflow import Access, accesses, loaded, order_of, site_of, stored
from .legality import breach, calls_foreign, commutes, keeps_order, late_init, uses_loop
from .site import Site, sites
from .tree import Path, blocks_below, driven, illegal, known_above, known_at, loops_of, scope_path


def refuse_moved(where: str, func: PrimFunc, path: Path, at: Path = ()) -> None:
    """Refuse to run a block elsewhere if it is more than its signature says.

    Args:
        where: The argument that names it.
        func: The prim func.
        path: The way to the block.
        at: The way to where it is to run: loops around both stay.
    """
    block = path[-1]
    assert isinstance(block, Block)
    above = tuple(s for s in scope_path(path)[:-1] if not any(s is x for x in at))
    site = Site(block, above, loops_of(above), known_above(path))
    name = uses_loop(site_of(path))
    if name is not None:
        raise illegal(where, f"it uses {name!r} other than by an axis")
    foreign = calls_foreign(block)
    if foreign is not None:
        raise illegal(where, foreign)
    refuse_shifting(where, func, path)
    if not any(a.kind == "R" for a in block.axes):
        return
    shared = [x for x in loops_of(scope_path(path)) if any(x is s for s in at)]
    for loop in shared:
        if driven(block, loop.var) - {"S"}:
            raise illegal(where, f"it is complete only after {loop.var.name!r}")
    why = late_init(site) if block.init is not None else None
    if why is not None:
        raise illegal(where, why)
    if not keeps_order(site) and not commutes(block):
        raise illegal(where, f"the steps of {block.name!r} are not known to come in any order")


def refuse_shifting(where: str, func: PrimFunc, path: Path) -> None:
    """Refuse a block that runs over what is read from memory that something stores to."""
    block = path[-1]
    assert isinstance(block, Block)
    site = Site(block, path[:-1], loops_of(path), known_above(path))
    shifting = site.decides_by() & stored(func.body)
    if shifting:
        name = min(b.name for b in shifting)
        raise illegal(where, f"{name!r}, which decides what it runs over, is stored to")


def shifting_bounds(loops: Sequence[For]) -> str | None:
    """Why bounds of loops, one in another, may change while they run; None if they stay."""
    inside = stored(loops[0].body)
    for loop in loops:
        for e in (loop.begin, loop.extent):
            for x in prim_loads(e):
                if x.buffer in inside:
                    name = x.buffer.name
                    return f"the bounds of {loop.var.name!r} load {name!r}, which it stores to"
    return None


def unsettled(func: PrimFunc, block: Block, path: Path, at: list[Path]) -> str | None:
    """Why what a block loads may differ at other places; None if it does not.

    Args:
        func: The prim func.
        block: The block.
        path: The way to it.
        at: The ways to where its formula is to be evaluated: behind it, or in it.
    """
    start, _ = order_of(func, block)
    until = max((_last(func, path, p) for p in at), default=start)
    for buffer in loaded(block) - stored(block):
        for access in accesses(func, buffer, path)[0]:
            shared = [s for s in access.path if any(s is x for x in path)]
            again = [s for s in shared if isinstance(s, For | PrimWhile)]
            if access.order > start:
                if access.order <= until or again:
                    return f"{buffer.name!r}, which it reads, is stored to behind it"
            elif again and (why := _incomplete(block, path, access, buffer)):
                return why
    return None


def made_late(func: PrimFunc, path: Path, at: Path, buffers: Collection[Buffer]) -> str | None:
    """Why what a block loads may not be complete where its formula would go, before it.

    Args:
        func: The prim func.
        path: The way to the block.
        at: The way to where its formula is to be evaluated.
        buffers: What the formula loads.
    """
    start, _ = order_of(func, at[-1])
    for buffer in buffers:
        for access in accesses(func, buffer, path)[0]:
            again = [s for s in access.path if isinstance(s, For | PrimWhile)]
            again = [s for s in again if any(s is x for x in at) and all(s is not x for x in path)]
            if access.order > start or again:
                return f"{buffer.name!r} is not complete where it would be read"
    return None


def _last(func: PrimFunc, path: Path, at: Path) -> int:
    """Where the outermost loop ends that is around a place and not around the block."""
    own = [s for s in at if not any(s is x for x in path)]
    loop = next((s for s in own if isinstance(s, For | PrimWhile)), at[-1])
    return order_of(func, loop)[1]


def _incomplete(block: Block, path: Path, access: Access, buffer: Buffer) -> str | None:
    """Why what is stored before a block, in loops around both, may be stored to again."""
    maker = access.block
    shared = [k for k, s in enumerate(path) if any(s is x for x in access.path)]
    for k in shared:
        loop = path[k]
        if isinstance(loop, For) and (maker is None or driven(maker, loop.var) - {"S"}):
            return f"{buffer.name!r}, which it reads, is complete only after {loop.var.name!r}"
    if maker is not None:
        at = next(k for k, s in enumerate(access.path) if s is maker)
        if breach(site_of(access.path[: at + 1])) is not None:
            name = maker.name
            return f"{buffer.name!r}, which it reads, is not known to keep what {name!r} made of it"
    inner = max(k for k in shared if isinstance(path[k], For | PrimWhile))
    made = {r.buffer for r in block.writes}
    loop = path[inner]
    body = loop.body if isinstance(loop, For | PrimWhile) else loop
    if any(_takes_earlier(body, path[: inner + 1], block, b) for b in made):
        return (
            f"{buffer.name!r}, which it reads, is stored to in a loop whose later iterations read "
            "what it makes"
        )
    return None


def _takes_earlier(body: Stmt, path: Path, block: Block, buffer: Buffer) -> bool:
    """Whether others in a loop may take what a block made in another iteration."""
    found = sites(body, path)
    made = next((s.fills(buffer) for s in found if s.block is block), None)
    for site in found:
        need = site.touched(buffer) if site.block is not block else None
        if need is not None and (made is None or not covers(made, need, site.known)):
            return True
    return False


def may_skip(path: Path) -> str | None:
    """Why a statement put into the loop at the end of a path might change an empty reduction."""
    for k, loop in enumerate(path):
        if not isinstance(loop, For):
            continue
        known = known_at(path[:k])
        for block in blocks_below(loop):
            empty = not known.prove(Compare("ge", loop.extent, imm(1)))
            if block.init is not None and "R" in driven(block, loop.var) and empty:
                return f"{loop.var.name!r} may be empty and drives the reduction {block.name!r}"
    return None
