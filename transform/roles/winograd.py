"""A contraction between small transforms of tiles, told by its structure.

What Winograd's convolution is: stages that transform tiles of the input, a product with weights
for each point of the transformed tiles, stages that transform the results back to an image. A
chain of such stages can be done some tiles at a time, so that what lies between stays in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, Select
from unity.ir.stmt import Buffer, Stmt
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.machine.target import Target

from ..blocks.access import may_trap
from ..blocks.extents import ceildiv, number
from ..blocks.nest import Axis, Nest, Reduction

MOST_CHOICES = 8
"""Formulas that a small axis may choose among: each is written out."""


@dataclass(frozen=True, slots=True)
class TileStage:
    """A transform.

    Attributes:
        nest: The stage as it was written.
        lines: The position of its axis over lines of tiles, or of pixels; that over the tiles of a
            line, or the pixels of one, follows.
        window: Pixels of a tile along both axes; None where they count tiles.
        chosen: The axis that chooses the formula, if any.
    """

    nest: Nest
    lines: int
    window: int | None
    chosen: Axis | None


@dataclass(frozen=True, slots=True)
class TileGroup:
    """The stages.

    Attributes:
        tiles: Which tile: outer axes, then lines of tiles and tiles of a line.
        points: Places in a transformed tile, for each of which there is one product.
        block_in, lane_in: Input channels, which the product sums over.
        block_out, lane_out: Output channels.
        product: The product.
        reduction: Its reduction.
        inputs: What is read of the transforms in front of it.
        weights: What else it reads.
        private: What none but the stages touch.
        before: The transforms in front of the product.
        after: The transforms behind it, and what else is done to their result.
    """

    tiles: tuple[Axis, ...]
    points: tuple[Axis, ...]
    block_in: Axis
    lane_in: Axis
    block_out: Axis
    lane_out: Axis
    product: Nest
    reduction: Reduction
    inputs: Load
    weights: Load
    private: AbstractSet[Buffer]
    before: tuple[TileStage, ...] = ()
    after: tuple[TileStage, ...] = ()

    @property
    def nests(self) -> tuple[Nest, ...]:
        """All stages as they were written."""
        before, after = ([s.nest for s in some] for some in (self.before, self.after))
        return (*before, self.product, *after)

    @property
    def is_known(self) -> bool:
        """Whether it is known how many tiles an image has."""
        return all(number(a.extent) is not None for a in self.tiles[-2:])

    @property
    def lines(self) -> int:
        """The position of the product's axis over lines of tiles."""
        return self.product.axes.index(self.tiles[-2])

    @property
    def last_block(self) -> int:
        """The position of the last stage's axis over blocks of output channels."""
        source, k = self.product, self.product.axes.index(self.block_out)
        for stage in self.after:
            load = next(x for x in stage.nest.loads() if x.buffer is source.output)
            source = stage.nest
            k = next(i for i, a in enumerate(source.axes) if a.var is load.indices[k])
        return k


def tile_group(
    stages: Sequence[Nest | Stmt], private: AbstractSet[Buffer], target: Target
) -> TileGroup | None:
    """These stages as one group; None if they are anything else.

    Args:
        stages: All stages of a kernel.
        private: Its temporaries.
        target: Tells the lanes.
    """
    nests = [s for s in stages if isinstance(s, Nest)]
    products = [i for i, n in enumerate(nests) if n.reduction is not None]
    if len(nests) < len(stages) or len(products) != 1 or not _is_chain(nests, private):
        return None
    (at,) = products
    if at in (0, len(nests) - 1) or any(may_trap(e) for n in nests for e in _values(n)):
        return None
    group = _product(nests[at], nests[at - 1].output, private, target)
    for nest in reversed(nests[:at]):
        group = None if group is None else _with_before(group, nest)
    for nest in nests[at + 1 :]:
        group = None if group is None else _with_after(group, nest)
    return group if group is not None and group.after[-1].window is not None else None


def _is_chain(nests: Sequence[Nest], private: AbstractSet[Buffer]) -> bool:
    """Whether each stage but the last writes a temporary that the next one alone reads."""
    for at, nest in enumerate(nests):
        stores = list(nest.stores())
        if len(stores) != 1 or stores[0].predicate is not None:
            return False
        if stores[0].indices != tuple(a.var for a in nest.axes):
            return False
        output = stores[0].buffer
        readers = [i for i, n in enumerate(nests) if any(x.buffer is output for x in n.loads())]
        last = at == len(nests) - 1
        if output is not nest.output or (output in private) is last:
            return False
        if readers != ([] if last else [at + 1]):
            return False
    return True


def _values(nest: Nest) -> list[PrimExpr]:
    """Everything that a stage computes."""
    exprs = [] if nest.reduction is None else [nest.reduction.value]
    return exprs + [e for s in walk_stmt(nest.finish) for e in stmt_exprs(s)]


