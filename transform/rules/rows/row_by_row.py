"""Stages over the same rows done row by row: each row stays in cache, or in registers.

Written at once, for attention's writers alone (`attention/blocks.py`, `attention/matrix_tiles.py`):
rows of a kernel of their own are programs of steps (`by_row.py`). A pass computes several stages in
a vector, an element loaded once and passed on in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import multiply
from unity.ir.stmt import Allocate, Buffer, Stmt
from unity.ir.visit import substitute_stmt
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import sequence
from ...roles.lanes import lanes_for
from ...roles.row_group import LONG, RowGroup
from ...tactics.row_storage import stored_in_rows
from ...tactics.threads import parallel
from .passes import (
    COSTLY_VECTORS,
    DIRECT,
    VECTORS,
    VECTORS_UNKNOWN,
    bits_of,
    cost_of,
    is_costly,
    read_in_one_pass,
    steps_of,
)
from .prefetch import ahead, busiest
from .row_pass import RowPass
from .walk import RowSteps


def row_steps(group: RowGroup, target: Target) -> RowSteps:
    """What suits a group of rows."""
    vectors = VECTORS_UNKNOWN if number(group.inner[-1].extent) is None else VECTORS
    return RowSteps(vectors, COSTLY_VECTORS, LONG, target.machine.grain("elements"))


@dataclass(frozen=True, slots=True)
class Walk:
    """How the rows of a group are walked.

    Attributes:
        group: The stages, their temporaries where they are kept.
        steps: Passes over the row, and stages between them that work on one number.
        how: Vectors in a step.
        lanes: How many.
        local: Buffers of one row.
        silent: Buffers that nobody reads after the pass that writes them.
    """

    group: RowGroup
    steps: tuple[Nest | tuple[Nest, ...], ...]
    how: RowSteps
    lanes: int
    local: tuple[Buffer, ...]
    silent: frozenset[Buffer]

    def unroll(self, stages: Sequence[Nest], extent: PrimExpr) -> int:
        """Vectors in a step of a pass over so many elements."""
        length = number(extent)
        unroll = self.how.costly_vectors if is_costly(stages) else self.how.vectors
        return unroll if length is None else max(1, min(unroll, -(-length // self.lanes)))

    def cost(self, stages: Sequence[Nest]) -> int:
        """Simple operations for each element."""
        return cost_of(stages)


def walk_of(group: RowGroup, private: set[Buffer], how: RowSteps, target: Target) -> Walk:
    """How to walk the rows of a group.

    Args:
        group: The stages.
        private: Temporaries that no other stage uses.
        how: Vectors in a step.
        target: Tells the lanes.
    """
    last = group.inner[-1].extent
    lanes = lanes_for(bits_of(group), target.vector_bits, last)
    silent = private & read_in_one_pass(group)
    length = number(last)
    short = length is not None and len(group.inner) == 1 and -(-length // lanes) <= DIRECT
    group, local = stored_in_rows(group, private, silent, lanes, short)
    return Walk(group, tuple(steps_of(group)), how, lanes, tuple(local), frozenset(silent))


def rows(group: RowGroup, private: set[Buffer], how: RowSteps, target: Target) -> Stmt:
    """The group as one loop over its rows.

    Args:
        group: The stages.
        private: Temporaries that no other stage uses.
        how: Vectors in a step, and what is worth a thread.
        target: Tells the lanes.
    """
    walk = walk_of(group, private, how, target)
    group = walk.group
    stmts: list[Stmt] = []
    fetching = busiest(walk.steps)
    for at, each in enumerate(walk.steps):
        if isinstance(each, Nest):
            stmts.append(each.finish)
            continue
        one = RowPass(
            group.inner, each, walk.lanes, walk.unroll(each, group.inner[-1].extent),
            frozenset(walk.local), walk.silent, ahead=ahead(group) if at == fetching else (),
        )  # fmt: skip
        stmts.append(one.stmt())
    body = sequence(stmts)
    for buffer in walk.local:
        body = Allocate(buffer, body)

    def at_row(point: Sequence[PrimExpr]) -> Stmt:
        values: dict[PrimVar | SizeVar, PrimExpr] = {
            a.var: p for a, p in zip(group.rows, point, strict=True)
        }
        return substitute_stmt(body, values)

    domain = [(a.var.name.removeprefix("v"), a.extent) for a in group.rows]
    cost = walk.cost([s for s in group.stages if not group.is_scalar(s)])
    work = multiply(product([a.extent for a in group.inner]), imm(cost))
    return parallel(domain, work, how.grain, at_row)
