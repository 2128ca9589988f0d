"""Products whose operands are laid out for an instruction: dot products of narrow numbers.

`tensorized` takes kernels that lie as an intrinsic wants them. Here a product of any layout, a
convolution among them, becomes one: of each operand, and of the result, a copy is made whose last
axes are those of the instruction, the depth in groups; axes that its tiles do not part evenly are
padded. Nothing in the kernel has to name an intrinsic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from unity.errors import UnityError
from unity.ir.prim_expr import PrimExpr, PrimVar
from unity.ir.stmt import Block, PrimFunc, Region
from unity.ir.visit import variables
from unity.machine.dot_units import DOT_UNITS, LANE_COUNTS, SIDE, DotUnit, group_of
from unity.machine.target import Target
from unity.transform.blocks.tree import block_path
from unity.transform.schedule.index_map import IndexMap
from unity.transform.schedule.refs import BlockRef
from unity.transform.schedule.schedule import Schedule

from .tiles import cut, multiplies

_TILE_SIDES = (SIDE, 2 * SIDE)


@dataclass(frozen=True, slots=True)
class Way:
    """How a product's axes become an intrinsic's.

    Attributes:
        intrinsic: Its name.
        left: Which read of the block is its left operand.
        right: Which one is its right operand.
        axes: The block's axes that are its rows (of tiles), columns and depth, by number.
        tile: How many of each it takes; of the depth those of all its groups.
        group: Of the depth.
    """

    intrinsic: str
    left: int
    right: int
    axes: tuple[int, ...]
    tile: tuple[int, ...]
    group: int


def packed(sch: Schedule) -> None:
    """Lay a product out by a dot product's instruction, which is drawn.

    Raises:
        UnityError: There is no product that the machine has one for.
    """
    products = [b for b in sch.get_blocks() if "R" in sch.axis_kinds(b) and multiplies(sch, b)]
    if len(products) != 1 or sch.target is None:
        raise UnityError("the kernel is not one product")
    (main,) = products
    found = _fitting(sch.func, sch.target, main)
    if not found:
        raise UnityError(f"no dot product computes {main.name!r}")
    at = sch.sample_categorical(list(range(len(found))), [1 / len(found)] * len(found))
    made = lay_out(sch, main, found[at])
    outer = list(sch.get_loops(made))[: sch.axis_kinds(made).count("S")]
    with suppress(UnityError):
        sch.parallel(sch.fuse(*outer) if len(outer) > 1 else outer[0])
    for block in sch.get_blocks():
        if "R" not in sch.axis_kinds(block) and len(sch.get_loops(block)) == len(
            sch.axis_kinds(block)
        ):
            cut(sch, block)


@lru_cache(maxsize=64)
def _fitting(func: PrimFunc, target: Target, main: BlockRef) -> Sequence[Way]:
    """The ways that work out: found once for all samples of a kernel's space."""
    found: list[Way] = []
    for way in ways(block_path(func, main.name)[1], target):
        with suppress(UnityError):
            lay_out(Schedule(func, target), main, way)
            found.append(way)
    return found


def ways(block: Block, target: Target) -> Iterator[Way]:
    """The ways that the types of a product's operands, and which axes index them, allow."""
    if len(block.writes) != 1:
        return
    (out,) = block.writes
    reads = [(k, r) for k, r in enumerate(block.reads) if r.buffer != out.buffer]
    if len(reads) != 2:
        return
    (left, a), (right, b) = reads
    rows, columns = _own(block, a, b, out), _own(block, b, a, out)
    depth = [
        k
        for k, axis in enumerate(block.axes)
        if axis.kind == "R" and axis.var in _index(a) and axis.var in _index(b)
    ]
    if not columns or not depth:
        return
    n, k = columns[-1], max(depth, key=lambda x: (_extent(block, x), -x))
    types = (a.buffer.dtype, b.buffer.dtype, out.buffer.dtype)
    for unit in DOT_UNITS:
        if (unit.left, unit.right, unit.out) != types or not unit.on(target):
            continue
        for name, tile in _tiles(unit, target):
            if len(tile) == 2 or rows:
                axes = (*rows[-1:], n, k)[-len(tile) :]
                yield Way(name, left, right, axes, tile, group_of(unit.left))


