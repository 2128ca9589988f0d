"""Read and write regions of a block, found from its statements.

Comes in: a block's body and init. Comes out: per buffer the rectangle that holds every access. The
script parser and `unity.te` fill a block's signature with it; schedule primitives that move or
split blocks recompute it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from unity.ir.foreign import addressed
from unity.ir.leaves import leaves, prim_loads, variables
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
)


def block_regions(
    body: Stmt, init: Stmt | None, axes_vars: Collection[PrimVar]
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """The regions that a block reads and writes, one per buffer in order of first access.

    Accesses that begin a constant apart in a dimension are held by one range, others take the
    dimension whole; loops inside the block widen an access over their extent. Dimensions indexed by
    anything but `axes_vars` and sizes (a loaded value, a loop variable of the surroundings) are
    taken whole. A buffer that `init` writes is an accumulator: reading it is implied and left out
    of the reads. Buffers allocated inside are left out.

    Args:
        body: The block's statement.
        init: Its init.
        axes_vars: The variables that regions may be over: the block's axes, those of blocks around
            it and scalar parameters.
    """
    access = _accesses(body)
    writes = [*access.writes]
    reads = [*access.reads]
    if init is not None:
        first = _accesses(init)
        accumulators = {region.buffer for region in first.writes}
        reads = [*first.reads, *(r for r in reads if r.buffer not in accumulators)]
        writes = [*first.writes, *writes]
    allowed = frozenset(axes_vars)
    return _merged(reads, allowed), _merged(writes, allowed)


@dataclass(slots=True)
class _Access:
    reads: list[Region] = field(default_factory=list[Region])
    writes: list[Region] = field(default_factory=list[Region])

    def add(self, other: _Access) -> None:
        self.reads += other.reads
        self.writes += other.writes

    def load(self, *exprs: PrimExpr | None) -> None:
        for expr in exprs:
            if expr is not None:
                self.reads += [_point(load.buffer, load.indices) for load in prim_loads(expr)]
                for buffer in addressed(expr):  # who has an address may touch all behind it
                    whole = Region(buffer, tuple(Range(imm(0), n) for n in buffer.shape))
                    self.reads.append(whole)
                    self.writes.append(whole)


def _accesses(stmt: Stmt) -> _Access:
    """Every access below a statement, over the variables in scope at it."""
    access = _Access()
    match stmt:
        case Store():
            access.load(*stmt.indices, stmt.value, stmt.predicate)
            access.writes.append(_point(stmt.buffer, stmt.indices))
        case Seq():
            for part in stmt.stmts:
                access.add(_accesses(part))
        case For():
            access.load(stmt.begin, stmt.extent)
            inner = _accesses(stmt.body)
            access.reads += [_widen(r, stmt) for r in inner.reads]
            access.writes += [_widen(r, stmt) for r in inner.writes]
        case Block():
            access = _block_accesses(stmt)
        case IfThen():
            access.load(stmt.condition)
            access.add(_accesses(stmt.then))
            if stmt.orelse is not None:
                access.add(_accesses(stmt.orelse))
        case Let():
            access.load(stmt.value)
            inner = _accesses(stmt.body)
            held = leaves(stmt.value)
            if held.loads or held.calls:  # no region is over such a value: the name says as much
                access.add(inner)
            else:
                access.reads += [_replaced(r, {stmt.var: stmt.value}) for r in inner.reads]
                access.writes += [_replaced(r, {stmt.var: stmt.value}) for r in inner.writes]
        case Allocate():
            inner = _accesses(stmt.body)
            access.reads += [r for r in inner.reads if r.buffer is not stmt.buffer]
            access.writes += [r for r in inner.writes if r.buffer is not stmt.buffer]
        case PrimWhile():
            access.load(stmt.condition)
            access.add(_accesses(stmt.body))
        case Assert():
            access.load(stmt.condition)
        case Evaluate(Intrinsic("prefetch", (Load() as load,))):
            access.load(*load.indices)  # it takes no value: the element may lie anywhere
        case Evaluate():
            access.load(stmt.value)
        case _:
            assert_never(stmt)
    return access


def _block_accesses(block: Block) -> _Access:
    access = _Access()
    access.load(block.predicate, *(axis.value for axis in block.axes))
    bound = {axis.var: axis.value for axis in block.axes}
    cut = [
        For(a.var, a.domain.begin, a.domain.extent, block) for a in block.axes if _is_cut(a, block)
    ]
    for found, own in ((access.reads, block.reads), (access.writes, block.writes)):
        for region in own:
            if region.buffer in block.allocations:
                continue
            for axis in cut:  # its loops may go past the end of its domain
                region = _widen(region, axis)
            found.append(_replaced(region, bound))
    return access


def _is_cut(axis: BlockAxis, block: Block) -> bool:
    """Whether a block's predicate is about what drives an axis."""
    if block.predicate is None or isinstance(axis.value, PrimVar):
        return False
    return any(_mentions(block.predicate, v) for v in variables(axis.value))


def _point(buffer: Buffer, indices: Sequence[PrimExpr]) -> Region:
    return Region(buffer, tuple(_index(i, n) for i, n in zip(indices, buffer.shape, strict=True)))


def _index(index: PrimExpr, size: PrimExpr) -> Range:
    match index:
        case Ramp(base, Imm(int() as stride), lanes) if stride > 0:
            return Range(base, imm(stride * (lanes - 1) + 1))
        case Ramp() | Broadcast():
            return Range(imm(0), size)
        case _:
            return Range(index, imm(1))


def _widen(region: Region, loop: For) -> Region:
    """The region over every iteration of a loop."""
    ranges = tuple(
        _widen_range(r, loop, size)
        for r, size in zip(region.ranges, region.buffer.shape, strict=True)
    )
    return Region(region.buffer, ranges)


