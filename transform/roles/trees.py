"""A stage that goes down trees, step by step, and one that joins what their leaves hold.

The first is a block whose reduction goes by steps, each from where the last one came: it looks its
next place up by the place. The second sums up, or takes the least or greatest, over trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Load, PrimVar
from unity.ir.stmt import Block, Buffer, For, Stmt, Store
from unity.ir.visit import walk_prim

from ..blocks.nest import Axis, Nest


@dataclass(frozen=True, slots=True)
class Trees:
    """The stages.

    Attributes:
        written: The stage that goes down.
        descent: Its block.
        joined: The stage that joins.
        row: Its axis over rows: those that go down.
        groups: Its axes over groups of trees.
        columns: Its axes within what a leaf holds.
        tree: The axis that it joins over.
    """

    written: Stmt
    descent: Block
    joined: Nest
    row: Axis
    groups: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    tree: Axis

    @property
    def places(self) -> Buffer:
        """Where rows are."""
        return self.descent.writes[0].buffer

    @property
    def depth(self) -> Axis:
        """The steps down."""
        axis = self.descent.axes[-1]
        return Axis(axis.var, axis.domain.extent)


def trees_of(stages: Sequence[Nest | Stmt]) -> Trees | None:
    """These stages' first two as trees; None if they are anything else."""
    match stages[:2]:
        case [first, Nest() as joined] if not isinstance(first, Nest):
            descent = _descent(first)
            return None if descent is None else _joined(first, descent, joined)
        case _:
            return None


def _descent(s: Stmt) -> Block | None:
    """A block in a loop for each of its axes, the last one of steps that read where they are."""
    loops: list[PrimVar] = []
    while isinstance(s, For) and s.kind == "serial":
        loops.append(s.var)
        s = s.body
    if not isinstance(s, Block) or s.predicate is not None or s.allocations or len(loops) < 2:
        return None
    if [a.value for a in s.axes] != loops or len(s.writes) != 1:
        return None
    if [a.kind for a in s.axes] != ["S"] * (len(loops) - 1) + ["R"]:
        return None
    here, at = s.writes[0].buffer, tuple(a.var for a in s.axes[:-1])
    for store in (s.init, s.body):
        if not isinstance(store, Store) or store.buffer is not here or store.indices != at:
            return None
    assert isinstance(s.body, Store)
    read = [e for e in walk_prim(s.body.value) if isinstance(e, Load) and e.buffer is here]
    return s if read and all(e.indices == at for e in read) else None


def _joined(written: Stmt, descent: Block, nest: Nest) -> Trees | None:
    """What reads the places of a descent, each once, over the trees."""
    places, reduction = descent.writes[0].buffer, nest.reduction
    if reduction is None or len(reduction.axes) != 1:
        return None
    read = {x.indices for x in nest.loads() if x.buffer is places}
    if len(read) != 1:
        return None
    (at,) = read
    axes, (tree,) = {a.var: a for a in nest.axes}, reduction.axes
    if at[-1] != tree.var or not all(isinstance(e, PrimVar) and e in axes for e in at[:-1]):
        return None
    outer = [axes[e] for e in at[:-1] if isinstance(e, PrimVar)]
    columns = tuple(a for a in nest.axes if a not in outer)
    if len({a.var for a in outer}) < len(outer) or list(nest.axes) != [*outer, *columns]:
        return None
    row, *groups = outer
    return Trees(written, descent, nest, row, tuple(groups), columns, tree)
