"""Convolution and pooling over blocked channels, by steps of a schedule.

Lanes are a block of outputs, rows of a tile are pixels, columns are blocks of outputs. What is
added up is walked by loops that stay loops: a tap's pixels are not kept for the next tap, so that
all registers hold accumulators. A few steps of the innermost loop stand in a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.dtype import FLOAT32, DType
from unity.ir.marks import ACCUMULATORS
from unity.ir.prim_expr import Cast, imm
from unity.ir.symbols.representative import IMAGE, representative_extent
from unity.machine.target import Target

from ...blocks.access import Reshaped, all_axes, as_written, collapse, may_trap, parted_at
from ...blocks.combine import EXTREMES
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import block_path
from ...roles.blocked import UNROLL, BlockedRoles, blocked_roles
from ...roles.padding import Edge
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.skip_padding import unpadded, without_padding
from ...tactics.threads import is_fair
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth
from ..stages import Stages, pair_of
from .parts import UNKNOWN, UnknownLine, legal_tiles, tile_size, tile_size_of_any

MOST_STREAMS = 16
"""Blocks of outputs that are stored to in turn, at most: a line of each, far from one another."""
LINES = 8
"""Lines of an unknown number that follow one another at the weights of a tile."""
LEAST_CHUNK = 8
"""Tiles of a chunk of a line: fewer would ask more often where the border is."""
SHARERS = 4
"""Tiles of an unknown number that share what they ask for."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """What a blocked stage is.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined.
        roles: The roles of the axes.
        edges: Where there are elements; padding elsewhere.
        threads: How many share the work.
    """

    written: Nest
    shaped: Reshaped
    roles: BlockedRoles
    edges: tuple[Edge, ...]
    threads: int

    @property
    def blocks(self) -> int:
        """Blocks of output channels."""
        return 1 if self.roles.block is None else self.roles.block.length

    @property
    def pixels(self) -> int:
        """Indices of that axis; what an unknown line is taken to have."""
        return number(self.along.extent) or UNKNOWN

    @property
    def along(self) -> Axis:
        """The axis that tiles are cut from: pixels, or lines where a tile has whole ones."""
        return self.roles.pixel if self.roles.line is None else self.roles.line

    @property
    def is_narrow(self) -> bool:
        """Whether it finds the least or greatest of narrow floats, among wide ones."""
        reduction = self.written.reduction
        return reduction is not None and _is_narrow(reduction.value.dtype)

    @property
    def is_unknown(self) -> bool:
        """Whether that axis has an unknown length."""
        return number(self.along.extent) is None

    @property
    def has_border(self) -> bool:
        """Whether tiles at the ends of a line see padding."""
        inside = {a.var for a in self.roles.inside}
        return any(e.axis in inside for e in self.edges)

    @property
    def shared(self) -> Axis | None:
        """The axis of lines some of which read the weights of a tile while a cache holds them.

        Of an unknown number: where all lines of an image followed at each tile's weights, a large
        image would be read anew for each. Even some are where there is but one tap: no gain then.
        """
        lines = [a for a in self.roles.slow if number(a.extent) != 1]
        return lines[-1] if lines and self.is_unknown and self.roles.many and self.edges else None

    @property
    def is_signal(self) -> bool:
        """Whether it is one line of unknown length, whose ends see padding."""
        roles = self.roles
        around = (*roles.slow, *roles.fast)
        return self.is_unknown and self.has_border and all(number(a.extent) == 1 for a in around)

    def chunk(self, rows: int, target: Target) -> int:
        """Tiles of a line that a task has: the second cache holds what all blocks read of it."""
        steps = math.prod(a.length for a in self.roles.steps)
        return max(LEAST_CHUNK, target.l2_kept // (2 * rows * steps * FLOAT32.bytes))

    def cut(self, grain: int) -> Axis | None:
        """The axis of which each thread has a run of its own, the same one at every stage.

        A stage mostly reads what the one before it wrote. Where threads took tiles as they came,
        half of what each reads would have to come from another core's cache. None where no axis
        can be cut fairly.

        Args:
            grain: Multiply-adds that a thread has at least.
        """
        roles, threads = self.roles, self.threads
        if threads == 1 or self.work < grain * threads or self.is_signal:
            return None
        lines = [a for a in reversed((*roles.slow, *roles.fast)) if number(a.extent) != 1]
        tiled = [a for a in (self.along, roles.block) if a is not None]
        tiled = tiled[1:] if self.has_border else tiled
        many = self.is_unknown and self.blocks > MOST_STREAMS
        tiled = tiled[::-1] if roles.weight is not None or many else tiled
        for axis in (*lines[:1], *tiled, *lines[1:]):
            length = number(axis.extent)
            if length is None:
                fair = axis is not self.shaped.nest.axes[0]  # which counts images
            else:
                fair = length % threads == 0 if axis in tiled else is_fair(length, threads)
            if fair:
                return axis
        return None

    @property
    def work(self) -> int:
        """Multiply-adds of the stage; of one image, where their number is not known."""
        count, *others = (a.extent for a in all_axes(self.shaped.nest))
        sizes = (representative_extent(e, IMAGE) or 1 for e in others)
        return (number(count) or 1) * math.prod(sizes)


@dataclass(frozen=True, slots=True)
class BlockedTiles:
    """The decisions.

    Attributes:
        columns: Blocks of output channels in a register tile.
        rows: Pixels in a register tile, or lines of them where lines are short.
        steps: Steps of the sum in a row.
        columns_last: Whether all blocks follow at each tile of pixels, so that an image that fits
            no cache is read once; else all pixels at each tile of blocks.
        ahead: Whether the next blocks' weights are fetched while these are in use.
        grain: Multiply-adds that a task has at least.
    """

    columns: int
    rows: int
    steps: int
    columns_last: bool
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Blocked | None:
    """A stage whose lanes lie innermost, just as many as a register holds; pixels are known."""
    return _blocked(nest, target)


def _match_unpadded(stages: Stages, target: Target) -> Blocked | None:
    """The same, read through the stage before that pads its image."""
    pair = pair_of(stages)
    joined = None if pair is None else unpadded(*pair)
    return None if joined is None else _blocked(joined, target)


def _blocked(nest: Nest, target: Target) -> Blocked | None:
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = _whole_registers(collapse(as_written(nest)), target)
    bare = None if shaped is None else without_padding(shaped.nest)
    if shaped is None or bare is None:
        return None
    inside, edges = bare
    assert inside.reduction is not None
    roles = blocked_roles(inside, _in_wide(inside.reduction), edges, target)
    if roles is None:
        return None
    found = Blocked(nest, shaped, roles, edges, target.threads)
    whole = [a.var for a in (roles.lane, roles.block) if a is not None]
    return None if any(e.axis in whole for e in edges) else found


def _in_wide(reduction: Reduction) -> Reduction:
    """The least or greatest of narrow floats found among wide ones, which is exact."""
    value = reduction.value
    if not _is_narrow(value.dtype) or reduction.op not in EXTREMES:
        return reduction
    return replace(reduction, value=Cast(FLOAT32, value))


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < FLOAT32.bits


def _whole_registers(shaped: Reshaped, target: Target) -> Reshaped | None:
    """The stage with lanes of one register: a block of narrow floats fills two as it is summed.

    None where what is narrow stays so in the sum: no machine has all operations on it.
    """
    reduction = shaped.nest.reduction
    assert reduction is not None
    value = _in_wide(reduction).value.dtype
    if _is_narrow(value):
        return None
    if not any(_is_narrow(x.dtype) for x in reduction.loads()):
        return shaped
    axes, lanes = shaped.nest.axes, target.vector_bits // value.bits
    if not axes or number(axes[-1].extent) != 2 * lanes:
        return shaped
    halves = parted_at(shaped, len(axes) - 1, imm(lanes), imm(2))
    return _moved(halves, len(axes) - 1, max(len(axes) - 2, 0))


def _moved(shaped: Reshaped, k: int, to: int) -> Reshaped:
    """With one of the axes before others."""
    axes, places = list(shaped.nest.axes), list(shaped.places)
    axes.insert(to, axes.pop(k))
    places.insert(to, places.pop(k))
    return Reshaped(replace(shaped.nest, axes=tuple(axes)), tuple(places))


def _decide(found: Blocked, target: Target) -> BlockedTiles:
    roles, grain = found.roles, target.machine.grain("multiply_adds")
    cut, blocks = found.cut(grain), found.blocks
    threads = found.threads if cut is found.along else 1
    blocks //= found.threads if cut is not None and cut is roles.block else 1
    if found.is_unknown:
        line = UnknownLine(found.along, roles, found.edges, threads)
        columns, rows = tile_size_of_any(blocks, line, target)
    else:
        columns, rows = tile_size(blocks, found.pixels // threads, roles, target)
    ahead = roles.weight is not None and roles.block is not None
    if found.is_unknown and found.has_border:  # panels of tiles would each ask where a border is
        ahead = False
    last = roles.columns_last and found.blocks <= MOST_STREAMS
    last = last and not (found.has_border or (cut is None and found.is_unknown))
    few = UNROLL if roles.weight is not None and found.has_border else roles.most
    steps = max(n for n in _steps(roles) if n <= few)
    return BlockedTiles(columns, rows, steps, last, ahead, grain)


def _steps(roles: BlockedRoles) -> list[int]:
    """How many steps of the innermost loop may stand in a row."""
    length = roles.steps[-1].length
    return [n for n in range(1, roles.most + 1) if length % n == 0]


def _legal(found: Blocked, how: BlockedTiles, target: Target) -> Neighbourhood:
    sizes = legal_tiles(found.blocks, found.pixels, found.roles, target)
    registers = f"{target.vector_registers} registers hold the sums and what they are made of"
    columns = sorted({c for c, r in sizes if r == how.rows} | {how.columns})
    rows = sorted({r for c, r in sizes if c == how.columns} | {how.rows})
    few = found.roles.weight is None or found.roles.block is None
    return {
        "columns": Legal(columns, registers),
        "rows": Legal(rows, registers),
        "steps": Legal(_steps(found.roles), "they divide the innermost axis, and share no pixel"),
        "columns_last": Legal((how.columns_last,), "there is one block, or a border")
        if found.roles.block is None or found.has_border
        else EITHER,
        "ahead": Legal((False,), "weights are few") if few else EITHER,
        "grain": worth("multiply-adds"),
    }


def schedule_blocked(sch: Schedule, found: Blocked, how: BlockedTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    assert sch.target is not None
    machine = sch.target.machine
    roles, sums = found.roles, found.written.name
    cut = found.cut(how.grain)
    at, thread = _run_of_threads(sch, found, cut, result)
    across, row = sch.split(at[found.along], [None, how.rows])
    if cut is found.along and not thread:  # of unknown length: of whole tiles
        *thread, across = sch.split(across, [found.threads, None])
    tile = [row] if roles.line is None else [row, at[roles.pixel]]
    column: list[LoopRef] = []
    if roles.block is not None:
        *column, block = sch.split(at[roles.block], [None, how.columns])
        tile = [block, *tile] if how.rows * roles.width < how.columns else [*tile, block]
    *steps, step = (at[a] for a in roles.steps)
    if how.steps > 1:
        step, several = sch.split(step, [None, how.steps])
        tile = [several, *tile]
        if found.is_unknown:  # rests of lines have few sums, and so have pixels at a border
            sch.annotate(several, ACCUMULATORS, machine.fma_in_flight)
    slow, fast = ([at[a] for a in some] for some in (roles.slow, roles.fast))
    shared = None if how.columns_last else found.shared
    if shared is not None and cut is shared:  # those of a thread
        slow.remove(at[shared])
        fast = [*fast, at[shared]]
    elif shared is not None:
        group, line = sch.split(at[shared], [None, LINES])
        slow[slow.index(at[shared])] = group
        fast = [*fast, line]
    if how.ahead and found.is_unknown:  # of so many tiles each asks for a part of the weights
        panel, across = sch.split(across, [None, SHARERS])
        fast = [*fast, panel]
    elif found.is_signal and not how.columns_last:
        chunk, across = sch.split(across, [None, found.chunk(how.rows, sch.target)])
        slow = [*slow, chunk]
    inner = [across, *column, *fast] if how.columns_last else [*column, *fast, across]
    tasks = [*thread, *slow, *inner]
    sch.reorder(*tasks, *steps, step, *tile, at[roles.lane])
    sch.reverse_compute_at(result, tasks[-1])
    sch.store_at(sums, 0, tasks[-1])
    if how.ahead and found.blocks > how.columns:
        turns = {at[a]: a.length for a in roles.fast if number(a.extent) is not None}
        if not how.columns_last:  # else it stands around the blocks
            turns[across] = SHARERS if found.is_unknown else found.pixels // how.rows
        if turns:
            _ahead(sch, found, (*column, max(turns, key=turns.__getitem__), step))
    init = sch.decompose_reduction(sums, (*steps, step)[0])
    if found.edges:
        sch.skip_padding(sums)
    if found.is_narrow:
        sch.set_dtype(sums, 0, FLOAT32.name)
    for lane in (sch.get_loops(init)[-1], sch.get_loops(result)[-1], at[roles.lane]):
        sch.vectorize(lane)
    for loop in tile:
        sch.unroll(loop)
    if thread:
        sch.parallel(thread[0])
    elif found.work > how.grain:
        if found.has_border or found.is_unknown:  # tiles stay a loop: they see other taps, or end
            around = tasks[: tasks.index(across if shared is None else fast[-1])]
            tasks = around if found.has_border or _several(found, how) else [across]
        sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])


def _several(found: Blocked, how: BlockedTiles) -> bool:
    """Whether there may be several iterations of the loops around a line."""
    groups = 1 if how.columns_last else -(-found.blocks // how.columns)
    around = found.roles.slow if how.columns_last else (*found.roles.slow, *found.roles.fast)
    return groups > 1 or any(number(a.extent) != 1 for a in around)


def _run_of_threads(
    sch: Schedule, found: Blocked, cut: Axis | None, result: str
) -> tuple[dict[Axis, LoopRef], list[LoopRef]]:
    """The loop of each axis, and the one over threads, where each has a run of an axis.

    The part of a thread is an axis of its own where tiles are cut from it: what is left of it is
    no matter of the others' then.
    """
    shaped, threads = found.shaped, found.threads
    axes = all_axes(shaped.nest)
    even = cut is not None and number(cut.extent) is not None and cut.length % threads == 0
    if cut is not None and even:
        each = imm(cut.length // threads)
        shaped = parted_at(shaped, axes.index(cut), each, imm(threads))
    reshape(sch, found.written, shaped, result)
    loops = list(sch.get_loops(found.written.name))
    thread = [loops.pop(axes.index(cut))] if cut is not None and even else []
    at = dict(zip(axes, loops, strict=True))
    if cut is not None and not even and cut is not found.along:
        *thread, at[cut] = sch.split(at[cut], [threads, None])
    return at, thread


def _ahead(sch: Schedule, found: Blocked, at: Sequence[LoopRef]) -> None:
    """The next blocks' weights asked for while these are in use, a part at each line.

    Those that come from memory once a call would be waited for at the first tile of each block.
    """
    weight, name = found.roles.weight, found.written.name
    assert weight is not None
    _, block = block_path(sch.func, name)
    index = next(k for k, r in enumerate(block.reads) if r.buffer is weight.buffer)
    column, turn, step = at
    lines = sch.prefetch(name, index, column, step, turn, all_share=found.is_unknown)
    sch.unroll(sch.get_loops(lines)[-1])


BLOCKED = by_steps(
    "blocked", _match, _decide, _legal, nest=lambda found: found.written, steps=schedule_blocked
)
BLOCKED_UNPADDED = by_steps(
    "blocked_unpadded",
    _match_unpadded,
    _decide,
    _legal,
    nest=lambda found: found.written,
    steps=schedule_blocked,
    count=2,
)
