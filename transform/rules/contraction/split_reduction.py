"""Few sums over much: the sum made in pieces that threads share, then a sum of the pieces.

A rule's threads share the results of a stage. Where there are fewer of them than threads (the sum
of a long vector, a product with few columns and a long depth), `rfactor` makes partial results,
which are as many as pieces. A piece is a kernel of its own (`blockize_body`), which its own rule
lays out, and so is what pieces of one size leave over. How many pieces there are depends on the
number of threads alone, so the result is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from unity.ir.marks import INSTRUCTION
from unity.ir.prim_expr import Compare, PrimExpr, Select, imm
from unity.ir.stmt import Block, For, Stmt, Store
from unity.ir.visit import walk_prim, walk_stmt
from unity.machine.target import Target

from ...blocks.access import Reshaped, all_axes, as_written, collapse
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path, illegal
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.result import with_result
from ..rule import Found, Legal, Names, Neighbourhood, by_steps
from ..within import lay_out_stage, lay_out_within

UNIT = 16
"""Steps that pieces of a long axis have a multiple of, so that each begins at a line of memory."""
MOST_PIECES = 256
"""Pieces of a sum, at most."""
LEAST = 256
"""Steps of a sum in a piece, at least: keeping partial results must cost little beside them."""


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
        shaped: It with its axes joined.
        longest: The axis that is cut.
    """

    whole: Whole
    shaped: Reshaped
    longest: Axis

    @property
    def place(self) -> int:
        """Where that axis stands among all."""
        return all_axes(self.shaped.nest).index(self.longest)

    @property
    def fewest(self) -> int:
        """Steps of all sums, at least, if there are any."""
        return prod(number(a.extent) or 1 for a in all_axes(self.shaped.nest))

    @property
    def steps(self) -> PrimExpr:
        """Steps of all sums."""
        return product([a.extent for a in all_axes(self.shaped.nest)])


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
    shaped = collapse(as_written(whole.stage))
    reduction = shaped.nest.reduction
    assert reduction is not None
    longest = max(reduction.axes, key=lambda a: number(a.extent) or 1 << 62)
    sums = Sums(whole, shaped, longest)
    pieces, extent = _decide(sums, target).pieces, number(longest.extent)
    if pieces == 0 or (extent is not None and extent < pieces):
        return None
    summed = number(product([a.extent for a in reduction.axes]))
    if summed is not None and summed < pieces * LEAST:
        return None
    return sums


def _leaves_idle(s: Stmt, target: Target) -> bool:
    """Whether a stage, as its rule lays it out, has less tasks than threads, or uneven ones."""
    tasks = [number(x.extent) for x in walk_stmt(s) if isinstance(x, For) and x.kind == "parallel"]
    known = [n for n in tasks if n is not None]
    if len(known) < len(tasks):
        return False
    most = max(known, default=1)
    return most < target.threads or not target.shares_evenly(most)


def _decide(sums: Sums, target: Target) -> Pieces:
    work = number(sums.steps)
    pieces, grain = target.threads, target.machine.grain("multiply_adds")
    least = pieces * grain
    if work is not None:
        pieces *= min(target.machine.tasks_per_thread, work // least)
    return Pieces(pieces, max(least, sums.fewest + 1))


def _legal(sums: Sums, decisions: Pieces, target: Target) -> Neighbourhood:
    extent, fewest = number(sums.longest.extent), sums.fewest
    most = min(extent or MOST_PIECES, MOST_PIECES)
    return {
        "pieces": Legal(range(1, most + 1), f"the axis has {extent or 'unknown'} steps"),
        "least": Legal(range(fewest + 1, fewest + (1 << 25)), f"there are {fewest}, if any"),
    }


def schedule_pieces(sch: Schedule, sums: Sums, how: Pieces, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    names: Names = (sums.whole.stage.name, result)
    if number(sums.steps) is None:
        others = sch.specialize_when(Compare("lt", sums.steps, imm(how.least)), *names)
        sums.whole.found.take(sch, [names])
        names = tuple(block.name for block in others)
    first, *_, last = names
    reshape(sch, sums.whole.stage, sums.shaped, last, first)
    pieces, *rest = _partial_sums(sch, sums, how.pieces, first)
    _lay_out(sch, sums, pieces, several=how.pieces > 1)
    for blocks in rest:
        _lay_out(sch, sums, blocks, several=False)
    lay_out_stage(sch, first)


def _partial_sums(sch: Schedule, sums: Sums, pieces: int, name: str) -> list[Names]:
    """The blocks of pieces, of known numbers of one size; and those of what these leave over."""
    loop, extent = sch.get_loops(name)[sums.place], number(sums.longest.extent)
    unit = unit_of(sums.longest.extent, pieces)
    size = None if extent is None else extent // (unit * pieces) * unit
    if size is None:
        piece, *inner = sch.split(loop, [pieces, None, unit])
        sch.fuse(*inner)
    else:
        piece, _ = sch.split(loop, [None, size])
    partial = sch.rfactor(piece).name
    result = with_result(sch, partial, ())
    loops = [piece, sch.get_loops(result)[-1]]
    for block, first in zip((partial, result), loops, strict=True):
        sch.reorder(first, *(x for x in sch.get_loops(block) if x is not first))
    if size is None or extent == size * pieces:
        return [(partial, result)]
    rest = sch.partition_siblings(pieces, *loops)
    return [(partial, result), tuple(block.name for block in rest)]


def _lay_out(sch: Schedule, sums: Sums, blocks: Names, *, several: bool) -> None:
    """Lay out pieces, each by the rule for it."""
    partial, _ = blocks
    piece = sch.fuse_siblings(*(sch.get_loops(block)[0] for block in blocks))
    sch.store_at(partial, 0, piece)
    block = sch.blockize_body(piece)
    sch.compact_buffer(partial, 0)
    if _chooses(block_path(sch.func, partial)[1]):
        sch.trim(sch.get_loops(partial)[sums.place])
    if several:
        sch.parallel(piece)
    lay_out_within(sch, block.name)
    made = _instructions(block_path(sch.func, block.name)[1])
    lost = _instructions(sums.whole.found.stmt()) - made
    if several and lost:
        raise illegal("split_reduction", f"pieces are not summed by {', '.join(sorted(lost))}")


def _chooses(block: Block) -> bool:
    """Whether a piece may end before its last step."""
    return isinstance(block.body, Store) and any(
        isinstance(x, Select) for x in walk_prim(block.body.value)
    )


def _instructions(s: Stmt) -> set[str]:
    """The instructions on tiles and groups that a statement uses."""
    marks = (x.attrs.get(INSTRUCTION) for x in walk_stmt(s) if isinstance(x, For))
    return {str(mark) for mark in marks if mark is not None}


def unit_of(extent: PrimExpr, pieces: int) -> int:
    """What the steps of a piece are a multiple of."""
    known = number(extent)
    return UNIT if known is None or known >= 64 * UNIT * pieces else 1


SPLIT_REDUCTION = by_steps(
    "split_reduction",
    _match,
    _decide,
    _legal,
    nest=lambda sums: sums.whole.stage,
    steps=schedule_pieces,
)
