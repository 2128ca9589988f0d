"""Products whose vector operand lies in panels: weights packed at compile time.

A task takes a panel and some rows: the panel stays in the second cache while tiles of rows pass
over it, each tile reading it once from its first step to its last; of a long panel a run of steps
stays, and accumulators are kept between runs. No tile has less than its share of rows where they
are known; of unknown ones, a last tile of fitting size takes what is left.

It writes its loops at once. What it does where rows are known and fill even tiles is a program of
steps (`packed.py`); the rest has no step yet: known rows in tiles that differ by one, unknown ones
whose last tile is one of any size with sums of its own kind, several chunks of columns side by side
in a tile (the gates of a cell), and fetches shared by a number of tiles that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.representative import LENGTH, representative_extent
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Stmt
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap
from ...blocks.extents import number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.tree import sequence
from ...roles.chunked_columns import ChunkedColumns, chunked_columns, with_readers
from ...roles.panels import PanelLayout, panel_layout
from ...roles.reduction import rows_of
from ...tactics.panel_prefetch import LEAST_ROWS, PanelAhead, panel_ahead
from ...tactics.panel_tile import PanelTile, Run, micro_kernel
from ...tactics.register_tile import Values
from ...tactics.result import with_init
from ...tactics.row_blocks import MOST, RowBlocks, blocks_of, row_blocks
from ...tactics.threads import parallel
from ...tactics.unrolling import UNROLL
from ..rule import EITHER, Legal, Neighbourhood, Rule, worth
from ..stages import Stages

MOST_ROWS = 14
"""Rows of a tile, at most."""
MOST_RUNS = 64
"""Runs of steps, at most."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some panels of one kind.

    Attributes:
        begin: The first.
        count: How many.
        vectors: How many of a panel's vectors hold columns, of each chunk.
        masked: Whether the last one does so only in part.
    """

    begin: int
    count: int
    vectors: int
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Sums:
    """What is computed.

    Attributes:
        layout: The roles of the axes.
        reduction: What is reduced, over the layout's variables.
        finish: The stores.
        stages: How many stages that are.
    """

    layout: PanelLayout
    reduction: Reduction
    finish: Stmt
    stages: int


@dataclass(frozen=True, slots=True)
class PanelTiles:
    """The decisions.

    Attributes:
        rows: Rows of a register tile.
        tiles: Tiles of a block of rows, which a task takes.
        last_rows: The same of the last panel, where it is narrower than the others.
        last_tiles: As `tiles`.
        runs: How many runs the steps are taken in, sums being kept between them.
        ahead: Whether weights are asked for before they are used, where that pays.
        grain: Multiply-adds that a task has at least.
    """

    rows: int
    tiles: int
    last_rows: int
    last_tiles: int
    runs: int
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Sums | None:
    """A product one operand of which, the one that moves along the columns, lies in panels."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    return _sums(chunked_columns(nest), 1, target)


def _match_read(stages: Stages, target: Target) -> Sums | None:
    """The same, with all stages behind it, where these read its result point by point."""
    nests = [s for s in stages.rest if isinstance(s, Nest)]
    if len(nests) < len(stages.rest) or len(nests) < 2:
        return None
    nest, *readers = nests
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    joined = with_readers(nest, readers, stages.private(len(nests)))
    return None if joined is None else _sums(joined, len(nests), target)


def _sums(chunked: ChunkedColumns, stages: int, target: Target) -> Sums | None:
    chunked = replace(chunked, nest=collapsed(chunked.nest))
    reduction = chunked.nest.reduction
    assert reduction is not None
    layout = panel_layout(chunked, reduction, target)
    if layout is None:
        return None
    moved, finish = replace(reduction, value=layout.value, init=layout.init), layout.finish
    for result in layout.results:
        finish = with_init(replace(moved, result=result), finish)
    return Sums(layout, moved, finish, stages)


def _decide(sums: Sums, target: Target) -> PanelTiles:
    layout = sums.layout
    sizes = [(r, _blocks(layout, p, r, target).tiles) for p, r in _largest(layout, target)]
    (rows, tiles), (last_rows, last_tiles) = sizes[0], sizes[-1]
    grain = target.machine.grain("multiply_adds")
    return PanelTiles(
        rows, tiles, last_rows, last_tiles, runs_of(layout, target), ahead=True, grain=grain
    )


def _largest(layout: PanelLayout, target: Target) -> list[tuple[_Part, int]]:
    """The parts, and the rows of the largest tile of each."""
    registers = [rows_of(p.vectors * layout.chunks, target) for p in _parts(layout)]
    return [(p, max(1, min(r, MOST_ROWS))) for p, r in zip(_parts(layout), registers, strict=True)]


def _blocks(layout: PanelLayout, part: _Part, rows: int, target: Target) -> RowBlocks:
    """Blocks of tiles of rows such that threads have about the same to do."""
    outer = math.prod(representative_extent(a.extent) or LENGTH for a in layout.outer)
    return row_blocks(_extent(layout), rows, part.count * outer, target.threads)


def _extent(layout: PanelLayout) -> PrimExpr:
    return imm(1) if layout.row is None else layout.row.extent


def _legal(sums: Sums, decisions: PanelTiles, target: Target) -> Neighbourhood:
    layout, steps = sums.layout, number(sums.layout.depth.extent)
    (part, most), *others = _largest(layout, target)
    runs = [1]
    if steps is not None and not layout.sums:
        runs = [n for n in range(1, min(steps, MOST_RUNS) + 1) if steps % n == 0]
    tiles = Legal(range(1, MOST + 1), f"a block has at most {MOST} tiles")
    none = "all panels are alike"
    last_rows = Legal((decisions.last_rows,), none)
    last_tiles = Legal((decisions.last_tiles,), none)
    for last, rows in others:
        last_rows, last_tiles = _in_registers(layout, last, rows, target), tiles
    return {
        "rows": _in_registers(layout, part, most, target),
        "tiles": tiles,
        "last_rows": last_rows,
        "last_tiles": last_tiles,
        "runs": Legal(runs, f"{steps or 'an unknown number of'} steps are taken in equal runs"),
        "ahead": EITHER,
        "grain": worth("multiply-adds"),
    }


