"""Sums over rows of memory: a vector times a matrix, sums over leading axes.

Nothing is used twice, so all that counts is how fast the operand comes in. It comes in fastest in
the order in which it lies: a few rows side by side from one end of a strip to the other, the sums
kept in the first cache. Down a narrow strip, each step would begin a row anew, which is another
page that nobody fetched ahead.

Written at once, not by steps of a `Schedule`: the first rows begin the sums, so that there is no
pass of zeros over them, and no step makes an init of some iterations of a reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Let, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap, parted
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.reduction import columns_of, layout_of
from ...tactics.register_tile import Values, bound_loads, finished, loads_on, loops
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tactics.vectors import vectors

SIDE_BY_SIDE = 8
"""Rows added in one pass over the sums."""
STRIP_BYTES = 16 << 10
"""Of the sums of a strip: a third of a first cache."""
LEAST = 4
"""Vectors of a strip at least, where threads share the columns."""


def streamed(nest: Nest, target: Target) -> Stmt | None:
    """Applies where nothing is shared by two sums and the columns fill several tiles."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(parted(nest))
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target)
    if layout is None or layout.row is not None:
        return None
    extent, lanes = layout.column.extent, layout.lanes
    columns = number(extent)
    if columns is not None and columns <= 2 * columns_of(target) * lanes:
        return None
    alone = all(number(a.extent) == 1 for a in layout.outer)
    most = STRIP_BYTES // reduction.value.dtype.bytes
    width = _width(extent, most, lanes, target.threads if alone else 1)
    strips = ceildiv(extent, width)
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain += [("strip", strips)] if number(strips) != 1 else []

    def body(point: Sequence[PrimExpr]) -> Stmt:
        outer: Values = {a.var: at for a, at in zip(layout.outer, point, strict=False)}
        begin = imm(0) if number(strips) == 1 else multiply(point[-1], width)
        size = simplify(Binary("min", width, Binary("sub", extent, begin)))
        within = replace(reduction, value=substitute_prim(reduction.value, outer))
        finish = substitute_stmt(with_init(reduction, nest.finish), outer)
        return _Strip(within, finish, layout.column.var, begin, size, lanes).stmt(most)

    work = multiply(product([a.extent for a in reduction.axes]), width)
    return parallel(domain, work, target.machine.grain("multiply_adds"), body)


def _width(columns: PrimExpr, most: int, lanes: int, threads: int) -> PrimExpr:
    """Columns of a strip: whole vectors, at most so many, as much for every thread."""
    turns = simplify(Binary("max", ceildiv(columns, imm(most * threads)), imm(1)))  # of none, too
    each = multiply(ceildiv(columns, multiply(turns, imm(threads * lanes))), imm(lanes))
    return simplify(Binary("min", imm(most), Binary("max", imm(LEAST * lanes), each)))


@dataclass(frozen=True, slots=True)
class _Strip:
    """Some columns, from the first row to the last.

    Attributes:
        reduction: What is summed, at one point of the outer axes.
        finish: The stores of the result.
        column: The axis of the lanes.
        begin: The first column; `size` how many there are.
    """

    reduction: Reduction
    finish: Stmt
    column: PrimVar
    begin: PrimExpr
    size: PrimExpr
    lanes: int

    def stmt(self, most: int) -> Stmt:
        """All of it, with room for so many sums."""
        reduction = self.reduction
        sums = Buffer("sums", (imm(most),), reduction.value.dtype, scope="local")
        at = Load(sums, (simplify(Binary("sub", self.column, self.begin)),))
        *others, last = reduction.axes
        extent = number(last.extent)
        first = min(extent, SIDE_BY_SIDE) if extent and not others else 0
        parts: list[Stmt] = []
        if first:
            parts.append(self._added(at, range(first), fresh=True))
        else:
            parts.append(self._every(Store(sums, at.indices, reduction.identity)))
        parts.append(loops(others, sequence(self._steps(at, last, first))))
        parts.append(self._every(finished(reduction, at, self.finish, {})))
        return Allocate(sums, Seq(tuple(parts)))

    def _every(self, s: Stmt) -> Stmt:
        return vectors(s, self.column, self.begin, self.size, self.lanes)

    def _steps(self, at: Load, axis: Axis, done: int) -> list[Stmt]:
        """The steps from `done` on, several at a time, then one by one."""
        extent, count = number(axis.extent), SIDE_BY_SIDE
        several, single = PrimVar(axis.var.name), PrimVar(axis.var.name)
        left = axis.extent - done if extent is None else imm(extent - done)
        whole, rest = simplify(left // count), simplify(left % count)
        first = add(imm(done), multiply(several, imm(count)))
        together = self._added(at, [add(first, imm(i)) for i in range(count)])
        last = add(simplify(add(imm(done), multiply(whole, imm(count)))), single)
        return [
            For(several, imm(0), whole, together),
            For(single, imm(0), rest, self._added(at, [last])),
        ]

    def _added(self, at: Load, steps: Sequence[PrimExpr | int], fresh: bool = False) -> Stmt:
        """One pass over the sums that adds some steps, or begins with them."""
        axis, still = self.reduction.axes[-1], dict[Load, PrimVar]()
        value: PrimExpr | None = None if fresh else at
        for step in steps:
            index = imm(step) if isinstance(step, int) else step
            term = substitute_prim(self.reduction.value, {axis.var: index})
            loads = loads_on(term, None, (self.column,), (False, False))
            new = [load for load in loads if load not in still]  # steps may share one
            still |= {load: PrimVar("still", load.dtype) for load in new}
            term = bound_loads(term, still)
            value = term if value is None else Binary(self.reduction.op, value, term)
        assert value is not None
        result = self._every(Store(at.buffer, at.indices, value))
        for load, var in still.items():
            result = Let(var, load, result)
        return result
