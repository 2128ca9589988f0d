"""Who stores and loads a buffer, and when: what moving a block to another place must respect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.arith import Analyzer
from unity.errors import UnityError
from unity.ir.foreign import addressed, foreign_symbol
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import (
    Allocate,
    Block,
    BlockAxis,
    Buffer,
    For,
    IfThen,
    PrimFunc,
    Range,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import (
    map_stmts,
    prim_loads,
    rewrite_stmt,
    stmt_children,
    stmt_exprs,
    substitute_prim,
    walk_stmt,
)
from unity.ir.well_formed.verify_prim import verify_prim_func

from .dependence import may_run_at_once
from .site import Site
from .tree import (
    NOTHING,
    Path,
    Values,
    around,
    blocks_below,
    illegal,
    known_above,
    loops_of,
    over_sizes,
    replaced,
    scope_path,
    with_regions,
)
from .trust import is_trusted


@dataclass(frozen=True, slots=True)
class Access:
    """A statement that stores to or loads from a buffer: its place in order, and the way to it."""

    order: int
    path: Path

    @property
    def block(self) -> Block | None:
        """The innermost block around it."""
        return next((s for s in reversed(self.path) if isinstance(s, Block)), None)


def accesses(
    func: PrimFunc, buffer: Buffer, beside: Path = ()
) -> tuple[list[Access], list[Access]]:
    """The stores to a buffer and the loads from it, in order; regions count as neither.

    Args:
        func: The prim func.
        buffer: The buffer.
        beside: The way to a statement: what never runs in a call that runs this one is left out.
    """
    stores: list[Access] = []
    loads: list[Access] = []
    count = 0

    def go(s: Stmt, above: Path) -> None:
        nonlocal count
        count += 1
        here = Access(count, (*above, s))
        given = buffer in _addressed(s)
        if given or (isinstance(s, Store) and s.buffer is buffer):
            stores.append(here)
        if given or any(_loads(e, buffer) for e in _own_exprs(s)):
            loads.append(here)
        for child in stmt_children(s):
            go(child, (*above, s))

    go(func.body, ())
    if not any(isinstance(s, IfThen) for s in beside):
        return stores, loads
    left = [[a for a in part if not _excluded(a.path, beside)] for part in (stores, loads)]
    return left[0], left[1]


def _excluded(path: Path, beside: Path) -> bool:
    """Whether two statements stand in versions of which a call runs one."""
    at = next((k for k, (a, b) in enumerate(zip(path, beside, strict=False)) if a is not b), 0)
    above = path[at - 1] if at else None
    return isinstance(above, IfThen) and over_sizes(above.condition)


def order_of(func: PrimFunc, wanted: Stmt) -> tuple[int, int]:
    """Where a statement starts and ends in the order that `accesses` counts."""
    for count, s in enumerate(walk_stmt(func.body), 1):
        if s is wanted:
            return count, count + sum(1 for _ in walk_stmt(s)) - 1
    raise AssertionError(wanted)


def _own_exprs(s: Stmt) -> tuple[PrimExpr, ...]:
    if isinstance(s, Block):
        values = tuple(a.value for a in s.axes)
        return values if s.predicate is None else (*values, s.predicate)
    return stmt_exprs(s)


def _loads(e: PrimExpr, buffer: Buffer) -> bool:
    return any(x.buffer is buffer for x in prim_loads(e))


def loaded(s: Stmt) -> set[Buffer]:
    """The buffers that a statement and those in it load."""
    return {e.buffer for each in walk_stmt(s) for x in _own_exprs(each) for e in prim_loads(x)}


def stored(s: Stmt) -> set[Buffer]:
    """The buffers that a statement and those in it store to, or give the addresses of."""
    found = {x.buffer for x in walk_stmt(s) if isinstance(x, Store)}
    return found | addressed_in(s)


def addressed_in(s: Stmt) -> set[Buffer]:
    """The buffers whose addresses foreign functions get."""
    return {buffer for x in walk_stmt(s) for buffer in _addressed(x)}


def _addressed(s: Stmt) -> tuple[Buffer, ...]:
    return tuple(b for e in _own_exprs(s) for b in addressed(e))


def top_of(path: Path) -> Stmt:
    """The outermost statement of a scope on a path that is more than a frame for others."""
    return next(s for s in scope_path(path) if not isinstance(s, Allocate | Seq))


def is_param(func: PrimFunc, buffer: Buffer) -> bool:
    """Whether a buffer is a parameter."""
    return any(p is buffer for p in func.params)


def site_of(path: Path) -> Site:
    """A block at the end of a path with all loops of its scope."""
    block = path[-1]
    assert isinstance(block, Block)
    above = scope_path(path)[:-1]
    outside = known_above(path[: len(path) - len(above)])
    return Site(block, above, loops_of(above), known_above(path), outside)


def sole_store(block: Block, buffer: Buffer, func: PrimFunc) -> bool:
    """Whether nothing but a block stores to a buffer."""
    return all(a.block is block for a in accesses(func, buffer)[0])


def plain_store(block: Block) -> Store | None:
    """The one store that a block without reduction is; None if it is more."""
    body = block.body
    if block.init is not None or block.allocations or not isinstance(body, Store):
        return None
    if foreign_symbol(body.value) is not None:
        return None
    return body if body.predicate is None and all(a.kind == "S" for a in block.axes) else None


def axes_of_index(indices: Sequence[PrimExpr], block: Block) -> list[BlockAxis] | None:
    """The axes that index an element, each once; None if something else does.

    An axis whose one point is 0 may stand there as 0.
    """
    by_var = {a.var: a for a in block.axes}
    one = Range(imm(0), imm(1))
    points = [a for a in block.axes if a.kind == "S" and a.domain == one and a.var not in indices]
    found: list[BlockAxis] = []
    for i in indices:
        if isinstance(i, PrimVar) and i in by_var:
            found.append(by_var[i])
        elif i == imm(0) and points:
            found.append(points.pop(0))
    return found if len(found) == len(indices) == len({a.var for a in found}) else None


def spans(axes: Sequence[BlockAxis], shape: Sequence[PrimExpr], known: Analyzer) -> bool:
    """Whether axes run over exactly a shape."""
    return all(
        a.domain.begin == imm(0) and known.equal(a.domain.extent, n)
        for a, n in zip(axes, shape, strict=True)
    )


Index: TypeAlias = Callable[[Sequence[PrimExpr]], Sequence[PrimExpr]]


def replaced_loads(s: Stmt, buffer: Buffer, new: Callable[[Sequence[PrimExpr]], PrimExpr]) -> Stmt:
    """The statement with the loads of a buffer rewritten by a function of their indices."""

    def on_load(e: Load) -> PrimExpr | None:
        return new(e.indices) if e.buffer is buffer else None

    def on_stmt(x: Stmt) -> Stmt | None:
        changed = isinstance(x, Block) and any(r.buffer is buffer for r in (*x.reads, *x.writes))
        return with_regions(x) if isinstance(x, Block) and changed else None

    return rewrite_stmt(s, on_stmt, load_fn=on_load)


def without_unused(func: PrimFunc) -> PrimFunc:
    """Without allocations of buffers that nothing stores to or loads from."""

    def go(s: Stmt) -> Stmt:
        s = map_stmts(s, go)
        if isinstance(s, Allocate) and not any(_touches(x, s.buffer) for x in walk_stmt(s.body)):
            return s.body
        return s

    return replace(func, body=go(func.body))


def _touches(s: Stmt, buffer: Buffer) -> bool:
    if isinstance(s, Store) and s.buffer is buffer:
        return True
    return any(_loads(e, buffer) for e in _own_exprs(s))


def copy_nest(
    name: str,
    target: Buffer,
    source: Buffer,
    extents: Sequence[PrimExpr],
    into: bool,
    index: Index,
    axes_names: Sequence[str] | None = None,
) -> Stmt:
    """A nest that copies between a compact buffer over `extents` and places of another.

    Args:
        name: The block's.
        target: Where to.
        source: Where from.
        extents: The points.
        into: Whether it is the target that is compact.
        index: The place in the other buffer, a function of the point.
        axes_names: What the axes are called.
    """
    names = axes_names or [f"v{k}" for k in range(len(extents))]
    loops = [
        For(PrimVar(n.removeprefix("v") if axes_names else f"ax{k}"), imm(0), extent, NOTHING)
        for k, (n, extent) in enumerate(zip(names, extents, strict=True))
    ]
    axes = tuple(
        BlockAxis(PrimVar(n), "S", Range(imm(0), x.extent), x.var)
        for n, x in zip(names, loops, strict=True)
    )
    point: tuple[PrimExpr, ...] = tuple(a.var for a in axes)
    place: tuple[PrimExpr, ...] = tuple(index(point))
    to, at = (point, place) if into else (place, point)
    body = Store(target, to, Load(source, at))
    block = with_regions(Block(name, axes, (), (), body))
    return around(loops, block)


def computed_nest(name: str, target: Buffer, axes: Sequence[BlockAxis], value: PrimExpr) -> Stmt:
    """A nest that fills a buffer over the domains of axes with a value at every point of them."""
    loops = [For(PrimVar(f"ax{k}"), imm(0), a.domain.extent, NOTHING) for k, a in enumerate(axes)]
    own = tuple(
        BlockAxis(PrimVar(f"v{k}"), "S", Range(imm(0), x.extent), x.var)
        for k, x in enumerate(loops)
    )
    points: Values = {
        a.var: Analyzer().simplify(Binary("add", x.var, a.domain.begin))
        for a, x in zip(axes, own, strict=True)
    }
    body = Store(target, tuple(x.var for x in own), substitute_prim(value, points))
    return around(loops, with_regions(Block(name, own, (), (), body)))


def checked(func: PrimFunc, where: str) -> PrimFunc:
    """A prim func after blocks were moved in it; refuses what no longer holds together."""
    if is_trusted():
        return func
    try:
        verify_prim_func("main", func)
    except UnityError as error:
        raise illegal(where, f"something would be out of scope there ({error.message})") from None
    for path in _loop_paths(func.body, ()):
        loop = path[-1]
        if isinstance(loop, For) and loop.kind in ("parallel", "vectorized", "thread"):
            why = may_run_at_once(loop, path, joined=loop.kind == "vectorized")
            if why is not None:
                raise illegal(where, f"the loop {loop.var.name!r} is {loop.kind}: {why}")
    return func


def _loop_paths(s: Stmt, above: Path) -> list[Path]:
    around_blocks = isinstance(s, For) and bool(blocks_below(s))  # others are a block's own affair
    here: list[Path] = [(*above, s)] if around_blocks else []
    return here + [p for c in stmt_children(s) for p in _loop_paths(c, (*above, s))]


def allocated(func: PrimFunc, path: Path, buffer: Buffer, old: Stmt, new: Stmt) -> PrimFunc:
    """A statement on a path replaced, and a buffer for all of the scope."""
    root = scope_path(path)[0]
    inner = replaced(replace(func, body=root), [(old, new)]).body
    return replaced(func, [(root, Allocate(buffer, inner))])
