"""Reductions along contiguous memory: row sums, and products with a transposed matrix.

Lanes run along the reduced axis: each accumulator is a vector of partial sums, joined at the end.

Written at once, not by steps of a `Schedule`: `rfactor` makes partial results for each lane, but
joining sixteen of them by halves in a register would take an `rfactor`, and a stage, for each
halving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import simplify
from unity.arith.polynomial import Poly
from unity.ir.dtype import BOOL
from unity.ir.prim_expr import (
    Binary,
    Compare,
    Load,
    PrimExpr,
    PrimVar,
    imm,
)
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Let, Seq, Stmt, Store
from unity.ir.visit import rewrite_prim, substitute_prim, substitute_stmt
from unity.machine.machine import MACHINE
from unity.machine.target import Target

from ...blocks.access import all_axes, collapsed, depends, known_of, may_trap, mentions, place
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.lanes import lanes_for
from ...roles.reduction import lanes_along
from ...tactics.register_tile import Tile, Values, accumulate, fill, finished, joined, loops
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tactics.tile_sizes import row_tiers

CHAINS = MACHINE.fma_in_flight
"""Vectors of partial sums that are added to in turn: each addition takes four cycles, two may
begin in a cycle."""


def dot_products(nest: Nest, target: Target) -> Stmt | None:
    """Applies where every read is contiguous, or still, along the innermost reduced axis."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    known = known_of(all_axes(nest))
    if not lanes_along(reduction, known):
        return None
    reads = [place(x, known) for x in reduction.loads()]
    column, row = _shared_axes(nest, reads)
    outer = [a for a in nest.axes if a is not column and a is not row]
    largest = 4 if target.vector_registers >= 32 else 2
    parts = [
        _tier(nest, reduction, outer, (column, columns.size), (row, rows.size), target,
              (columns.begin, columns.count), (rows.begin, rows.count))
        for columns in row_tiers(imm(1) if column is None else column.extent, largest)
        for rows in row_tiers(imm(1) if row is None else row.extent, 4)
    ]  # fmt: skip
    return sequence(parts)


def _shared_axes(nest: Nest, reads: Sequence[Poly]) -> tuple[Axis | None, Axis | None]:
    """Two axes such that reads move along one of them but not the other: columns, then rows."""

    def moves(axis: Axis) -> frozenset[int]:
        return frozenset(i for i, index in enumerate(reads) if mentions(index, axis.var))

    long = [a for a in nest.axes if (number(a.extent) or 99) > 1]
    for column in reversed(long):
        for row in reversed(long):
            if row is not column and moves(row) - moves(column) and moves(column) - moves(row):
                return column, row
    return None, (long[-1] if long else None)


def _tier(
    nest: Nest,
    reduction: Reduction,
    outer: Sequence[Axis],
    column: tuple[Axis | None, int],
    row: tuple[Axis | None, int],
    target: Target,
    columns: tuple[PrimExpr, PrimExpr],
    rows: tuple[PrimExpr, PrimExpr],
) -> Stmt:
    last = reduction.axes[-1]
    bits = max(x.buffer.dtype.bits for x in reduction.loads())
    lanes = lanes_for(max(bits, reduction.value.dtype.bits), target.vector_bits, last.extent)
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in outer]
    domain += [("column", columns[1]), ("row", rows[1])]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]
    steps = product([a.extent for a in reduction.axes])
    work = multiply(steps, imm(column[1] * row[1]))

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        values: Values = {a.var: coordinate(a.extent) for a in outer}
        tile_column, tile_row = coordinate(columns[1]), coordinate(rows[1])
        tile = Tile(
            row=None if row[0] is None else row[0].var,
            rows=_run(rows[0], tile_row, row[1]),
            column=() if column[0] is None else (column[0].var,),
            columns=tuple(
                () if column[0] is None else (value,)
                for value in _run(columns[0], tile_column, column[1])
            ),
            lane=PrimVar("lane"),
            lanes=lanes,
        )
        value = substitute_prim(reduction.value, values)
        finish = substitute_stmt(with_init(reduction, nest.finish), values)
        return _micro_kernel(tile, replace(reduction, value=value), finish)

    return parallel(domain, work, target.machine.grain("multiply_adds"), body)


