"""A temporary as large as what one iteration of the loops around its blocks uses of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from unity.arith import Analyzer
from unity.arith.region import cut_short, extremes, hull
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import (
    map_stmt,
    rewrite_loads,
    stmt_children,
    stmt_loads,
    substitute_prim,
    variables,
)
from unity.machine.stack import stack_bytes

from .private import is_private
from .site import Site, sites
from .tree import (
    Path,
    Values,
    bound_to,
    buffers_in,
    is_zero,
    known_at,
    path_to,
    replaced,
    with_regions,
)

FEW = 16
"""Rows that a version of a kernel for few of them has at most."""


def compacted(func: PrimFunc, buffer: Buffer, *, without_still: bool = False) -> PrimFunc:
    """The prim func with a temporary as large as an iteration uses; itself if that is not known.

    Args:
        func: The prim func.
        buffer: One of its temporaries.
        without_still: Whether dimensions go in which an iteration stays at one place, of which no
            loop in it tells.
    """
    path = path_to(func.body, lambda s: isinstance(s, Allocate) and s.buffer is buffer)
    if path is None:
        return func
    allocation = path[-1]
    assert isinstance(allocation, Allocate)
    users = _users(allocation.body, buffer, ())
    if not users or any(not isinstance(p[-1], Block) for p in users):
        return func
    common = _common(users)
    while common and not is_private((*path, *common), buffer):
        common = common[:-1]
    return _shrunk(func, allocation, (*path, *common), buffer, without_still=without_still)


def _users(s: Stmt, buffer: Buffer, above: Path) -> list[Path]:
    """The ways to blocks that use a buffer, and to statements outside blocks that do."""
    here = (*above, s)
    if isinstance(s, Block):
        return [here] if any(x is buffer for x in buffers_in(s)) else []
    if any(x is buffer for x in _used_by(s)):
        return [here]
    return [p for c in stmt_children(s) for p in _users(c, buffer, here)]


def _used_by(s: Stmt) -> list[Buffer]:
    stored = [s.buffer] if isinstance(s, Store) else []
    return stored + [x.buffer for x in stmt_loads(s)]


def _common(paths: Sequence[Path]) -> Path:
    """The longest way that all begin with, up to a loop."""
    shared: Path = ()
    for steps in zip(*(p[:-1] for p in paths), strict=False):
        if any(s is not steps[0] for s in steps):
            break
        shared = (*shared, steps[0])
    while shared and not isinstance(shared[-1], For):
        shared = shared[:-1]
    return shared


def _shrunk(
    func: PrimFunc, allocation: Allocate, path: Path, buffer: Buffer, *, without_still: bool
) -> PrimFunc:
    """The buffer as large as what the end of a path uses in one iteration."""
    last, known = path[-1], known_at(path)
    assert isinstance(last, For | Allocate)
    users = [s for s in sites(last.body, path) if s.names(buffer)]
    region = _hull(users, buffer)
    loops = [s for s in path if isinstance(s, For)]
    parts = [_part(r, n, loops, known) for r, n in zip(region, buffer.shape, strict=True)]
    if buffer.scope == "local":
        parts = [
            _few(n, known) if p is None else p for p, n in zip(parts, buffer.shape, strict=True)
        ]
    gone = [
        without_still
        and known.equal(r.extent, imm(1))
        and all(_is_still(s, buffer, k) for s in users)
        for k, r in enumerate(region)
    ]
    if all(part is None for part in parts) and not any(gone):
        return func
    sizes = zip(parts, buffer.shape, gone, strict=True)
    new = replace(buffer, shape=tuple(n if p is None else p for p, n, drop in sizes if not drop))
    begins = [
        None if drop else imm(0) if p is None else known.simplify(r.begin)
        for p, r, drop in zip(parts, region, gone, strict=True)
    ]
    inner = _moved(last.body, buffer, new, begins, known, {})
    at = _place(new, allocation, path)
    if at is allocation:
        body = replaced(replace(func, body=allocation.body), [(last.body, inner)]).body
        return replaced(func, [(allocation, Allocate(new, body))])
    assert isinstance(at, For)
    body = replaced(replace(func, body=at.body), [(last.body, inner)]).body
    sunk = replaced(
        replace(func, body=allocation.body), [(at, replace(at, body=Allocate(new, body)))]
    )
    return replaced(func, [(allocation, sunk.body)])


def _is_still(site: Site, buffer: Buffer, dimension: int) -> bool:
    """Whether no loop of a site moves its place in a dimension of a buffer."""
    moving = {x.var for x in site.loops}
    regions = [r for r in (*site.block.reads, *site.block.writes) if r.buffer is buffer]
    begins = [bound_to(r.ranges[dimension].begin, site.block.axes) for r in regions]
    return not any(variables(begin) & moving for begin in begins)


def _hull(users: Sequence[Site], buffer: Buffer) -> list[Range]:
    """What all blocks touch."""
    found: list[Range] | None = None
    for site in users:
        touched = site.touched(buffer)
        assert touched is not None
        found = (
            list(touched)
            if found is None
            else [hull(a, b, site.known) for a, b in zip(found, touched, strict=True)]
        )
    assert found is not None
    return found


def _part(r: Range, extent: PrimExpr, loops: Sequence[For], known: Analyzer) -> PrimExpr | None:
    """The extent of a part of a dimension; None where it is not known to be less than all of it."""
    most = _most(r, loops, known)
    if most is None or known.equal(most, extent):
        return None
    if not isinstance(most, Imm) and not known.prove(Compare("le", most, extent)):
        return None
    return most


def _few(extent: PrimExpr, known: Analyzer) -> PrimExpr | None:
    """A number for a size that is known to be small: registers are as many as that says."""
    most = None if isinstance(extent, Imm) else known.bounds(extent)[1]
    return imm(most) if most is not None and 0 < most <= FEW else None


def _most(r: Range, loops: Sequence[For], known: Analyzer) -> PrimExpr | None:
    """The most points that a range has in any iteration; None if that is not known."""
    extent = known.simplify(r.extent)
    if isinstance(extent, Imm):
        return extent
    cut = cut_short(r, known)
    if cut is not None:
        return cut[0]
    for loop in reversed(loops):
        if loop.var in variables(extent):
            ends = extremes(extent, {loop.var: Range(loop.begin, loop.extent)}, known)
            if ends is None:
                return None
            extent = ends[1]
    return extent


def _place(new: Buffer, allocation: Allocate, path: Path) -> Stmt:
    """The statement for whose body the buffer is allocated.

    One on the stack in the innermost loop; any other where it was, but for each thread its own.
    """
    inside = path[next(k for k, s in enumerate(path) if s is allocation) + 1 :]
    loops = [s for s in inside if isinstance(s, For)]
    if is_large(new):
        loops = [s for s in loops if s.kind in ("parallel", "thread")]
    return loops[-1] if loops else allocation


def is_large(buffer: Buffer) -> bool:
    """Whether a buffer is too large for a stack."""
    sizes = [n.value for n in buffer.shape if isinstance(n, Imm) and isinstance(n.value, int)]
    return len(sizes) < len(buffer.shape) or prod(sizes) * buffer.dtype.bytes > stack_bytes(
        buffer.scope
    )


def _moved(
    s: Stmt,
    old: Buffer,
    new: Buffer,
    begins: Sequence[PrimExpr | None],
    known: Analyzer,
    axes: Values,
) -> Stmt:
    """The statement with the accesses of a buffer counting from where its part begins.

    A dimension without a begin is gone.
    """

    def from_begin(index: PrimExpr, begin: PrimExpr) -> PrimExpr:
        if is_zero(begin):
            return index
        over_axes = known.simplify(Binary("sub", index, begin))
        if not variables(over_axes) & variables(begin):
            return over_axes
        return known.simplify(Binary("sub", substitute_prim(index, axes), begin))

    def place(indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        pairs = zip(indices, begins, strict=True)
        return tuple(from_begin(i, begin) for i, begin in pairs if begin is not None)

    def on_load(e: Load) -> PrimExpr | None:
        return replace(e, buffer=new, indices=place(e.indices)) if e.buffer is old else None

    def on_expr(e: PrimExpr) -> PrimExpr:
        return rewrite_loads(e, on_load)

    def below(x: Stmt, inside: Analyzer, values: Values) -> Stmt:
        return _moved(x, old, new, begins, inside, values)

    match s:
        case Block():
            if not any(x is old for x in buffers_in(s)):
                return s
            bound: Values = {a.var: substitute_prim(a.value, axes) for a in s.axes}
            bound = {**axes, **bound}
            init = None if s.init is None else below(s.init, known, bound)
            body = below(s.body, known, bound)
            return with_regions(replace(s, init=init, body=body))
        case For():
            inside = known.with_extent(s.var, s.begin, s.extent)
            return map_stmt(s, lambda x: below(x, inside, axes), on_expr)
        case Store() if s.buffer is old:
            made = map_stmt(s, lambda x: x, on_expr)
            assert isinstance(made, Store)
            return replace(made, buffer=new, indices=place(made.indices))
        case _:
            return map_stmt(s, lambda x: below(x, known, axes), on_expr)
