"""Stages over the same rows done row by row: each row stays in cache, or in registers.

Written at once, not by steps of a `Schedule`. Its steps (`compute_at`, `set_scope`, `rfactor`) put
stages into one loop over rows, but each stage walks its row by itself: a pass here computes several
stages in a vector, an element loaded once and passed on in a register, and joins the lanes of sums
in registers (see `contraction/dot_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import multiply
from unity.ir.stmt import Allocate, Buffer, Stmt
from unity.ir.visit import stmt_exprs, substitute_stmt, walk_stmt
from unity.machine.target import Target

from ...blocks.access import known_of, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import sequence
from ...roles.lanes import lanes_for
from ...roles.row_group import LONG, RowGroup
from ...tactics.row_storage import stored_in_rows
from ...tactics.threads import parallel
from ..elementwise import costly
from .prefetch import ahead, busiest
from .row_pass import DIRECT, RowPass

COSTLY_VECTORS, VECTORS, VECTORS_UNKNOWN = 2, 8, 4
"""Vectors in a step: where they take many instructions, else, and where rows may be short."""


@dataclass(frozen=True, slots=True)
class RowSteps:
    """The decisions about walking rows.

    Attributes:
        vectors: Vectors in a step of a pass over a row, at most.
        costly_vectors: The same where an element takes many instructions.
        long: Elements from which on threads share a row, where rows are few.
        grain: Simple operations that a task has at least.
    """

    vectors: int
    costly_vectors: int
    long: int
    grain: int


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
        unroll = self.how.costly_vectors if self._costly(stages) else self.how.vectors
        return unroll if length is None else max(1, min(unroll, -(-length // self.lanes)))

    def cost(self, stages: Sequence[Nest]) -> int:
        """Simple operations for each element."""
        return sum(1 + 8 * costly(_exprs(s)) for s in stages)

    def _costly(self, stages: Sequence[Nest]) -> bool:
        return any(costly(_exprs(s)) for s in stages)


def walk_of(
    group: RowGroup, private: set[Buffer], how: RowSteps, target: Target, room: bool = True
) -> Walk:
    """How to walk the rows of a group.

    Args:
        group: The stages.
        private: Temporaries that no other stage uses.
        how: Vectors in a step.
        target: Tells the lanes.
        room: Whether there may be buffers of whole rows.
    """
    last = group.inner[-1].extent
    lanes = lanes_for(_bits(group), target.vector_bits, last)
    silent = private & _read_in_one_pass(group)
    length = number(last)
    short = length is not None and len(group.inner) == 1 and -(-length // lanes) <= DIRECT
    group, local = stored_in_rows(group, private, silent, lanes, short, room)
    return Walk(group, tuple(_steps(group)), how, lanes, tuple(local), frozenset(silent))


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


def _steps(group: RowGroup) -> list[Nest | tuple[Nest, ...]]:
    """Passes over the row, and stages between them that work on one number.

    A stage joins the pass before it unless it needs the result of a reduction there.
    """
    steps: list[Nest | tuple[Nest, ...]] = []
    pending: set[Buffer] = set()
    for stage in group.stages:
        if group.is_scalar(stage):
            steps.append(stage)
            continue
        last = steps[-1] if steps else None
        if isinstance(last, tuple) and not any(x.buffer in pending for x in stage.loads()):
            steps[-1] = (*last, stage)
        else:
            steps.append((stage,))
            pending = set()
        if stage.reduction is not None:
            pending |= {s.buffer for s in stage.stores()}
    return steps


def _read_in_one_pass(group: RowGroup) -> set[Buffer]:
    """The buffers of elements that are not read after the pass that writes them."""
    found: set[Buffer] = set()
    steps = [s if isinstance(s, tuple) else (s,) for s in _steps(group)]
    for at, step_ in enumerate(steps):
        later = {x.buffer for s in steps[at + 1 :] for each in s for x in each.loads()}
        for stage in step_:
            if stage.reduction is None and not group.is_scalar(stage):
                found |= {s.buffer for s in stage.stores()} - later
    return found


def _exprs(stage: Nest) -> list[PrimExpr]:
    """What is computed for each element."""
    if stage.reduction is not None:
        return [stage.reduction.value]
    return [e for s in walk_stmt(stage.finish) for e in stmt_exprs(s)]


def _bits(group: RowGroup) -> int:
    """The widest element that moves along a row, or is summed there."""
    known, var = known_of((*group.rows, *group.inner)), group.inner[-1].var
    widths: list[int] = []
    for stage in group.stages:
        if group.is_scalar(stage):
            continue
        if stage.reduction is not None:
            widths.append(stage.reduction.value.dtype.bits)
        else:
            widths += [s.buffer.dtype.bits for s in stage.stores()]
        moving = [x for x in stage.loads() if step(place(x, known), var) != 0]
        widths += [x.buffer.dtype.bits for x in moving]
    return max(widths)