def _widen_range(given: Range, loop: For, size: PrimExpr) -> Range:
    whole = Range(imm(0), size)
    if _mentions(given.extent, loop.var):
        return whole
    if not _mentions(given.begin, loop.var):
        return given
    step = _coefficient(given.begin, loop.var)
    if step is None:
        return whole
    last = add(loop.extent, imm(-1))
    at = loop.begin if step > 0 else add(loop.begin, last)
    begin = replace(given.begin, {loop.var: at})
    return Range(begin, add(given.extent, multiply(last, imm(abs(step)))))


def _coefficient(expr: PrimExpr, var: PrimVar) -> int | None:
    """The constant factor of `var` in an expression linear in it."""
    if not _mentions(expr, var):
        return 0
    match expr:
        case PrimVar():
            return 1
        case Binary("add" | "sub" as op, a, b):
            left, right = _coefficient(a, var), _coefficient(b, var)
            if left is None or right is None:
                return None
            return left + right if op == "add" else left - right
        case Binary("mul", a, Imm(int() as factor)) | Binary("mul", Imm(int() as factor), a):
            inner = _coefficient(a, var)
            return None if inner is None else inner * factor
        case _:
            return None


def _mentions(expr: PrimExpr, var: PrimVar) -> bool:
    return var in variables(expr)


def _replaced(region: Region, values: dict[PrimVar, PrimExpr]) -> Region:
    return Region(
        region.buffer,
        tuple(Range(replace(r.begin, values), replace(r.extent, values)) for r in region.ranges),
    )


def replace(expr: PrimExpr, values: dict[PrimVar, PrimExpr]) -> PrimExpr:
    """An index with variables replaced and the constants that meet folded."""
    if values.keys().isdisjoint(variables(expr)):
        return expr
    match expr:
        case PrimVar():
            return values.get(expr, expr)
        case Binary(op, a, b):
            left, right = replace(a, values), replace(b, values)
            if left is a and right is b:
                return expr
            if op == "add":
                return add(left, right)
            return multiply(left, right) if op == "mul" else Binary(op, left, right)
        case Cast():
            return Cast(expr.dtype, replace(expr.value, values))
        case Load():
            return Load(expr.buffer, tuple(replace(i, values) for i in expr.indices))
        case Intrinsic():
            args = tuple(replace(a, values) for a in expr.args)
            return Intrinsic(expr.name, args, expr.dtype, expr.attrs)
        case Compare():
            return Compare(expr.op, replace(expr.a, values), replace(expr.b, values))
        case Not():
            return Not(replace(expr.a, values))
        case Select():
            parts = (expr.condition, expr.then, expr.orelse)
            return Select(*(replace(part, values) for part in parts))
        case Ramp():
            return Ramp(replace(expr.base, values), replace(expr.stride, values), expr.lanes)
        case Broadcast():
            return Broadcast(replace(expr.value, values), expr.lanes)
        case SizeVar() | Imm():
            return expr
        case _:
            assert_never(expr)


def add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a + b``, folding integer literals."""
    match a, b:
        case Imm(int() as x), Imm(int() as y):
            return imm(x + y, a.dtype)
        case Imm(0), _:
            return b
        case _, Imm(0):
            return a
        case Binary("add", inner, Imm(int() as x)), Imm(int() as y):
            return add(inner, imm(x + y, b.dtype))
        case _:
            return Binary("add", a, b)


def multiply(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a * b``, folding integer literals."""
    match a, b:
        case Imm(int() as x), Imm(int() as y):
            return imm(x * y, a.dtype)
        case (Imm(1), _):
            return b
        case (_, Imm(1)):
            return a
        case (Imm(0), _) | (_, Imm(0)):
            return imm(0, a.dtype)
        case _:
            return Binary("mul", a, b)


def _merged(regions: Sequence[Region], allowed: frozenset[PrimVar]) -> tuple[Region, ...]:
    merged: dict[Buffer, tuple[Range, ...]] = {}
    for region in regions:
        shape = region.buffer.shape
        ranges = tuple(
            r if _within(r, allowed) else Range(imm(0), size)
            for r, size in zip(region.ranges, shape, strict=True)
        )
        known = merged.get(region.buffer)
        if known is not None:
            ranges = tuple(
                _joined(a, b) or Range(imm(0), size)
                for a, b, size in zip(known, ranges, shape, strict=True)
            )
        merged[region.buffer] = ranges
    return tuple(Region(buffer, ranges) for buffer, ranges in merged.items())


def _joined(a: Range, b: Range) -> Range | None:
    """The range that holds both, where they begin a constant apart."""
    if a == b:
        return a
    (base, first), (other, second) = _offset(a.begin), _offset(b.begin)
    match a.extent, b.extent:
        case Imm(int() as m), Imm(int() as n) if base == other:
            begin = min(first, second)
            return Range(add(base, imm(begin)), imm(max(first + m, second + n) - begin))
        case _:
            return None


def _offset(e: PrimExpr) -> tuple[PrimExpr, int]:
    """An index as an expression and what is added to it."""
    match e:
        case Binary("add", base, Imm(int() as c)):
            return base, c
        case Binary("sub", base, Imm(int() as c)):
            return base, -c
        case Imm(int() as c):
            return imm(0), c
        case _:
            return e, 0


def _within(given: Range, allowed: frozenset[PrimVar]) -> bool:
    return _over(given.begin, allowed) and _over(given.extent, allowed)


def _over(expr: PrimExpr, allowed: frozenset[PrimVar]) -> bool:
    held = leaves(expr)
    return not held.loads and not held.calls and held.variables <= allowed
