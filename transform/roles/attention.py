"""Two contractions with row stages between them: what attention is, told by its structure.

The first contraction makes rows (scores), the stages between map and reduce each row (a softmax),
the second sums along the row. None of it need be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Buffer, Stmt
from unity.machine.target import Target

from ..blocks.access import depends
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest
from .row_group import RowGroup, few_long_rows, row_group, substituted, without_unit_axes


@dataclass(frozen=True, slots=True)
class RowChain:
    """The stages, all over the same variables.

    Attributes:
        outer: The axes that tell one set of rows from another.
        row: The axis over the rows of a set, which meet the same other operands; None if each row
            meets its own.
        inner: The axis within a row.
        head: Makes the rows; its spatial axes are `outer`, `row` (in any order), then `inner`.
        middle: The stages between.
        tail: Sums along the rows; its spatial axes are `outer`, `row` and `columns`.
        columns: The axes of the result that are no rows'.
    """

    outer: tuple[Axis, ...]
    row: Axis | None
    inner: Axis
    head: Nest
    middle: RowGroup
    tail: Nest
    columns: tuple[Axis, ...]

    @property
    def stages(self) -> tuple[Nest, ...]:
        """In order."""
        return (self.head, *self.middle.stages, self.tail)

    @property
    def temporaries(self) -> dict[Buffer, tuple[PrimExpr, ...]]:
        """What the stages before the last one write, and where."""
        return {s.buffer: s.indices for n in self.stages[:-1] for s in n.stores()}

    def overwritten(self, buffer: Buffer) -> Buffer | None:
        """A temporary of elements that is read last, and only there, where this one is written."""
        at = next(
            i for i, n in enumerate(self.stages) if any(s.buffer is buffer for s in n.stores())
        )
        stage = self.stages[at]
        if stage.reduction is not None or self.middle.is_scalar(stage):
            return None
        later = {x.buffer for n in self.stages[at + 1 :] for x in n.loads()}
        for load in stage.loads():
            alike = load.buffer.dtype == buffer.dtype and load.indices == self.temporaries[buffer]
            if alike and load.buffer in self.temporaries and load.buffer not in later:
                return load.buffer
        return None


def row_chain(
    stages: Sequence[Nest | Stmt], private: set[Buffer], target: Target
) -> RowChain | None:
    """The chain that these stages begin with, if they do.

    Args:
        stages: In order.
        private: The kernel's temporaries.
        target: Tells how many threads would share the rows.
    """
    if not stages or not isinstance(stages[0], Nest) or stages[0].reduction is None:
        return None
    group = row_group(stages[1:])
    if group is None or len(group.inner) != 1 or few_long_rows(group, target):
        return None
    end = 1 + len(group.stages)
    last = stages[end] if end < len(stages) else None
    if not isinstance(last, Nest) or last.reduction is None:
        return None
    head = _aligned_head(without_unit_axes(stages[0]), group)
    tail = _aligned_tail(without_unit_axes(last), group)
    if head is None or tail is None:
        return None
    row = _row_axis(group, head, tail)
    rows = {a.var for a in group.rows}
    chain = RowChain(
        outer=tuple(a for a in group.rows if a is not row),
        row=row,
        inner=group.inner[0],
        head=head,
        middle=group,
        tail=tail,
        columns=tuple(a for a in tail.axes if a.var not in rows),
    )
    inside = set(chain.temporaries)
    if not inside <= private or not chain.columns:
        return None
    for stage in stages[end + 1 :]:
        if not isinstance(stage, Nest) or any(x.buffer in inside for x in stage.loads()):
            return None
    return chain


def _aligned_head(nest: Nest, group: RowGroup) -> Nest | None:
    """The first stage over the group's variables, if it makes the rows point by point."""
    wanted = (*group.rows, *group.inner)
    if [a.extent for a in nest.axes] != [a.extent for a in wanted]:
        return None
    values: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: b.var for a, b in zip(nest.axes, wanted, strict=True)
    }
    moved = replace(substituted(nest, values), axes=wanted)
    made = {s.buffer: s.indices for s in moved.stores()}
    reads = [x for s in group.stages for x in s.loads() if x.buffer in made]
    whole = all(any(i is a.var for i in at) for at in made.values() for a in wanted)
    if not whole or not reads or any(x.indices != made[x.buffer] for x in reads):
        return None
    return moved


def _aligned_tail(nest: Nest, group: RowGroup) -> Nest | None:
    """The last stage over the group's variables, if it sums along the rows."""
    reduction = nest.reduction
    assert reduction is not None
    if len(reduction.axes) != 1 or reduction.axes[0].extent != group.inner[0].extent:
        return None
    written = {s.buffer: s.indices for stage in group.stages for s in stage.stores()}
    into: dict[PrimVar, PrimVar] = {}
    for load in reduction.loads():
        for mine, theirs in zip(load.indices, written.get(load.buffer, ()), strict=False):
            if isinstance(mine, PrimVar) and isinstance(theirs, PrimVar):
                into[mine] = theirs
    extents = {a.var: a.extent for a in (*nest.axes, *reduction.axes)}
    wanted = {a.var: a.extent for a in (*group.rows, *group.inner)}
    if set(into.values()) != set(wanted) or len(into) != len(wanted):
        return None
    if any(extents.get(a) != wanted[b] for a, b in into.items()):
        return None
    if into.get(reduction.axes[0].var) is not group.inner[0].var:
        return None
    by_var = {a.var: a for a in group.rows}
    values: dict[PrimVar | SizeVar, PrimExpr] = dict(into.items())
    moved = substituted(nest, values)
    assert moved.reduction is not None
    axes = tuple(by_var.get(into.get(a.var, a.var), a) for a in nest.axes)
    if any(x.indices != written[x.buffer] for x in moved.loads() if x.buffer in written):
        return None
    return replace(moved, axes=axes, reduction=replace(moved.reduction, axes=group.inner))


def _row_axis(group: RowGroup, head: Nest, tail: Nest) -> Axis | None:
    """The longest axis of rows that meet the same other operand in both contractions."""
    assert head.reduction is not None
    assert tail.reduction is not None
    inner = group.inner[0].var
    temporary = {s.buffer for n in (head, *group.stages) for s in n.stores()}
    moving = [x for x in head.reduction.loads() if depends(x, inner)]
    moving += [x for x in tail.reduction.loads() if x.buffer not in temporary]
    fitting = [a for a in group.rows if not any(depends(x, a.var) for x in moving)]
    return max(fitting, key=lambda a: number(a.extent) or 1 << 30, default=None)