def _run(begin: PrimExpr, at: PrimExpr, size: int) -> tuple[PrimExpr, ...]:
    first = add(begin, multiply(at, imm(size)))
    return tuple(add(first, imm(i)) for i in range(size))


def _micro_kernel(tile: Tile, reduction: Reduction, finish: Stmt) -> Stmt:
    *others, last = reduction.axes
    sums = len(tile.rows) * len(tile.columns)
    extent, lanes = number(last.extent), tile.lanes
    vectors = None if extent is None else extent // lanes
    chains = max(1, CHAINS // sums)
    while vectors is not None and chains > 1 and vectors < 2 * chains:
        chains //= 2
    buffers = [
        Buffer("acc", (imm(sums * lanes),), reduction.value.dtype, scope="local")
        for _ in range(chains)
    ]
    first, *more = buffers
    whole = last.extent // lanes if vectors is None else imm(vectors)
    together = simplify(Binary("floordiv", whole, imm(chains)))

    def step(vector: PrimExpr, buffer: Buffer) -> Stmt:
        index = add(multiply(vector, imm(lanes)), tile.lane)
        return accumulate(
            tile, reduction, substitute_prim(reduction.value, {last.var: index}), buffer
        )

    steps: list[Stmt] = []
    if number(together) != 0:
        at = PrimVar(last.var.name)
        several = [step(add(multiply(at, imm(chains)), imm(j)), b) for j, b in enumerate(buffers)]
        steps.append(For(at, imm(0), together, sequence(several)))
    done = multiply(together, imm(chains))
    single = simplify(Binary("sub", whole, done))
    if more and number(single) != 0:
        at = PrimVar(last.var.name)
        steps.append(For(at, imm(0), single, step(add(done, at), first)))
    if extent is None or extent % lanes:
        begin = multiply(whole, imm(lanes)) if extent is None else imm(extent - extent % lanes)
        tail = _tail(tile, reduction, add(begin, tile.lane), first)
        if extent is None:  # a loop of one iteration or none, so that nothing is loaded in vain
            some = Binary("min", last.extent % lanes, imm(1))
            tail = For(PrimVar("tail"), imm(0), some, tail)
        steps.append(tail)
    body = [fill(tile, reduction.identity, b) for b in buffers]
    body.append(loops(others, sequence(steps)))
    body += _added_up(reduction, buffers, sums * lanes, lanes)
    for r in range(len(tile.rows)):
        for c in range(len(tile.columns)):
            slot = imm((r * len(tile.columns) + c) * lanes)
            body += joined(reduction, first, slot, lanes)
            values = tile.values(r, c)
            body.append(finished(reduction, Load(first, (slot,)), finish, values))
    result: Stmt = Seq(tuple(body))
    for buffer in reversed(buffers):
        result = Allocate(buffer, result)
    return result


def _added_up(reduction: Reduction, buffers: Sequence[Buffer], size: int, lanes: int) -> list[Stmt]:
    """The chains joined by pairs in the first one."""
    stmts: list[Stmt] = []
    left = list(buffers)
    while len(left) > 1:
        for a, b in zip(left[::2], left[1::2], strict=False):
            for begin in range(0, size, lanes):
                lane = PrimVar("lane")
                at = (add(imm(begin), lane),)
                both = Binary(reduction.op, Load(a, at), Load(b, at))
                stmts.append(For(lane, imm(0), imm(lanes), Store(a, at, both), "vectorized"))
        left = left[::2]
    return stmts


def _tail(tile: Tile, reduction: Reduction, index: PrimExpr, buffer: Buffer) -> Stmt:
    """The step at an index that in some lanes lies past the end, where it adds nothing."""
    last = reduction.axes[-1]
    guard = PrimVar("inside", BOOL)

    def on_load(x: PrimExpr) -> PrimExpr | None:
        if isinstance(x, Load) and depends(x, last.var):
            both = guard if x.predicate is None else Binary("and", x.predicate, guard)
            return replace(x, predicate=both)
        return None

    value = substitute_prim(rewrite_prim(reduction.value, on_load), {last.var: index})
    step = accumulate(tile, reduction, value, buffer, guard)
    assert isinstance(step, For)
    return replace(step, body=Let(guard, Compare("lt", index, last.extent), step.body))
