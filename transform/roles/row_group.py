"""Chains of stages over the same rows: what softmax and the norms are, told by their structure.

A row is what a reduction reads for one of its results. Stages that reduce such rows, map them point
by point or work on one number a row can be done row after row, while the row is in the first cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Buffer, Stmt
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ..blocks.access import depends, known_of, may_trap, place, step
from ..blocks.extents import number, product
from ..blocks.nest import Axis, Nest

LONG = 16_384
"""Elements from which on a row is worth the threads' sharing it, if there are few rows."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Stages over the same rows; all are written over the same variables.

    Attributes:
        rows: The axes that tell one row from another.
        inner: The axes within a row, the contiguous one last.
        stages: In order; their spatial axes are `rows`, or `rows` and then `inner`.
    """

    rows: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    stages: tuple[Nest, ...]

    def is_scalar(self, stage: Nest) -> bool:
        """Whether a stage works on one number a row."""
        return stage.reduction is None and len(stage.axes) == len(self.rows)


def row_group(stages: Sequence[Nest | Stmt]) -> RowGroup | None:
    """The longest chain over the same rows that these stages begin with; None if it has no use."""
    nests: list[Nest] = []
    for stage in stages:
        if not isinstance(stage, Nest):
            break
        nests.append(without_unit_axes(stage))
    first = next((n for n in nests if n.reduction is not None), None)
    if first is None or first.reduction is None:
        return None
    group = RowGroup(first.axes, first.reduction.axes, ())
    if not group.inner:
        return None
    for nest in nests:
        aligned = _aligned(nest, group)
        if aligned is None or not _walks_rows(aligned, group):
            break
        longer = replace(group, stages=(*group.stages, aligned))
        if not _is_legal(longer):
            break
        group = longer
    over_elements = [s for s in group.stages if not group.is_scalar(s)]
    reduces = any(s.reduction is not None for s in group.stages)
    return group if reduces and len(over_elements) > 1 else None


def few_long_rows(group: RowGroup, target: Target) -> bool:
    """Whether rows may be long, and there are fewer of them than threads."""
    count = number(product([a.extent for a in group.rows]))
    size = number(product([a.extent for a in group.inner]))
    return count is not None and count < target.threads and (size is None or size > LONG)


def without_unit_axes(nest: Nest) -> Nest:
    """Axes with a single point are no axes."""
    reduced = () if nest.reduction is None else nest.reduction.axes
    units = [a for a in (*nest.axes, *reduced) if number(a.extent) == 1]
    if not units:
        return nest
    values: dict[PrimVar | SizeVar, PrimExpr] = {a.var: imm(0) for a in units}
    changed = substituted(nest, values)
    reduction = changed.reduction
    if reduction is not None:
        reduction = replace(reduction, axes=tuple(a for a in reduced if a not in units))
    axes = tuple(a for a in nest.axes if a not in units)
    return replace(changed, axes=axes, reduction=reduction)


def substituted(nest: Nest, values: dict[PrimVar | SizeVar, PrimExpr]) -> Nest:
    """The stage with variables replaced; its axes stay."""
    reduction = nest.reduction
    if reduction is not None:
        value = substitute_prim(reduction.value, values)
        reduction = replace(reduction, value=value, init=substitute_prim(reduction.init, values))
    return replace(nest, reduction=reduction, finish=substitute_stmt(nest.finish, values))


def _aligned(nest: Nest, group: RowGroup) -> Nest | None:
    """The stage over the group's variables; None if its axes are others."""
    reduction = nest.reduction
    if reduction is not None:
        expected, found = (*group.rows, *group.inner), (*nest.axes, *reduction.axes)
        if len(nest.axes) != len(group.rows):
            return None
    else:
        found = nest.axes
        scalar = len(found) == len(group.rows)
        expected = group.rows if scalar else (*group.rows, *group.inner)
    if [a.extent for a in found] != [a.extent for a in expected]:
        return None
    values: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: b.var for a, b in zip(found, expected, strict=True)
    }
    moved = substituted(nest, values)
    if reduction is not None and moved.reduction is not None:
        return replace(moved, axes=group.rows, reduction=replace(moved.reduction, axes=group.inner))
    return replace(moved, axes=expected)


def _walks_rows(nest: Nest, group: RowGroup) -> bool:
    """Whether a stage suits lanes along the row, and a reduction reads each element for one row."""
    if group.is_scalar(nest):
        return True
    known, last = known_of((*group.rows, *group.inner)), group.inner[-1].var
    if nest.reduction is None:
        exprs = [s.value for s in nest.stores()]
        if any(step(place(s, known), last) != 1 for s in nest.stores()):
            return False
    else:
        exprs = [nest.reduction.value]
        variables = [a.var for a in (*group.rows, *group.inner)]
        if not any(_is_point(x.indices, variables) for x in nest.reduction.loads()):
            return False
    if any(may_trap(e) for e in exprs):
        return False
    return all(step(place(x, known), last) in (0, 1) for x in nest.loads())


def _is_point(indices: Sequence[PrimExpr], variables: Sequence[PrimVar]) -> bool:
    """Whether each of the variables is an index, once, and no other index depends on them."""
    plain = [i for i in indices if any(i is v for v in variables)]
    others = [i for i in indices if not any(i is v for v in variables)]
    if len(plain) != len(variables) or len(set(plain)) != len(variables):
        return False
    return not any(depends(i, v) for i in others for v in variables)


def _is_legal(group: RowGroup) -> bool:
    """Whether what a stage writes is read, by it or the others, only at the very same point."""
    written: dict[Buffer, tuple[PrimExpr, ...]] = {}
    rows = [a.var for a in group.rows]
    for stage in group.stages:
        over = rows if stage.reduction is not None else [a.var for a in stage.axes]
        for store in stage.stores():
            if store.buffer in written or not _is_point(store.indices, over):
                return False
            if store.predicate is not None:
                return False
            written[store.buffer] = store.indices
    loads = [x for stage in group.stages for x in stage.loads()]
    return all(written.get(x.buffer, x.indices) == x.indices for x in loads)
