"""A space for kernels that no rule knows, from their structure alone: tiles on several levels.

As Ansor's sketches: of a reduction, spatial loops are split in three and summed ones in two, in the
order S S R R S; sums lie in registers, elementwise blocks are done where what they read is made or
where what they make is read, outer loops go to threads and lanes run along the last axis. A factor
that lanes run along may be copied first, a tile's columns side by side. Other blocks are cut for
threads and lanes. How long every part is, is left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from unity.errors import UnityError
from unity.ir.visit import variables
from unity.transform.blocks.tree import block_path as path_to
from unity.transform.schedule.refs import AnyBlock, BlockRef, LoopRef
from unity.transform.schedule.schedule import Schedule

from .panels import factors, lay_out_panel
from .turned import lay_out_copy, reads_across

_REGISTERS = (1, 2, 3, 4, 6, 8)
_COLUMNS = (1, 2, 3, 4)
"""Registers that a tile's columns have."""
_CUTS = (1, 2, 4, 8, 16)
VECTORS = (1, 2, 4, 8)
"""Registers that a step along a row has."""
_EVEN = 4
"""How much the likelier a tile is by the share of all tiles that the loop fills: its power."""
_STEPS = 8
"""Steps of summed loops that are written out behind each other, at most."""


def multi_level_tiles(sch: Schedule) -> None:
    """Lay a kernel out by its structure; what is open is drawn.

    Raises:
        UnityError: Its blocks can't be laid out so.
    """
    sums = [b for b in sch.get_blocks() if "R" in sch.axis_kinds(b)]
    tiled = [b for b in sums if multiplies(sch, b)]
    if not tiled and len(sums) == 1 and _runs_along(sch, sums[0]):
        tiled = sums
    for block in tiled:
        _inline_around(sch, block)
    done: set[str] = set()
    for block in tiled:
        panel = _tiled(sch, block)
        done |= _below(sch, block)
        if panel is not None:
            lay_out_copy(sch, panel, lanes_of(sch))
            done.add(panel.name)
    for block in sch.get_blocks():
        if block.name not in done and not _is_laid_out(sch, block):
            cut(sch, block)


def multiplies(sch: Schedule, block: BlockRef) -> bool:
    """Whether a reduction reads two buffers or more, each of which others read again: a product."""
    found = path_to(sch.func, block.name)[1]
    made = {r.buffer for r in found.writes}
    read = {r.buffer for r in found.reads} - made
    return len(read) > 1 and sch.axis_kinds(block).count("S") > 1


def _runs_along(sch: Schedule, block: BlockRef) -> bool:
    """Whether neighbours along a sum's last spatial axis lie side by side in something it reads."""
    found = path_to(sch.func, block.name)[1]
    kinds = sch.axis_kinds(block)
    if "S" not in kinds:
        return False
    last = found.axes[kinds.rindex("S")].var
    made = {r.buffer for r in found.writes}
    return any(last in variables(r.ranges[-1].begin) for r in found.reads if r.buffer not in made)


def _inline_around(sch: Schedule, main: BlockRef) -> None:
    """Elementwise blocks before a reduction are computed where it reads them, if that is drawn."""
    if not sch.sample_categorical([0, 1], [0.3, 0.7]):
        return
    for block in sch.get_producers(main):
        if "R" not in sch.axis_kinds(block):
            with suppress(UnityError):
                sch.compute_inline(block)


def _tiled(sch: Schedule, main: BlockRef) -> BlockRef | None:
    """Tiles of a reduction, its sums in registers, written out when they are complete.

    Gives the block that copies panels of a factor, if one does.
    """
    copy = written_out(sch, main)
    columns = columns_of(sch, main)
    panel = None
    if any(factors(path_to(sch.func, main.name)[1])) and sch.sample_categorical([0, 1], [0.5, 0.5]):
        panel = lay_out_panel(sch, main, columns)
    outer = tile(sch, main, copy, sch.get_loops(main), columns, _CUTS)
    sch.parallel(sch.fuse(*outer) if len(outer) > 1 else outer[0])
    return panel