def _product(
    nest: Nest, inputs: Buffer, private: AbstractSet[Buffer], target: Target
) -> TileGroup | None:
    """The group of a product alone: one that is a product of matrices for each point of a tile."""
    reduction = nest.reduction
    assert reduction is not None
    loads = {x.buffer: x for x in reduction.loads()}
    if reduction.op != "add" or len(loads) != 2 or len(list(nest.loads())) != 2:
        return None
    ours = loads.pop(inputs)
    (theirs,) = loads.values()
    by_var: dict[PrimExpr, Axis] = {a.var: a for a in (*nest.axes, *reduction.axes)}
    for x in (ours, theirs):
        if any(i not in by_var for i in x.indices) or len(set(x.indices)) != len(x.indices):
            return None
    seen, weights = set(ours.indices), set(theirs.indices)
    tiles = tuple(a for a in nest.axes if a.var in seen and a.var not in weights)
    points = tuple(a for a in nest.axes if a.var in seen and a.var in weights)
    outputs = [a for a in nest.axes if a.var not in seen and a.var in weights]
    counts = len(tiles) >= 2, len(points) >= 1, len(outputs) == 2, len(reduction.axes) == 2
    if not all(counts) or len(tiles) + len(points) + 2 < len(nest.axes):
        return None
    lane_in, lane_out = by_var[ours.indices[-1]], nest.axes[-1]
    lanes = target.vector_bits // reduction.value.dtype.bits
    if lane_in not in reduction.axes or lane_out is not outputs[-1]:
        return None
    if theirs.indices[-1] is not lane_out.var or number(lane_out.extent) != lanes:
        return None
    (block_in,) = (a for a in reduction.axes if a is not lane_in)
    known = (*points, block_in, lane_in, outputs[0])
    if any(not number(a.extent) for a in known) or not _are_neighbours(nest.axes, *tiles[-2:]):
        return None
    return TileGroup(
        tiles=tiles,
        points=points,
        block_in=block_in,
        lane_in=lane_in,
        block_out=outputs[0],
        lane_out=lane_out,
        product=nest,
        reduction=reduction,
        inputs=ours,
        weights=theirs,
        private=private,
    )


def _are_neighbours(axes: Sequence[Axis], first: Axis, second: Axis) -> bool:
    return (first, second) in pairwise(axes)


def _with_before(group: TileGroup, nest: Nest) -> TileGroup | None:
    """With a transform in front: its axes are told by how its result is read."""
    if not group.before:
        loads, (lines, line) = [group.inputs], group.tiles[-2:]
    else:
        behind = group.before[0]
        loads = [x for x in behind.nest.loads() if x.buffer is nest.output]
        lines, line = behind.nest.axes[behind.lines : behind.lines + 2]
    at = {
        k
        for x in loads
        for k, pair in enumerate(pairwise(x.indices))
        if pair == (lines.var, line.var)
    }
    if len(at) != 1 or any((lines.var, line.var) not in pairwise(x.indices) for x in loads):
        return None
    (k,) = at
    if (nest.axes[k].extent, nest.axes[k + 1].extent) != (lines.extent, line.extent):
        return None
    stage = TileStage(nest, k, None, _chosen(nest))
    return replace(group, before=(stage, *group.before))


def _with_after(group: TileGroup, nest: Nest) -> TileGroup | None:
    """With a transform behind: its axes are told by what it reads."""
    source = group.after[-1] if group.after else TileStage(group.product, group.lines, None, None)
    loads = [x for x in nest.loads() if x.buffer is source.nest.output]
    pairs = {x.indices[source.lines : source.lines + 2] for x in loads}
    if len(pairs) != 1:
        return None
    ((first, second),) = pairs
    here = [
        _place(e, nest, a)
        for e, a in zip((first, second), source.nest.axes[source.lines :], strict=False)
    ]
    if None in here:
        return None
    (k, size), (after, other) = (x for x in here if x is not None)
    if after != k + 1 or size != other or (size is not None and source.window is not None):
        return None
    window = size if source.window is None else source.window
    stage = TileStage(nest, k, window, _chosen(nest))
    return replace(group, after=(*group.after, stage))


def _place(index: PrimExpr, nest: Nest, source: Axis) -> tuple[int, int | None] | None:
    """Which axis an index is, and how many of its points share one; None for anything else."""
    var: PrimExpr = index
    size: int | None = None
    match index:
        case Binary("floordiv", a, Imm(int() as by)):
            var, size = a, by
        case _:
            pass
    k = next((k for k, a in enumerate(nest.axes) if a.var is var), None)
    if k is None:
        return None
    extent = nest.axes[k].extent
    count = extent if size is None else ceildiv(extent, Imm(size, extent.dtype))
    return (k, size) if Analyzer().equal(count, source.extent) else None


def _chosen(nest: Nest) -> Axis | None:
    """A small axis that says which formula it is."""
    small: dict[PrimExpr, Axis] = {
        a.var: a for a in nest.axes if (number(a.extent) or MOST_CHOICES + 1) <= MOST_CHOICES
    }
    for value in _values(nest):
        for e in walk_prim(value):
            match e:
                case Select(Compare("eq", a, b)) if a in small or b in small:
                    return small.get(a) or small.get(b)
                case _:
                    pass
    return None