def _in_registers(layout: PanelLayout, part: _Part, most: int, target: Target) -> Legal:
    vectors = part.vectors * layout.chunks
    why = f"a row's sums take {vectors} of {target.vector_registers} registers"
    return Legal(range(1, most + 1), why)


def _write(sums: Sums, decisions: PanelTiles, target: Target) -> Stmt:
    plan = _Plan(sums.layout, sums.reduction, sums.finish, decisions)
    parts = _parts(plan.layout)
    stmts: list[Stmt] = []
    for part in parts:
        rows, tiles = decisions.rows, decisions.tiles
        if part is not parts[0]:
            rows, tiles = decisions.last_rows, decisions.last_tiles
        blocks = blocks_of(_extent(plan.layout), rows, tiles)
        stmts.append(_tasks(plan, part, blocks, target))
    return sequence(stmts)


PANELS = Rule("panels", _match, _decide, _legal, _write)
PANELS_READ = Rule(
    "panels_read", _match_read, _decide, _legal, _write, count=lambda sums: sums.stages
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is computed, and how: see `Sums`."""

    layout: PanelLayout
    reduction: Reduction
    finish: Stmt
    how: PanelTiles


def _parts(layout: PanelLayout) -> list[_Part]:
    """Whole panels, then the last one where it is not."""
    whole, rest = divmod(layout.columns, layout.width)
    parts = [_Part(0, whole, layout.width // layout.lanes)] if whole else []
    if rest:
        parts.append(_Part(whole, 1, -(-rest // layout.lanes), rest % layout.lanes != 0))
    return parts


def runs_of(layout: PanelLayout, target: Target) -> int:
    """How many equal runs of steps a panel is taken in.

    While one stays in the second cache the rows pass through it and the next run is fetched.
    """
    steps = number(layout.depth.extent)
    if steps is None or layout.sums:
        return 1
    size = steps * layout.stride * layout.load.dtype.bytes
    if size <= target.l2_bytes // 8:
        return 1
    least = -(-size // (target.l2_bytes // 16))
    fitting = (n for n in range(least, 2 * least) if steps % (n * UNROLL) == 0)
    return next(fitting, 1)


def _tasks(plan: _Plan, part: _Part, blocks: RowBlocks, target: Target) -> Stmt:
    """The tiles of some panels, shared among threads by panel and block of rows."""
    layout = plan.layout
    extent = _extent(layout)
    ahead = None
    if plan.how.ahead:
        ahead = panel_ahead(layout, part.count, blocks.total, extent, target)
    names = [a.var.name.removeprefix("v") for a in layout.outer]
    extents = [a.extent for a in layout.outer]
    domain = [
        *zip(names, extents, strict=True),
        ("panel", imm(part.count)),
        ("block", blocks.count),
    ]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        outer[layout.panel] = add(imm(part.begin), coordinate(imm(part.count)))
        tiles = _block(plan, part, blocks, coordinate(blocks.count), outer, ahead)
        return tiles if ahead is None else ahead.around(tiles)

    height = simplify(Binary("min", extent, imm(blocks.tiles * blocks.size)))
    steps = [a.extent for a in (*layout.sums, layout.depth)]
    work = product([*steps, height, imm(part.vectors * layout.chunks * layout.lanes)])
    return parallel(domain, work, plan.how.grain, body)


def _block(
    plan: _Plan,
    part: _Part,
    blocks: RowBlocks,
    block: PrimExpr,
    outer: Values,
    ahead: PanelAhead | None,
) -> Stmt:
    """The tiles of a block of rows, run of steps after run of steps."""
    layout, steps = plan.layout, number(plan.layout.depth.extent)
    each = blocks.size * part.vectors * layout.chunks * layout.lanes
    dtype = plan.reduction.value.dtype
    kept = Buffer("kept", (imm(blocks.tiles * each),), dtype, scope="local")
    nth = PrimVar("run")

    def tile(first: PrimExpr, size: int, index: PrimExpr) -> Stmt:
        run, taken = None, steps
        begin: PrimExpr = imm(0)
        if plan.how.runs > 1:
            assert steps is not None
            here = add(index, multiply(block, imm(-blocks.tiles)))
            taken = steps // plan.how.runs
            run = Run(nth, plan.how.runs, taken, kept, multiply(here, imm(each)))
            begin = run.begin
        fetch = None
        if ahead is not None and taken is not None:
            fetch = ahead.of(index, outer, begin, taken)
        rows = [add(first, imm(r)) for r in range(size)]
        at = PanelTile(outer, rows, part.vectors, part.masked, fetch, run)
        done = micro_kernel(layout, plan.reduction, plan.finish, at)
        if ahead is None or fetch is None or size >= LEAST_ROWS or number(ahead.rows) is not None:
            return done
        # Alone, so few rows fetch nothing: asking before each step would cost a twentieth of it.
        alone = micro_kernel(layout, plan.reduction, plan.finish, replace(at, ahead=None))
        return IfThen(Compare("lt", ahead.rows, imm(LEAST_ROWS)), alone, done)

    tiles = blocks.at(block, tile)
    if plan.how.runs == 1:
        return tiles
    return Allocate(kept, For(nth, imm(0), imm(plan.how.runs), tiles))
