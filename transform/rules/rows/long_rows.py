"""A few long rows: each pass over a row in pieces that threads share.

Softmax and the norms of one long row have a row for one thread only. So each pass is done in
pieces, which leave the partial results of its reductions side by side, and what comes of those is
known before the next pass begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, ForKind, IfThen, Seq, Stmt, Store
from unity.ir.visit import substitute_stmt
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...roles.row_group import RowGroup, few_long_rows, row_group, substituted
from ..contraction.plain import PLAIN
from ..contraction.split_reduction import unit_of
from ..rule import Legal, Neighbourhood, Rule, worth
from ..stages import Stages
from .row_by_row import RowSteps, Walk, row_steps, rows, walk_of
from .row_pass import RowPass


@dataclass(frozen=True, slots=True)
class Rows:
    """Stages over the same rows, and the temporaries that no other stage uses."""

    group: RowGroup
    private: frozenset[Buffer]


def _match(stages: Stages, _target: Target) -> Rows | None:
    group = row_group(stages.rest)
    return None if group is None else Rows(group, frozenset(stages.private(len(group.stages))))


def _legal(_rows: Rows, _decisions: RowSteps, _target: Target) -> Neighbourhood:
    several = Legal(range(1, 17), "a step takes up to 16 vectors")
    return {
        "vectors": several,
        "costly_vectors": several,
        "long": worth("elements"),
        "grain": worth("operations"),
    }


def _write(found: Rows, how: RowSteps, target: Target) -> Stmt:
    """A row for each thread, or the threads on one row after another."""
    group, private = found.group, {*found.private}
    count = number(product([a.extent for a in group.rows]))
    size = product([a.extent for a in group.inner])
    length = number(size)
    uneven = count is not None and not target.shares_evenly(count)
    if length is not None and uneven and length > how.long:
        return _shared(group, private, how, target)
    whole = rows(group, private, how, target)
    if length is not None or not few_long_rows(group, target):
        return whole
    long = Compare("gt", size, imm(how.long))
    return IfThen(long, _shared(group, private, how, target), whole)


LONG_ROWS = Rule(
    "long_rows",
    _match,
    decide=lambda found, target: row_steps(found.group, target),
    legal=_legal,
    write=_write,
    count=lambda found: len(found.group.stages),
)


def _shared(group: RowGroup, private: set[Buffer], how: RowSteps, target: Target) -> Stmt:
    """The rows one after another."""
    walk = walk_of(group, private, how, target, room=False)
    stmts: list[Stmt] = []
    sums: list[Buffer] = []
    for step in walk.steps:
        if isinstance(step, Nest):
            stmts.append(step.finish)
            continue
        done, partial = _pass(step, walk, target)
        stmts += done
        sums += partial
    body: Stmt = Seq(tuple(stmts))
    for buffer in (*walk.local, *sums):
        body = Allocate(buffer, body)
    points = [PrimVar(a.var.name.removeprefix("v")) for a in group.rows]
    values: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: at for a, at in zip(group.rows, points, strict=True)
    }
    body = substitute_stmt(body, values)
    for axis, at in zip(reversed(group.rows), reversed(points), strict=True):
        body = For(at, imm(0), axis.extent, body)
    return body


def _pass(stages: Sequence[Nest], walk: Walk, target: Target) -> tuple[list[Stmt], list[Buffer]]:
    """A pass over the row, and the partial results that it needs room for."""
    inner = walk.group.inner
    longest = max(inner, key=lambda a: number(a.extent) or 1 << 62)
    pieces = _pieces(product([a.extent for a in inner]), walk.cost(stages), target)
    unit = unit_of(longest.extent, pieces)
    count = simplify(Binary("floordiv", longest.extent, imm(unit * pieces)))
    each = simplify(multiply(count, imm(unit)))
    done = simplify(multiply(each, imm(pieces)))
    left = simplify(Binary("sub", longest.extent, done))
    partial = {
        stage: Buffer(f"{stage.name}_parts", (imm(pieces + 1),), stage.reduction.value.dtype)
        for stage in stages
        if stage.reduction is not None
    }

    def part(slot: PrimExpr, begin: PrimExpr, extent: PrimExpr) -> Stmt:
        """Some of the row, its results in a slot."""
        values: dict[PrimVar | SizeVar, PrimExpr] = {longest.var: add(begin, longest.var)}
        axes = tuple(replace(a, extent=extent) if a is longest else a for a in inner)
        moved = [_moved(s, values, axes, partial.get(s), slot) for s in stages]
        whole = RowPass(
            axes, tuple(moved), walk.lanes, walk.unroll(stages, extent),
            frozenset(), walk.silent,
        )  # fmt: skip
        return whole.stmt()

    stmts = [_identities(partial, pieces) if number(left) == 0 else part(imm(pieces), done, left)]
    piece = PrimVar("piece")
    kind: ForKind = "parallel" if pieces > 1 else "serial"
    stmts.append(For(piece, imm(0), imm(pieces), part(piece, multiply(piece, each), each), kind))
    for stage, buffer in partial.items():
        stmts.append(_total(stage, buffer, pieces, target))
    return stmts, list(partial.values())


def _pieces(size: PrimExpr, cost: int, target: Target) -> int:
    """As many as keep the threads even; one for what is done before another thread wakes."""
    known = number(size)
    if known is None:
        return target.threads
    machine = target.machine
    most = known * cost // (target.threads * machine.grain("elements"))
    return max(1, target.threads * min(machine.tasks_per_thread, most))


def _moved(
    stage: Nest,
    values: dict[PrimVar | SizeVar, PrimExpr],
    axes: tuple[Axis, ...],
    partial: Buffer | None,
    slot: PrimExpr,
) -> Nest:
    """A stage over a part of the row."""
    moved = substituted(stage, values)
    if partial is None or moved.reduction is None:
        return moved
    reduction = replace(moved.reduction, axes=axes, init=moved.reduction.identity)
    return replace(moved, reduction=reduction, finish=Store(partial, (slot,), reduction.result))


def _identities(partial: dict[Nest, Buffer], slot: int) -> Stmt:
    """Nothing is left over: the last slots hold what changes nothing."""
    stores = [
        Store(b, (imm(slot),), s.reduction.identity) for s, b in partial.items() if s.reduction
    ]
    return Seq(tuple(stores))


def _total(stage: Nest, partial: Buffer, pieces: int, target: Target) -> Stmt:
    """The result of partial ones."""
    reduction = stage.reduction
    assert reduction is not None
    slot = Axis(PrimVar("slot"), imm(pieces + 1))
    value = Load(partial, (slot.var,))
    whole = Reduction(reduction.op, (slot,), value, reduction.init, reduction.result)
    found = PLAIN.on(replace(stage, axes=(), reduction=whole), target)
    assert found is not None
    return found.stmt()
