"""The passes over a row that a group of stages takes, and what passes between its stages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import Buffer
from unity.ir.visit import stmt_exprs, walk_stmt
from unity.machine.target import Target

from ...blocks.access import known_of, place, step
from ...blocks.element_cost import functions, operations
from ...blocks.nest import Nest
from ...roles.row_group import RowGroup

VECTORS, VECTORS_UNKNOWN = 8, 4
"""Vectors in a step, and where rows may be short."""
DIRECT = 16
"""Vectors up to which a row is written out without a loop: softmax of 96 numbers takes 0.87 of the
time, of 128 0.96 (AMD Zen 3)."""
Pass = tuple[Nest, ...]
"""Stages that are done while walking a row once, in order."""


def costly_vectors(target: Target) -> int:
    """Vectors in a step where they take many instructions.

    What exponentials multiply by fills 16 registers: of two at a time one's steps would spill. A
    cpu that reorders instructions has several in work anyway. Softmax of 1000 and 128 numbers takes
    0.9 of the time so (AMD Zen 3).
    """
    return 2 if target.many_registers else 1


def steps_of(group: RowGroup) -> list[Nest | Pass]:
    """Passes over the row, and stages between them that work on one number.

    A stage joins the pass before it unless it needs the result of a reduction there.
    """
    steps: list[Nest | Pass] = []
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


def read_in_one_pass(group: RowGroup) -> set[Buffer]:
    """The buffers of elements that are not read after the pass that writes them."""
    found: set[Buffer] = set()
    steps = [s if isinstance(s, tuple) else (s,) for s in steps_of(group)]
    for at, step_ in enumerate(steps):
        later = {x.buffer for s in steps[at + 1 :] for each in s for x in each.loads()}
        for stage in step_:
            if stage.reduction is None and not group.is_scalar(stage):
                found |= {s.buffer for s in stage.stores()} - later
    return found


def cost_of(stages: Sequence[Nest]) -> int:
    """Simple operations for each element."""
    return sum(operations(_exprs(s)) for s in stages)


def computes_functions(stages: Sequence[Nest]) -> bool:
    """Whether an element takes many instructions."""
    return any(functions(_exprs(s)) for s in stages)


def _exprs(stage: Nest) -> list[PrimExpr]:
    """What is computed for each element."""
    if stage.reduction is not None:
        return [stage.reduction.value]
    return [e for s in walk_stmt(stage.finish) for e in stmt_exprs(s)]


def bits_of(group: RowGroup) -> int:
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


@dataclass(frozen=True, slots=True)
class Hosted:
    """A temporary that lies in a buffer which a later stage writes.

    Attributes:
        maker: The stage that makes it.
        host: The stage that writes the buffer.
    """

    maker: Nest
    host: Nest


def hosted_in(
    group: RowGroup, private: Collection[Buffer], silent: Collection[Buffer]
) -> list[Hosted]:
    """Which temporaries of elements, but those that are never stored, an output's rows hold.

    One of the same type, that is written at the same points no sooner than the temporary is read
    last, and holds no other one meanwhile: that costs no memory, whatever the length of the row.
    """
    found: list[Hosted] = []
    taken: list[tuple[Buffer, int, int]] = []
    for at, stage in enumerate(group.stages):
        if stage.reduction is not None or group.is_scalar(stage):
            continue
        (store,) = stage.stores()
        if store.buffer not in private or store.buffer in silent:
            continue
        last = _last_use(group, store.buffer)
        for other in group.stages[last:]:
            (end,) = other.stores()
            host, old = end.buffer, store.buffer
            alike = host.dtype == old.dtype and host.shape == old.shape
            plain = host.strides is None and old.strides is None
            if host in private or not alike or not plain or end.indices != store.indices:
                continue
            if all(h is not host or e <= at or last <= b for h, b, e in taken):
                taken.append((host, at, last))
                found.append(Hosted(stage, other))
                break
    return found


def _last_use(group: RowGroup, buffer: Buffer) -> int:
    return max(
        at
        for at, stage in enumerate(group.stages)
        if buffer in {x.buffer for x in stage.loads()} | {x.buffer for x in stage.stores()}
    )
