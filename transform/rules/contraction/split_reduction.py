"""Few sums over much: the sum made in pieces that threads share, then a sum of the pieces.

A rule's threads share the results of a stage. Where there are fewer of them than threads (the sum
of a long vector, a product with few columns and a long depth), `rfactor` makes partial results,
which are as many as pieces. How many pieces there are depends on the number of threads alone, so
the result is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.errors import UnityError
from unity.ir.marks import INSTRUCTION
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Stmt, Store
from unity.ir.visit import substitute_prim, walk_stmt
from unity.machine.target import Target

from ...blocks.access import collapsed
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, nest_of, opened
from ...blocks.stage import stage_of
from ...blocks.tree import sequence
from ...schedule.schedule import Schedule
from ...schedule.trace import Trace
from ...tactics.epilogue import fused
from ..rule import Found, Legal, Neighbourhood, Rule, worth
from ..table import laid_out

UNIT = 16
"""Steps that pieces of a long axis have a multiple of, so that each begins at a line of memory."""
MOST_PIECES = 256
"""Pieces of a sum, at most."""
LEAST = 256
"""Steps of a sum in a piece, at least: keeping partial results must cost little beside them."""


@dataclass(frozen=True, slots=True)
class Split:
    """A reduction in pieces.

    Attributes:
        rest: What is left of an extent that the pieces do not divide.
        piece: The loop over pieces.
        partial: What a piece does.
        total: What is made of the partial results.
        temporaries: What the stages leave each other.
        trace: The steps of the schedule that parted them.
    """

    rest: Nest | None
    piece: Axis
    partial: Nest
    total: Nest
    temporaries: tuple[Buffer, ...]
    trace: Trace

    def stmt(self, target: Target) -> Stmt:
        """The stages by the rules, the pieces on threads."""
        each = laid_out(self.partial, target)
        stmts = [] if self.rest is None else [laid_out(self.rest, target)]
        stmts.append(For(self.piece.var, imm(0), self.piece.extent, each, "parallel"))
        body = sequence([*stmts, laid_out(self.total, target)])
        for buffer in self.temporaries:
            body = Allocate(buffer, body)
        return body


@dataclass(frozen=True, slots=True)
class Whole:
    """A stage, and the rule that lays it out in one piece."""

    stage: Nest
    found: Found


@dataclass(frozen=True, slots=True)
class Sums:
    """A stage whose sums may be made in pieces.

    Attributes:
        whole: The stage, and how it is laid out in one piece.
        nest: The stage with its axes joined.
        longest: The axis that is cut.
    """

    whole: Whole
    nest: Nest
    longest: Axis


@dataclass(frozen=True, slots=True)
class Pieces:
    """The decisions.

    Attributes:
        pieces: How many pieces a sum is made in.
        least: Steps of the whole stage from which it is, where they are not known.
    """

    pieces: int
    least: int


def _match(whole: Whole, target: Target) -> Sums | None:
    """A stage whose tasks are fewer than the threads, or too few to be even."""
    if whole.stage.reduction is None or target.threads == 1:
        return None
    if not _leaves_idle(whole.found.stmt(), target):
        return None
    nest = collapsed(whole.stage)
    reduction = nest.reduction
    assert reduction is not None
    longest = max(reduction.axes, key=lambda a: number(a.extent) or 1 << 62)
    sums = Sums(whole, nest, longest)
    pieces, extent = _decide(sums, target).pieces, number(longest.extent)
    if pieces == 0 or (extent is not None and extent < pieces):
        return None
    summed = number(product([a.extent for a in reduction.axes]))
    if summed is not None and summed < pieces * LEAST:
        return None
    split = split_reduction(nest, longest, pieces, target)
    if split is None or _instructions(whole.found.stmt()) - _instructions(split.stmt(target)):
        return None  # one thread's tiles of a matrix are more than several threads' lanes
    return sums


def _steps(sums: Sums) -> PrimExpr:
    reduction = sums.nest.reduction
    assert reduction is not None
    return product([a.extent for a in (*sums.nest.axes, *reduction.axes)])


def _decide(sums: Sums, target: Target) -> Pieces:
    work = number(_steps(sums))
    pieces, grain = target.threads, target.machine.grain("multiply_adds")
    least = pieces * grain
    if work is not None:
        pieces *= min(target.machine.tasks_per_thread, work // least)
    return Pieces(pieces, least)


def _legal(sums: Sums, decisions: Pieces, target: Target) -> Neighbourhood:
    extent = number(sums.longest.extent)
    most = min(extent or MOST_PIECES, MOST_PIECES)
    return {
        "pieces": Legal(range(1, most + 1), f"the axis has {extent or 'unknown'} steps"),
        "least": worth("steps"),
    }


def _write(sums: Sums, decisions: Pieces, target: Target) -> Stmt:
    split = split_reduction(sums.nest, sums.longest, decisions.pieces, target)
    assert split is not None
    body, steps = split.stmt(target), _steps(sums)
    if number(steps) is not None:
        return body
    return IfThen(Compare("ge", steps, imm(decisions.least)), body, sums.whole.found.stmt())


SPLIT_REDUCTION = Rule("split_reduction", _match, _decide, _legal, _write)


def _instructions(s: Stmt) -> set[str]:
    """The instructions on tiles and groups that a statement uses."""
    marks = (x.attrs.get(INSTRUCTION) for x in walk_stmt(s) if isinstance(x, For))
    return {str(mark) for mark in marks if mark is not None}


def _leaves_idle(s: Stmt, target: Target) -> bool:
    """Whether a statement has less tasks than threads, or too few to be even."""
    tasks = [number(x.extent) for x in walk_stmt(s) if isinstance(x, For) and x.kind == "parallel"]
    known = [n for n in tasks if n is not None]
    if len(known) < len(tasks):
        return False
    most = max(known, default=1)
    return most < target.threads or not target.shares_evenly(most)


def split_reduction(nest: Nest, axis: Axis, pieces: int, target: Target) -> Split | None:
    """A reduction in so many pieces of one of its axes; None if that is not known to be legal.

    >>> from unity.script import parse
    >>> from unity.transform.blocks.nest import nest_of
    >>> from unity.transform.rules.contraction.split_reduction import split_reduction
    >>> func = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 1001], c: f32[Buffer, 1]) -> None:
    ...     for i, k in T.grid(1, 1001):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vk]
    ... ''').prim_funcs()["main"]
    >>> nest = nest_of(func.body)
    >>> split = split_reduction(nest, nest.reduction.axes[0], 2, Target("cpu", "", "", ()))
    >>> [s.reduction.axes[0].extent.value for s in (split.rest, split.partial, split.total)]
    [1, 500, 2]
    >>> [step.name for step in split.trace]
    ['get_loops', 'split', 'rfactor']
    """
    reduction = nest.reduction
    assert reduction is not None
    unit = unit_of(axis.extent, pieces)
    count = simplify(Binary("floordiv", axis.extent, imm(unit * pieces)))
    whole = simplify(multiply(count, imm(unit * pieces)))
    left = simplify(Binary("sub", axis.extent, whole))
    rest = None
    if number(left) != 0:
        rest = _rest(nest, axis, whole, left)
        reduction = replace(reduction, init=Load(rest.output, tuple(a.var for a in nest.axes)))
    even = tuple(replace(a, extent=whole) if a is axis else a for a in reduction.axes)
    stage = stage_of(replace(nest, reduction=replace(reduction, axes=even)))
    if stage.extents:
        return None
    sch = Schedule(stage.func, target)
    at = len(nest.axes) + reduction.axes.index(axis)
    try:
        piece, _ = sch.split(sch.get_loops(nest.name)[at], [pieces, None])
        sch.rfactor(piece)
    except UnityError:
        return None
    temporaries, parts = opened(sch.func.body)
    nests = [found for s in parts if (found := nest_of(s)) is not None]
    if len(nests) != len(parts):
        return None
    partial, total, result = nests
    *others, last = partial.axes
    final = fused(total, result)
    if final is None:
        return None
    return Split(
        rest,
        last,
        replace(partial, axes=tuple(others)),
        replace(final, name=nest.name),
        tuple(b for b in (*temporaries, *([rest.output] if rest else [])) if b is not total.output),
        sch.trace,
    )


def unit_of(extent: PrimExpr, pieces: int) -> int:
    """What the steps of a piece are a multiple of."""
    known = number(extent)
    return UNIT if known is None or known >= 64 * UNIT * pieces else 1


def _rest(nest: Nest, axis: Axis, begin: PrimExpr, extent: PrimExpr) -> Nest:
    """The last steps of an axis by themselves, in a buffer of their own."""
    reduction = nest.reduction
    assert reduction is not None
    moved = substitute_prim(reduction.value, {axis.var: add(begin, axis.var)})
    axes = tuple(replace(a, extent=extent) if a is axis else a for a in reduction.axes)
    buffer = Buffer(f"{nest.name}_left", tuple(a.extent for a in nest.axes), moved.dtype)
    store = Store(buffer, tuple(a.var for a in nest.axes), reduction.result)
    left = replace(reduction, value=moved, axes=axes)
    return Nest(f"{nest.name}_rest", nest.axes, left, store, buffer)