def written_out(sch: Schedule, main: BlockRef) -> BlockRef:
    """The block that writes a reduction's sums out of registers, and does what is done to each."""
    copy = sch.cache_write(main, 0, "local")
    for block in sch.get_consumers(copy):
        if "R" not in sch.axis_kinds(block) and len(sch.get_producers(block)) == 1:
            with suppress(UnityError):  # it is done behind the tile then
                sch.reverse_compute_inline(block)
    return copy


def columns_of(sch: Schedule, main: BlockRef) -> int:
    """How many columns a tile of a reduction has, which is drawn: those of whole registers.

    Args:
        sch: The schedule.
        main: The reduction, a loop for each of its axes.

    Raises:
        UnityError: It has no axis but those it sums over.
    """
    spatial = [k for k, kind in enumerate(sch.axis_kinds(main)) if kind == "S"]
    if not spatial:
        raise UnityError(f"{main.name} has no axis but those it sums over")
    lanes = lanes_of(sch)
    return factor_of(sch, sch.get_loops(main)[spatial[-1]], _COLUMNS, lanes) * lanes


def tile(
    sch: Schedule,
    main: BlockRef,
    copy: BlockRef,
    loops: Sequence[LoopRef],
    columns: int,
    cuts: Sequence[int],
) -> list[LoopRef]:
    """Part a reduction into tiles, with sums in registers that another block writes out.

    Args:
        sch: The schedule.
        main: The reduction.
        copy: The block that writes its sums out.
        loops: Those of its axes, in their order; they are the innermost ones.
        columns: Of a tile, as `columns_of` has them.
        cuts: How many tiles may lie together, by axis.

    Returns:
        The outer loops over tiles.
    """
    lanes = lanes_of(sch)
    kinds = sch.axis_kinds(main)
    *rows, last = [x for x, kind in zip(loops, kinds, strict=True) if kind == "S"]
    summed = [x for x, kind in zip(loops, kinds, strict=True) if kind == "R"]
    outer: list[LoopRef] = []
    middle: list[LoopRef] = []
    inner: list[LoopRef] = []
    room = sch.target.vector_registers if sch.target is not None else 16
    room //= columns // lanes
    for loop in rows:
        registers = factor_of(sch, loop, [v for v in _REGISTERS if v <= max(1, room)])
        room //= registers
        a, b, c = sch.split(loop, [None, factor_of(sch, loop, cuts, registers), registers])
        outer.append(a)
        middle.append(b)
        inner.append(c)
    together = factor_of(sch, last, cuts, columns)
    a, b, c, lane = sch.split(last, [None, together, columns // lanes, lanes])
    steps = [sch.split(loop, [None, factor_of(sch, loop, (1, 2, 4, 8))]) for loop in summed]
    first, second = [s[0] for s in steps], [s[1] for s in steps]
    middle.append(b)
    if together > 1 and sch.sample_categorical([0, 1], [0.5, 0.5]):
        middle = [b, *middle[:-1]]  # columns stay in the first cache, rows go by
    sch.reorder(*outer, a, *middle, *first, *second, *inner, c, lane)
    sch.reverse_compute_at(copy, middle[-1])
    zeros = sch.decompose_reduction(main, first[0])
    sch.vectorize(lane)
    vectorize_last(sch, zeros)
    vectorize_last(sch, copy, split=lanes)
    for loop in (*inner, c):
        sch.unroll(loop)
    if sch.sample_categorical([0, 1], [0.3, 0.7]):
        short = prod(sch.extent(loop) or _STEPS for loop in second) <= _STEPS
        for loop in second if short else second[-1:]:
            sch.unroll(loop)
    return [*outer, a]


def cut(sch: Schedule, block: AnyBlock) -> None:
    """A block's outer loops on threads, its last one in lanes."""
    kinds, loops = sch.axis_kinds(block), sch.get_loops(block)
    if not loops or len(kinds) != len(loops):
        return
    if reads_across(sch, block):
        lay_out_copy(sch, block, lanes_of(sch))
        return
    count = next((k for k, kind in enumerate(kinds) if kind != "S"), len(kinds))
    together = min(count, max(1, len(loops) - 1)) if count else 0
    if together > 1:
        with suppress(UnityError):
            sch.fuse(*loops[:together])
    loops = sch.get_loops(block)
    if kinds[-1] == "S":
        _, lane = sch.split(loops[-1], [None, lanes_of(sch)])
        with suppress(UnityError):
            sch.vectorize(lane)
    elif len(loops) > 1 and kinds.count("R") == 1 and sch.sample_categorical([0, 1], [0.3, 0.7]):
        along(sch, block, VECTORS)
    first = sch.get_loops(block)[0]
    if count:
        with suppress(UnityError):
            outer, _ = sch.split(first, [None, factor_of(sch, first, _CUTS)])
            sch.parallel(outer)


def along(sch: Schedule, block: AnyBlock, factors: Sequence[int]) -> None:
    """A block's last loop in lanes, some registers a step; each lane has a sum of its own.

    Args:
        sch: The schedule.
        block: The block; of a sum, some loop is around the last one.
        factors: How many registers a step may have.
    """
    lanes, last = lanes_of(sch), sch.get_loops(block)[-1]
    _, part = sch.split(last, [None, factor_of(sch, last, factors, lanes) * lanes])
    if sch.axis_kinds(block)[-1] == "S":
        registers, lane = sch.split(part, [None, lanes])
        sch.vectorize(lane)
        sch.unroll(registers)
        return
    partial = sch.rfactor(part, 0, sch.get_loops(block)[-3])
    zeros = sch.decompose_reduction(partial, sch.get_loops(partial)[-2])
    _, lane = sch.split(sch.get_loops(zeros)[-1], [None, lanes])
    sch.vectorize(lane)
    registers, lane = sch.split(sch.get_loops(partial)[-1], [None, lanes])
    sch.vectorize(lane)
    sch.unroll(registers)
    summed = sch.get_loops(block)[-1]
    sch.decompose_reduction(block, summed)
    sch.vectorize(summed)


def vectorize_last(sch: Schedule, block: AnyBlock, split: int | None = None) -> None:
    """Lanes along a block's last loop."""
    with suppress(UnityError):
        loop = sch.get_loops(block)[-1]
        if split is not None:
            _, loop = sch.split(loop, [None, split])
        sch.vectorize(loop)


def factor_of(sch: Schedule, loop: LoopRef, values: Sequence[int], times: int = 1) -> int:
    """One of some factors, not so large that the loop's tiles are mostly empty.

    Those that part the loop evenly are the likelier: the last tile of others is masked or partly
    empty.

    Args:
        sch: The schedule.
        loop: The loop.
        values: The factors, 1 the first.
        times: What else a tile has of it.
    """
    extent = sch.extent(loop)
    fits = [v for v in values if extent is None or v == 1 or v * times <= extent]
    if len(fits) == 1:
        return fits[0]  # no choice that a search would draw anew
    shares = [1.0 if extent is None else _filled(extent, v * times) ** _EVEN for v in fits]
    return sch.sample_categorical(fits, [share / sum(shares) for share in shares])


def _filled(extent: int, tile: int) -> float:
    """The share of a loop's tiles that it fills."""
    return extent / (-(-extent // tile) * tile)


def lanes_of(sch: Schedule) -> int:
    """How many lanes of 32 bits a register has."""
    return max(1, (sch.target.vector_bits if sch.target is not None else 128) // 32)


def _below(sch: Schedule, main: BlockRef) -> set[str]:
    """The blocks of a reduction's tile."""
    first = sch.get_loops(main)[0]
    return {b.name for b in sch.get_child_blocks(first)}


def _is_laid_out(sch: Schedule, block: BlockRef) -> bool:
    """Whether a block stands in the nest of another one that was laid out."""
    loops = sch.get_loops(block)
    return len(loops) != len(sch.axis_kinds(block))
