"""A contraction between small transforms of tiles, told by its structure.

What Winograd's convolution is: stages that transform tiles of the input, a product with weights
for each point of the transformed tiles, stages that transform the results back to an image. A
chain of such stages can be done some tiles at a time, so that what lies between stays in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, Select, SizeVar
from unity.ir.regions import add, multiply
from unity.ir.stmt import Buffer, Stmt
from unity.ir.visit import stmt_exprs, stmt_loads, substitute_stmt, walk_prim, walk_stmt
from unity.machine.target import Target

from ..blocks.access import may_trap
from ..blocks.extents import ceildiv, number
from ..blocks.nest import Axis, Nest, Reduction
from ..tensor.simplify_tir import simplified

MOST_CHOICES = 8
"""Formulas that a small axis may choose among: each is written out."""
Values: TypeAlias = dict[PrimVar | SizeVar, PrimExpr]


@dataclass(frozen=True, slots=True)
class TileStage:
    """A transform, over the group's tiles, its blocks and lanes.

    Attributes:
        name: The block's.
        finish: The store.
        walked: The axes within a tile that loops go along.
        chosen: The axis within a tile that chooses the formula, if any.
        guards: What must hold for the store: tiles may reach over the image's edge.
    """

    name: str
    finish: Stmt
    walked: tuple[Axis, ...]
    chosen: Axis | None
    guards: tuple[PrimExpr, ...]


@dataclass(frozen=True, slots=True)
class TileGroup:
    """The stages, all over the same variables.

    Attributes:
        tiles: Which tile: outer axes, then lines of tiles and tiles of a line.
        points: Places in a transformed tile, for each of which there is one product.
        block_in, lane_in: Input channels, which the product sums over.
        block_out, lane_out: Output channels.
        product: The product.
        reduction: Its reduction.
        inputs, products: The temporaries that the product reads and writes.
        before: The transforms in front of the product.
        after: The transforms behind it, and what else is done to their result.
        places: What each index of a temporary is: a tile, a block, a lane; None for a place in
            the transformed tile.
    """

    tiles: tuple[Axis, ...]
    points: tuple[Axis, ...]
    block_in: Axis
    lane_in: Axis
    block_out: Axis
    lane_out: Axis
    product: Nest
    reduction: Reduction
    inputs: Buffer
    products: Buffer
    before: tuple[TileStage, ...] = ()
    after: tuple[TileStage, ...] = ()
    places: dict[Buffer, tuple[PrimVar | None, ...]] = field(default_factory=dict)

    @property
    def shared(self) -> dict[PrimExpr, Axis]:
        """The axes that all stages have, by their variables."""
        channels = (self.block_in, self.lane_in, self.block_out, self.lane_out)
        return {a.var: a for a in (*self.tiles, *channels)}


def tile_group(
    stages: Sequence[Nest | Stmt], private: set[Buffer], target: Target
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
    group = _product(nests[at], nests[at - 1].output, target)
    for nest in reversed(nests[:at]):
        group = None if group is None else _with_before(group, nest)
    for before, nest in zip(nests[at:-1], nests[at + 1 :], strict=True):
        group = None if group is None else _with_after(group, nest, before.output)
    return group


def _is_chain(nests: Sequence[Nest], private: set[Buffer]) -> bool:
    """Whether each stage but the last writes a temporary that the next one alone reads."""
    for at, nest in enumerate(nests):
        stores = list(nest.stores())
        if len(stores) != 1 or stores[0].predicate is not None:
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


def _product(nest: Nest, inputs: Buffer, target: Target) -> TileGroup | None:
    """The group of a product alone: one that is a product of matrices for each point of a tile."""
    reduction = nest.reduction
    assert reduction is not None
    loads = {x.buffer: x for x in reduction.loads()}
    (store,) = nest.stores()
    if reduction.op != "add" or len(loads) != 2 or len(list(nest.loads())) != 2:
        return None
    ours = loads.pop(inputs)
    (theirs,) = loads.values()
    by_var: dict[PrimExpr, Axis] = {a.var: a for a in (*nest.axes, *reduction.axes)}
    for x in (ours, theirs, store):
        if any(i not in by_var for i in x.indices) or len(set(x.indices)) != len(x.indices):
            return None
    seen, weights = set(ours.indices), set(theirs.indices)
    tiles = tuple(a for a in nest.axes if a.var in seen and a.var not in weights)
    points = tuple(a for a in nest.axes if a.var in seen and a.var in weights)
    outputs = [a for a in nest.axes if a.var not in seen and a.var in weights]
    counts = len(tiles) >= 2, len(points) >= 1, len(outputs) == 2, len(reduction.axes) == 2
    if not all(counts) or len(tiles) + len(points) + 2 < len(nest.axes):
        return None
    lane_in, lane_out = by_var[ours.indices[-1]], by_var[store.indices[-1]]
    lanes = target.vector_bits // reduction.value.dtype.bits
    if lane_in not in reduction.axes or lane_out is not outputs[-1]:
        return None
    if theirs.indices[-1] is not lane_out.var or number(lane_out.extent) != lanes:
        return None
    (block_in,) = (a for a in reduction.axes if a is not lane_in)
    known = (*points, block_in, lane_in, outputs[0])
    if any(not number(a.extent) for a in known):
        return None
    group = TileGroup(
        tiles=tiles,
        points=points,
        block_in=block_in,
        lane_in=lane_in,
        block_out=outputs[0],
        lane_out=lane_out,
        product=nest,
        reduction=reduction,
        inputs=inputs,
        products=store.buffer,
    )
    for x in (ours, store):
        group.places[x.buffer] = _places(x.indices, group)
    return group


def _places(indices: Sequence[PrimExpr], group: TileGroup) -> tuple[PrimVar | None, ...]:
    shared = group.shared
    return tuple(i if isinstance(i, PrimVar) and i in shared else None for i in indices)


def _with_before(group: TileGroup, nest: Nest) -> TileGroup | None:
    """With a transform in front: its axes are named by how its result is read."""
    (store,) = nest.stores()
    by_var: dict[PrimExpr, Axis] = {a.var: a for a in nest.axes}
    if set(store.indices) != set(by_var) or len(store.indices) != len(by_var):
        return None
    places = group.places.get(store.buffer)
    if places is None:  # read by the transform behind
        places = _agreed(group.before[0].finish, store.buffer, group)
    if places is None:
        return None
    values: Values = {}
    local: list[Axis] = []
    for index, place in zip(store.indices, places, strict=True):
        axis = by_var[index]
        if place is None:
            local.append(axis)
        elif group.shared[place].extent == axis.extent:
            values[axis.var] = place
        else:
            return None
    group.places[store.buffer] = places
    stage = _stage(nest, values, local, [], group)
    return replace(group, before=(stage, *group.before))


def _agreed(finish: Stmt, buffer: Buffer, group: TileGroup) -> tuple[PrimVar | None, ...] | None:
    """What the indices are by which a statement reads a temporary; None if it depends."""
    found = {
        _places(x.indices, group)
        for s in walk_stmt(finish)
        for x in stmt_loads(s)
        if x.buffer is buffer
    }
    return found.pop() if len(found) == 1 else None


def _with_after(group: TileGroup, nest: Nest, source: Buffer) -> TileGroup | None:
    """With a transform behind: its axes are told by what it reads."""
    loads = [x for s in walk_stmt(nest.finish) for x in stmt_loads(s) if x.buffer is source]
    by_var: dict[PrimExpr, Axis] = {a.var: a for a in nest.axes}
    (store,) = nest.stores()
    if set(store.indices) != set(by_var) or len(store.indices) != len(by_var):
        return None
    values: Values = {}
    local: list[Axis] = []
    guards: list[PrimExpr] = []
    for at, place in enumerate(group.places[source]):
        index = loads[0].indices[at]
        if place is None:
            continue
        if any(x.indices[at] != index for x in loads):
            return None
        shared = group.shared[place]
        match index:
            case PrimVar() if index in by_var and by_var[index].extent == shared.extent:
                values[index] = place
            case Binary("floordiv", PrimVar() as var, Imm(int() as size)) if var in by_var:
                extent = by_var[var].extent
                if not Analyzer().equal(shared.extent, ceildiv(extent, Imm(size, var.dtype))):
                    return None
                inner = Axis(PrimVar(var.name), Imm(size, var.dtype))
                local.append(inner)
                values[var] = add(multiply(place, inner.extent), inner.var)
                whole = number(extent)
                if whole is None or whole % size:
                    guards.append(Compare("lt", values[var], by_var[var].extent))
            case _:
                return None
    local += [a for a in nest.axes if a.var not in values]
    stage = _stage(nest, values, local, guards, group)
    (store,) = (s for s in walk_stmt(stage.finish) if isinstance(s, type(store)))
    group.places[store.buffer] = _places(store.indices, group)
    return replace(group, after=(*group.after, stage))


def _stage(
    nest: Nest, values: Values, local: Sequence[Axis], guards: Sequence[PrimExpr], group: TileGroup
) -> TileStage:
    known = known_of_tiles(group)
    for axis in local:
        known = known.with_extent(axis.var, Imm(0, axis.var.dtype), axis.extent)
    finish = simplified(substitute_stmt(nest.finish, values), known)
    chosen = next((a for a in local if _chooses(finish, a)), None)
    walked = tuple(a for a in local if a is not chosen)
    return TileStage(nest.name, finish, walked, chosen, tuple(guards))


def known_of_tiles(group: TileGroup) -> Analyzer:
    """What the extents of the shared axes say."""
    known = Analyzer()
    for axis in group.shared.values():
        known = known.with_extent(axis.var, Imm(0, axis.var.dtype), axis.extent)
    return known


def _chooses(finish: Stmt, axis: Axis) -> bool:
    """Whether a small axis says which formula it is."""
    if (number(axis.extent) or MOST_CHOICES + 1) > MOST_CHOICES:
        return False
    for e in (e for s in walk_stmt(finish) for top in stmt_exprs(s) for e in walk_prim(top)):
        match e:
            case Select(Compare("eq", a, b)) if axis.var in (a, b):
                return True
            case _:
                pass
    return False
