"""Elementwise, broadcast and injective stages: threads over rows, lanes along each row."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, PrimVar, imm
from unity.ir.regions import multiply
from unity.ir.stmt import PrimFunc, Seq, Stmt
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.machine.target import Target

from ..blocks.access import joined_axes, known_of, place, step
from ..blocks.extents import ceildiv, number, product
from ..blocks.nest import Nest, block_of
from ..roles.lanes import lanes_for
from ..schedule.index_map import IndexMap
from ..schedule.schedule import Schedule
from ..tactics.threads import share

ROW = 4096
"""Long rows are cut to pieces of so many elements when there are few of them."""
_COSTLY = frozenset(INTRINSICS) - {
    "abs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "fma",
    "likely",
    "bits",
}


def elementwise(nest: Nest, target: Target) -> Stmt | None:
    """Applies where nothing is reduced; see `schedule_elementwise`."""
    if nest.reduction is not None:
        return None
    if not nest.axes:
        return nest.finish
    if any(number(a.extent) == 0 for a in nest.axes):
        return Seq(())
    sch = Schedule(PrimFunc((), block_of(nest)), target)
    try:
        schedule_elementwise(sch, nest)
    except UnityError:
        return block_of(nest)  # slow, but right: no step of it is known to be legal
    return sch.func.body


def steps_of_elementwise(sch: Schedule, nest: Nest, behind: Sequence[str]) -> None:
    """Lay out a block as it was written; there is none behind it.

    Args:
        sch: A schedule for a target.
        nest: The stage that it is.
        behind: No names.
    """
    del behind
    if nest.axes:
        schedule_elementwise(sch, nest)


def schedule_elementwise(sch: Schedule, nest: Nest) -> None:
    """Lay out a block that makes each element by a formula, by steps of a schedule.

    The axes are joined as far as every access walks evenly. The innermost one is given lanes; the
    others, and the pieces of a long row, are shared among the threads.

    Args:
        sch: A schedule for a target.
        nest: The block, as `nest_of` reads it.
    """
    target, name = sch.target, nest.name
    assert target is not None
    joined, counts = joined_axes(nest)
    if len(nest.axes) > 2 or len(joined.axes) < len(nest.axes):
        sch.transform_block_layout(name, _joining(nest, counts))
    nest = joined
    *outer, inner = sch.get_loops(name)
    extent = number(nest.axes[-1].extent)
    lanes = lanes_for(_bits(nest), target.vector_bits, nest.axes[-1].extent)
    rows = product([a.extent for a in nest.axes[:-1]])
    few = (number(rows) or 4 * target.threads) < 4 * target.threads
    piece = nest.axes[-1].extent
    if few and (extent is None or extent > 2 * ROW):
        part, inner = sch.split(inner, [None, ROW])
        rows = multiply(rows, ceildiv(piece, imm(ROW)))
        piece = imm(ROW)
        outer.append(part)
    if outer:
        share(sch, outer, rows, multiply(piece, imm(_cost(nest))), "elements")
    if extent != 1:
        sch.vectorize(sch.split(inner, [None, lanes])[1])


def _joining(nest: Nest, counts: Sequence[int]) -> IndexMap:
    """The innermost axes that may be joined as one, all others as another."""
    at = [PrimVar(a.var.name) for a in nest.axes]
    outer = len(at) - counts[-1]
    parts = [slice(0, outer), slice(outer, len(at))] if outer else [slice(0, len(at))]
    outputs: list[PrimExpr] = []
    for part in parts:
        first, *rest = at[part]
        whole: PrimExpr = first
        for var, axis in zip(rest, nest.axes[part][1:], strict=True):
            whole = Binary("add", Binary("mul", whole, axis.extent), var)
        outputs.append(whole)
    return IndexMap(tuple(at), tuple(outputs))


def _bits(nest: Nest) -> int:
    """The widest element that moves along the innermost axis."""
    known, var = known_of(nest.axes), nest.axes[-1].var
    widths = [s.buffer.dtype.bits for s in nest.stores()]
    widths += [x.buffer.dtype.bits for x in nest.loads() if step(place(x, known), var) != 0]
    return max(widths)


def _cost(nest: Nest) -> int:
    """Work per element, in simple operations."""
    return 1 + 8 * costly([e for s in walk_stmt(nest.finish) for e in stmt_exprs(s)])


def costly(exprs: Sequence[PrimExpr]) -> int:
    """How many functions are computed that take many instructions."""
    parts = [x for e in exprs for x in walk_prim(e)]
    return sum(isinstance(x, Intrinsic) and x.name in _COSTLY for x in parts)
