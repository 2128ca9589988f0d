"""A stage as blocks: what the rules read into a `Nest`, written as a schedule takes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.signature import size_params
from unity.ir.stmt import (
    Allocate,
    AxisKind,
    Block,
    BlockAxis,
    Buffer,
    For,
    Let,
    PrimFunc,
    Range,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import (
    leaves,
    prim_loads,
    stmt_exprs,
    substitute_stmt,
    temporaries,
    variables,
    walk_prim,
    walk_stmt,
)

from .nest import Axis, Nest, block_of
from .tree import NOTHING, around, with_buffers


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as a prim func of its own.

    Attributes:
        func: Two nests: one block sums into a temporary, ``_result`` takes the sums.
        extents: What variables stand for that are extents in it: those that are no plain sizes.
    """

    func: PrimFunc
    extents: tuple[tuple[PrimVar, PrimExpr], ...]

    def around(self, body: Stmt) -> Stmt:
        """What was made of the func's body, in place of the stage."""
        for var, extent in reversed(self.extents):
            body = Let(var, extent, body)
        return body


def stage_of(nest: Nest) -> Stage:
    """A reduction as blocks."""
    reduction = nest.reduction
    assert reduction is not None
    extents: list[tuple[PrimVar, PrimExpr]] = []

    def plain(axis: Axis) -> Axis:
        if not variables(axis.extent):
            return axis
        size = PrimVar(f"{axis.var.name}_size")
        extents.append((size, axis.extent))
        return replace(axis, extent=size)

    axes = tuple(plain(a) for a in nest.axes)
    reduction = replace(reduction, axes=tuple(plain(a) for a in reduction.axes))
    sums, stmts = _reducing(replace(nest, axes=axes, reduction=reduction))
    body = Allocate(sums, Seq(stmts))
    return Stage(func_of(body), tuple(extents))


def stages_of(nests: Sequence[Nest | Stmt], private: Collection[Buffer]) -> Stmt:
    """Stages as blocks, one behind another, with temporaries of their own.

    Args:
        nests: Each reduction of them becomes two nests, as in `stage_of`; a statement stays.
        private: What only they touch.
    """
    parts: list[Stmt] = []
    own: list[Buffer] = []
    for nest in nests:
        if not isinstance(nest, Nest):
            parts.append(nest)
            continue
        if nest.reduction is None:
            parts.append(block_of(nest))
            continue
        sums, stmts = _reducing(nest)
        own.append(sums)
        parts += stmts
    stored = {x.buffer for nest in nests for x in _stores(nest)}
    renewed = {b: replace(b) for b in private if b in stored}
    body = with_buffers(Seq(tuple(parts)), renewed)
    for buffer in (*own, *renewed.values()):
        body = Allocate(buffer, body)
    return body


def _stores(stage: Nest | Stmt) -> Iterator[Store]:
    if isinstance(stage, Nest):
        return stage.stores()
    return (s for s in walk_stmt(stage) if isinstance(s, Store))


def _reducing(nest: Nest) -> tuple[Buffer, tuple[Stmt, Stmt]]:
    """The sums of a reduction, the nest that sums up and the one that takes the sums."""
    reduction, axes = nest.reduction, nest.axes
    assert reduction is not None
    sums = Buffer(
        f"{nest.name}_sums", tuple(a.extent for a in axes), reduction.value.dtype, scope="local"
    )
    at = tuple(a.var for a in axes)
    init = Store(sums, at, reduction.init)
    update = Store(sums, at, Binary(reduction.op, Load(sums, at), reduction.value))
    first = _nest(nest.name, axes, reduction.axes, init, update)
    fresh = tuple(replace(a, var=PrimVar(a.var.name, a.var.dtype)) for a in axes)
    values: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: b.var for a, b in zip(axes, fresh, strict=True)
    }
    values[reduction.result] = Load(sums, tuple(a.var for a in fresh))
    finish = substitute_stmt(nest.finish, values)
    result = Nest(f"{nest.name}_result", fresh, None, finish, nest.output)
    return sums, (first, block_of(result))


def func_of(body: Stmt) -> PrimFunc:
    """A statement as a prim func of its own.

    Its parameters are the buffers, the sizes that no shape of them gives, other free variables.
    """
    own = {*temporaries(body)}
    exprs = [e for s in walk_stmt(body) for e in stmt_exprs(s)]
    found = [x.buffer for e in exprs for x in prim_loads(e)]
    found += [s.buffer for s in walk_stmt(body) if isinstance(s, Store)]
    buffers = tuple(b for b in dict.fromkeys(found) if b not in own)
    known: set[PrimVar | SizeVar] = set(size_params(PrimFunc(buffers, NOTHING)))
    for s in walk_stmt(body):
        known |= {s.var} if isinstance(s, For | Let) else set[PrimVar | SizeVar]()
        known |= {a.var for a in s.axes} if isinstance(s, Block) else set[PrimVar | SizeVar]()
    left = (e for e in exprs if not leaves(e).variables | leaves(e).sizes <= known)
    parts = (x for e in left for x in walk_prim(e))
    free = {x: None for x in parts if isinstance(x, PrimVar | SizeVar) and x not in known}
    return PrimFunc((*buffers, *free), body)


def _nest(
    name: str, spatial: tuple[Axis, ...], reduced: tuple[Axis, ...], init: Stmt | None, body: Stmt
) -> Stmt:
    every: list[tuple[Axis, AxisKind]] = []
    every.extend((a, "S") for a in spatial)
    every.extend((a, "R") for a in reduced)
    loops = [
        For(PrimVar(a.var.name.removeprefix("v")), imm(0), a.extent, NOTHING) for a, _ in every
    ]
    axes = tuple(
        BlockAxis(a.var, kind, Range(imm(0), a.extent), loop.var)
        for (a, kind), loop in zip(every, loops, strict=True)
    )
    reads, writes = block_regions(body, init, [a.var for a in axes])
    return around(loops, Block(name, axes, reads, writes, body, init))