def _tiles(unit: DotUnit, target: Target) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of a unit's intrinsics, and how many they take of each axis."""
    group = group_of(unit.left)
    if unit.form == "tile":
        for side in _TILE_SIDES:
            yield f"{unit.name}_{side}x{side}x{SIDE * group}", (side, side, SIDE * group)
        return
    for lanes in LANE_COUNTS:
        if lanes in unit.lane_counts and all(map(target.has, unit.needs(lanes))):
            yield f"{unit.name}_{lanes}x{group}", (lanes, group)


def _own(block: Block, mine: Region, other: Region, out: Region) -> list[int]:
    """The spatial axes that index one operand and the result, and not the other operand."""
    wanted = (_index(mine) & _index(out)) - _index(other)
    return [k for k, axis in enumerate(block.axes) if axis.kind == "S" and axis.var in wanted]


def _index(region: Region) -> set[object]:
    return {v for r in region.ranges for v in variables(r.begin)}


def _extent(block: Block, axis: int) -> int:
    return int(getattr(block.axes[axis].domain.extent, "value", 0))


def lay_out(sch: Schedule, main: BlockRef, way: Way) -> BlockRef:
    """Copy what a product reads and writes as an instruction wants it, and put it in.

    Args:
        sch: The schedule.
        main: The product, a loop for each of its axes.
        way: How.

    Returns:
        The block around the instruction.

    Raises:
        UnityError: A step is refused.
    """
    *rows, n, k = way.axes
    kinds = sch.axis_kinds(main)
    if len(sch.get_loops(main)) != len(kinds):
        raise UnityError(f"{main.name!r} has not a loop for each axis")
    _ordered(sch, main, way.left, [*rows, k])
    _ordered(sch, main, way.right, [])
    _ordered(sch, main, None, [*rows, n])
    padding = [1] * len(kinds)
    for axis, count in zip(way.axes, way.tile, strict=True):
        padding[axis] = count
    sch.pad_einsum(main, padding)
    made = sch.reindex_cache_read(main, way.right, "global", _grouped(sch, main, way))
    for copy in sch.get_producers(made):
        with suppress(UnityError):
            sch.compute_inline(copy)
    outer, inner = list(sch.get_loops(main)), []
    for axis, count in zip(way.axes, way.tile, strict=True):
        many = axis == k and count > way.group
        cut_in = [None, count // way.group, way.group] if many else [None, count]
        outer[axis], *parts = sch.split(outer[axis], cut_in)
        inner += parts
    summed = [x for x, kind in zip(outer, kinds, strict=True) if kind == "R"]
    outer = [x for x in outer if x not in summed]
    sch.reorder(*outer, *summed, *inner)
    sch.decompose_reduction(main, summed[0])
    return sch.tensorize(inner[0], way.intrinsic)


def _ordered(sch: Schedule, main: BlockRef, read: int | None, last: Sequence[int]) -> None:
    """A copy of what is read (or written) over axes alone; none where it is so.

    Args:
        sch: The schedule.
        main: The product.
        read: Which read; None for the result.
        last: Axes whose dims are to be the last ones.
    """
    block = block_path(sch.func, main.name)[1]
    region = block.writes[0] if read is None else block.reads[read]
    begins = [r.begin for r in region.ranges]
    axes = [k for k, axis in enumerate(block.axes) if axis.var in _index(region)]
    plain = len(begins) == len(axes) and all(block.axes[k].var in begins for k in axes)
    if plain and begins[len(begins) - len(last) :] == [block.axes[k].var for k in last]:
        return
    axes = [*(k for k in axes if k not in last), *last]
    inputs = _inputs(block)
    to = IndexMap(inputs, tuple(inputs[k] for k in axes))
    if read is None:
        sch.reindex_cache_write(main, 0, "global", to)
    else:
        sch.reindex_cache_read(main, read, "global", to)


def _grouped(sch: Schedule, main: BlockRef, way: Way) -> IndexMap:
    """The right operand: the depth in groups, columns, and what is in a group."""
    block = block_path(sch.func, main.name)[1]
    region = block.reads[way.right]
    inputs = _inputs(block)
    used = [x for axis, x in zip(block.axes, inputs, strict=True) if axis.var in _index(region)]
    n, k = inputs[way.axes[-2]], inputs[way.axes[-1]]
    others: list[PrimExpr] = [x for x in used if x not in (n, k)]
    return IndexMap(inputs, (*others, k // way.group, n, k % way.group))


def _inputs(block: Block) -> tuple[PrimVar, ...]:
    return tuple(PrimVar(f"i{k}") for k in range(len(block.axes)))
