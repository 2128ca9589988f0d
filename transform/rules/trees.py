"""Decision trees, by steps: several at once for each row, rows by blocks, blocks on threads.

A step down waits for the node that the last one led to; steps in several trees wait together. A few
trees stay in the first cache while a block of rows goes down them. Values are added in the order of
the trees, so that sums are what one tree after another gives.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import imm
from unity.ir.stmt import Buffer
from unity.machine.target import Target

from ..blocks.extents import ceildiv, number, product
from ..roles.lanes import lanes_for
from ..roles.trees import Trees, trees_of
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule
from ..tactics.threads import share
from .rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from .stages import Stages

TREES = 10
"""Trees that a row goes down at once: their places and what a step needs fill 15 registers."""
MOST_TREES = 32
ROWS = 128
"""Rows of a block, at best."""
SUMS = 16 << 10
"""Bytes of sums that a block of rows may have."""
STEP = 6
"""Instructions of a step down."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Trees and what only they touch.

    Attributes:
        trees: Their stages.
        private: What only these touch.
    """

    trees: Trees
    private: frozenset[Buffer]


@dataclass(frozen=True, slots=True)
class TreesTogether:
    """The decisions.

    Attributes:
        trees: Those that a row goes down at once.
        rows: Of a block.
        lanes: Columns of a leaf in a vector.
        grain: Operations that a task has at least.
    """

    trees: int
    rows: int
    lanes: int
    grain: int


def _match(stages: Stages, _target: Target) -> Ensemble | None:
    found = trees_of(stages.rest)
    if found is None or found.places not in stages.private(2) or number(found.tree.extent) is None:
        return None
    return Ensemble(found, frozenset(stages.private(2)))


def _count(ensemble: Ensemble) -> int:
    return number(ensemble.trees.tree.extent) or 1


def _decide(ensemble: Ensemble, target: Target) -> TreesTogether:
    trees = ensemble.trees
    width = number(product([a.extent for a in trees.columns])) or 64
    wide = trees.joined.output.dtype
    rows = ROWS
    while rows > 1 and rows * width * wide.bytes > SUMS:
        rows //= 2
    lanes = lanes_for(wide.bits, target.vector_bits, trees.columns[-1].extent)
    return TreesTogether(
        min(TREES, _count(ensemble)),
        rows,
        lanes if trees.columns and width >= lanes else 1,
        target.machine.grain("operations"),
    )


def _legal(ensemble: Ensemble, _how: TreesTogether, _target: Target) -> Neighbourhood:
    count = _count(ensemble)
    return {
        "trees": Legal(range(1, min(MOST_TREES, count) + 1), f"there are {count} trees"),
        "rows": Legal([1 << k for k in range(11)], "any number is right"),
        "lanes": Legal([1 << k for k in range(6)], "any number is right"),
        "grain": worth("operations"),
    }


def schedule_trees(sch: Schedule, ensemble: Ensemble, how: TreesTogether, results: Results) -> None:
    """Lay out trees by steps of a schedule."""
    trees = ensemble.trees
    name, down = trees.joined.name, trees.descent.name
    row, *rest, tree = sch.get_loops(name)
    groups, columns = rest[: len(trees.groups)], rest[len(trees.groups) :]
    blocks, row = sch.split(row, [None, how.rows])
    several, tree = sch.split(tree, [None, how.trees])
    sch.reorder(blocks, *groups, several, row, *columns, tree)
    around = [blocks, *groups]
    sch.reverse_compute_at(results[name], around[-1])
    init = sch.decompose_reduction(name, several)
    sch.store_at(init, 0, around[-1])
    _go_down_together(sch, down, row)
    sch.unroll(tree)
    if how.lanes > 1:
        sch.vectorize(sch.split(columns[-1], [None, how.lanes])[1])
    work = [trees.tree.extent, trees.depth.extent, imm(STEP * how.rows)]
    points = [ceildiv(trees.row.extent, imm(how.rows)), *(a.extent for a in trees.groups)]
    share(sch, around, product(points), product(work), how.grain)


def _go_down_together(sch: Schedule, down: str, row: LoopRef) -> None:
    """Each row goes down some trees at once, its places in registers."""
    outside = len(sch.get_loops(down))
    sch.compute_at(down, row)
    *points, level = sch.get_loops(down)[-outside:]
    sch.reorder(level, *points)
    init = sch.decompose_reduction(down, level)
    sch.set_scope(init, 0, "local")
    sch.store_at(init, 0, row)
    for block in (init, down):
        sch.unroll(sch.get_loops(block)[-1])


TREE_ENSEMBLE = group_by_steps(
    "trees",
    _match,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda e: (e.trees.written, e.trees.joined),
        private=lambda e: e.private,
        take=schedule_trees,
    ),
)
