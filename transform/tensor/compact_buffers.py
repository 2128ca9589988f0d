"""CompactBuffers: a temporary shrinks to what one iteration of the loops around its blocks uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from unity.arith import Analyzer
from unity.arith.region import cut_short, extremes, hull
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import (
    map_prim,
    map_stmt,
    stmt_children,
    stmt_loads,
    substitute_prim,
    walk_stmt,
)

from ..blocks.private import is_private
from ..blocks.site import Site, sites
from ..blocks.tree import (
    Path,
    Values,
    buffers_in,
    is_zero,
    known_at,
    path_to,
    replaced,
    variables,
    with_regions,
)
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs

STACK = 16 << 10
"""Bytes up to which an iteration has a buffer of its own: larger ones are not on the stack."""
FEW = 16
"""Rows that a version of a kernel for few of them has at most."""
STACK_LOCAL = 256 << 10
"""The same for those of scope ``local``."""


@dataclass(frozen=True, slots=True)
class CompactBuffers(Pass):
    """Temporaries that hold values of one iteration only get the extent, and the place, of that.

    What `compute_at`, `cache_read` or `cache_write` leave behind: a buffer as large as all of its
    values, of which each iteration of the loops around makes and takes a part. Blocks that take
    only what the same iteration made of it before may share the room with other iterations; where
    that is not proven, or the size of the part is not known, the buffer stays.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 4]) -> None:
    ...     t = T.alloc((n, 8), "float32")
    ...     for i in range(n):
    ...         for j in range(8):
    ...             with T.block("double"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 t[vi, vj] = a[vi, vj] * 2.0
    ...         for j in range(4):
    ...             with T.block("pairs"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 c[vi, vj] = t[vi, vj * 2] + t[vi, vj * 2 + 1]
    ... ''')
    >>> print(print_module(CompactBuffers()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 4]) -> None:
        for i in range(n):
            t = T.alloc((1, 8), "float32")
            for j in range(8):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", i, j)
                    t[0, vj] = a[vi, vj] * 2.0
            for j in range(4):
                with T.block("pairs"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[0, vj * 2] + t[0, vj * 2 + 1]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, compact)


def compact(func: PrimFunc) -> PrimFunc:
    """The prim func with its temporaries compacted; itself if none can be."""
    if not any(isinstance(s, Block) for s in walk_stmt(func.body)):
        return func
    for buffer in [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]:
        func = _compacted(func, buffer)
    return func


def _compacted(func: PrimFunc, buffer: Buffer) -> PrimFunc:
    path = path_to(func.body, lambda s: isinstance(s, Allocate) and s.buffer is buffer)
    if path is None or any(isinstance(s, Block) for s in path):
        return func  # inside a block the loops around are not seen
    allocation = path[-1]
    assert isinstance(allocation, Allocate)
    users = _users(allocation.body, buffer, ())
    if not users or any(not isinstance(p[-1], Block) for p in users):
        return func
    common = _common(users)
    while common and not is_private((*path, *common), buffer):
        common = common[:-1]
    return _shrunk(func, allocation, (*path, *common), buffer)


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


def _shrunk(func: PrimFunc, allocation: Allocate, path: Path, buffer: Buffer) -> PrimFunc:
    """The buffer as large as what the end of a path uses in one iteration."""
    last, known = path[-1], known_at(path)
    assert isinstance(last, For | Allocate)
    region = _hull([s for s in sites(last.body, path) if s.names(buffer)], buffer)
    loops = [s for s in path if isinstance(s, For)]
    parts = [_part(r, n, loops, known) for r, n in zip(region, buffer.shape, strict=True)]
    if buffer.scope == "local":
        parts = [
            _few(n, known) if p is None else p for p, n in zip(parts, buffer.shape, strict=True)
        ]
    if all(part is None for part in parts):
        return func
    shape = [n if p is None else p for p, n in zip(parts, buffer.shape, strict=True)]
    new = replace(buffer, shape=tuple(shape))
    begins = [
        imm(0) if p is None else known.simplify(r.begin) for p, r in zip(parts, region, strict=True)
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
    limit = STACK_LOCAL if new.scope == "local" else STACK
    sizes = [n.value for n in new.shape if isinstance(n, Imm) and isinstance(n.value, int)]
    if len(sizes) < len(new.shape) or prod(sizes) * new.dtype.bytes > limit:
        loops = [s for s in loops if s.kind in ("parallel", "thread")]
    return loops[-1] if loops else allocation


def _moved(
    s: Stmt,
    old: Buffer,
    new: Buffer,
    begins: Sequence[PrimExpr],
    known: Analyzer,
    axes: Values,
) -> Stmt:
    """The statement with the accesses of a buffer counting from where its part begins."""

    def place(indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        return tuple(
            i if is_zero(begin) else known.simplify(Binary("sub", substitute_prim(i, axes), begin))
            for i, begin in zip(indices, begins, strict=True)
        )

    def on_expr(e: PrimExpr) -> PrimExpr:
        e = map_prim(e, on_expr)
        if isinstance(e, Load) and e.buffer is old:
            return replace(e, buffer=new, indices=place(e.indices))
        return e

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
