"""Sequences of tensors whose number and shapes show only at run time, as two tensors.

The elements of all items stand one behind another in one vector; a row of a second tensor says the
shape of each item, and ends in -1 where an item has fewer axes than others. So sequences may be
states of loops and results of branches like any tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.ir.dims import Dim, as_dim, dim_max
from unity.ir.dtype import INT64, DType
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import Shape, TensorType, TupleType

from .slicing import run_of
from .vectors import Ints, bound, ints_of, matched, vector_of

MOST_AXES = 8
"""How many axes the items of a sequence may have whose type does not say it."""
Extents: TypeAlias = "tuple[int | None, ...]"


@dataclass(frozen=True, slots=True)
class ItemKind:
    """What is known of the items of a sequence.

    Attributes:
        dtype: Of their elements.
        width: The most axes that one has.
        shape: What all shapes have in common, None at axes where they may differ; None if not even
            the number of axes is known.
        fallback: The number of axes to take items for if that is not known; checked at run time.
    """

    dtype: DType
    width: int = 0
    shape: Extents | None = None
    fallback: int | None = None

    def joined(self, other: ItemKind) -> ItemKind:
        """What is known of items that are of either kind.

        Raises:
            UnityError: They are of different dtypes.
        """
        if self.dtype != other.dtype:
            raise UnityError(f"a sequence of {self.dtype} beside one of {other.dtype}")
        if self.is_of_none or other.is_of_none:
            return other if self.is_of_none else self
        fallback = self.fallback if self.fallback is not None else other.fallback
        width = max(self.width, other.width)
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return ItemKind(self.dtype, width, None, fallback)
        pairs = zip(self.shape, other.shape, strict=True)
        return ItemKind(self.dtype, width, tuple(a if a == b else None for a, b in pairs), fallback)

    @property
    def is_of_none(self) -> bool:
        """Whether no item is known at all."""
        return self.shape is None and self.width == 0

    @property
    def type(self) -> TupleType:
        """The type of such a sequence, of any length."""
        return TupleType((TensorType(1, self.dtype), TensorType(2, INT64)))


def item_kind(dtype: DType, shape: Shape) -> ItemKind:
    """The kind of one tensor."""
    return ItemKind(dtype, len(shape), tuple(d if isinstance(d, int) else None for d in shape))


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """A sequence whose length is known at run time.

    Attributes:
        kind: What is known of its items.
        data: Their elements, a vector.
        shapes: Their shapes, int64 of ``(count, kind.width)``.
        whole: The items along a first axis, where all are known to have one shape.
    """

    kind: ItemKind
    data: Expr
    shapes: Expr
    whole: Expr | None = None

    def count(self, node: Emission) -> Dim:
        """How many items there are."""
        return node.shape_of(self.shapes)[0]

    def pair(self, node: Emission) -> Expr:
        """Both tensors as one value."""
        return node.builder.emit(Tuple((self.data, self.shapes)), f"{node.label}_sequence")


def unpaired(node: Emission, pair: Expr, kind: ItemKind) -> Ragged:
    """A sequence that is one value; how long it is becomes known to be two new symbols."""
    fresh = node.builder.fresh
    data, shapes = node.field(pair, 0), node.field(pair, 1)
    if not isinstance(node.type_of(data).shape, tuple):
        data = node.assert_shape(data, (fresh(f"{node.label}_elements"),))
    if not isinstance(node.type_of(shapes).shape, tuple):
        shapes = node.assert_shape(shapes, (fresh(f"{node.label}_items"), kind.width))
    return Ragged(kind, data, shapes)


def of_tensors(node: Emission, kind: ItemKind, tensors: Sequence[Expr]) -> Ragged:
    """A sequence of given tensors."""
    flat: list[Expr] = [node.op("reshape", t, (-1,)) for t in tensors]
    rows: list[Expr] = [_row(node, node.shape_of(t), kind.width) for t in tensors]
    if not tensors:
        flat = [Constant(np.empty((0,), kind.dtype.numpy))]
        rows = [Constant(np.empty((0, kind.width), np.int64))]
    return Ragged(kind, _concat(node, flat), _concat(node, rows))


def of_stack(node: Emission, whole: Expr) -> Ragged:
    """A sequence of what lies along a tensor's first axis."""
    count, *dims = node.shape_of(whole)
    kind = item_kind(node.dtype_of(whole), tuple(dims))
    rows = node.op("broadcast_to", _row(node, tuple(dims), len(dims)), (count, len(dims)))
    return Ragged(kind, node.op("reshape", whole, (-1,)), rows, whole)


def widened(node: Emission, sequence: Ragged, kind: ItemKind) -> Ragged:
    """A sequence as one of a kind that holds it."""
    short = kind.width - sequence.kind.width
    if not short:
        return replace(sequence, kind=kind)
    pads = (0, 0, 0, short)
    shapes = node.op("nn.pad", sequence.shapes, pads, pad_mode="constant", pad_value=-1)
    return Ragged(kind, sequence.data, shapes)


def item(node: Emission, sequence: Ragged, position: Expr) -> Expr:
    """The item at a place, which counts from the end if it is negative.

    Raises:
        Gap: How many axes it has is not known.
    """
    known = sequence.kind.shape
    if known is None and sequence.kind.fallback is not None:
        known = (None,) * sequence.kind.fallback
    if known is None:
        raise node.gap("an item of a sequence whose items have an unknown number of axes")
    count, at = sequence.count(node), Ints(node, node.op("reshape", position, ()))
    at = _from_front(node, at, count)
    inside = _inside(node, at, count, 0)
    at = at.most(0)
    starts, lengths = _extents_of(node, sequence)
    (begin,) = bound(node, inside.choose(_at(node, starts, at), -1), "position")
    row = _at(node, Ints(node, sequence.shapes), at)
    fresh = node.builder.fresh
    names = (f"{node.label}_dim_{axis}" for axis in range(len(known)))
    dims = tuple(fresh(n) if d is None else d for d, n in zip(known, names, strict=True))
    rest = (-1,) * (sequence.kind.width - len(known))
    said = row.value
    if rest:
        full = Constant(np.asarray(rest, np.int64))
        tail = row.op("strided_slice", axes=(0,), begin=(len(known),), end=(sequence.kind.width,))
        missing = tail.equals(Ints(node, full)).op("all", axis=None)
        said = row.op("strided_slice", axes=(0,), begin=(0,), end=(len(known),)).value
        bound(node, missing.choose(0, -1), "number_of_axes")
    if known:
        matched(node, said, dims, "shape")
    size = as_dim(prod(dims))
    (_,) = bound(node, _at(node, lengths, at), "size")
    part = run_of(node, sequence.data, (0,), (begin,), (size,))
    return node.op("reshape", part, dims)


def inserted(node: Emission, sequence: Ragged, tensor: Expr, position: Expr | None) -> Ragged:
    """A sequence with a tensor at a place, or at its end."""
    kind = sequence.kind.joined(item_kind(node.dtype_of(tensor), node.shape_of(tensor)))
    old, new = widened(node, sequence, kind), of_tensors(node, kind, [tensor])
    if position is None:
        return Ragged(
            kind,
            _concat(node, [old.data, new.data]),
            _concat(node, [old.shapes, new.shapes]),
        )
    at, count = Ints(node, node.op("reshape", position, ())), old.count(node)
    at = _from_front(node, at, count)
    inside = _inside(node, at, count, 1)
    (place,) = bound(node, inside.choose(at, -1), "position")
    begin = _start_of(node, old, place)
    return Ragged(
        kind,
        _concat(node, [*_cut(node, old.data, begin, begin)[:1], new.data,
                       *_cut(node, old.data, begin, begin)[1:]]),
        _concat(node, [*_cut(node, old.shapes, place, place)[:1], new.shapes,
                       *_cut(node, old.shapes, place, place)[1:]]),
    )  # fmt: skip


def erased(node: Emission, sequence: Ragged, position: Expr | None) -> Ragged:
    """A sequence without the item at a place, or without its last one."""
    last: Expr = Constant(np.asarray(-1, np.int64)) if position is None else position
    at, count = Ints(node, node.op("reshape", last, ())), sequence.count(node)
    at = _from_front(node, at, count)
    inside = _inside(node, at, count, 0)
    (place,) = bound(node, inside.choose(at, -1), "position")
    after = as_dim(place + 1)
    begin, end = _start_of(node, sequence, place), _start_of(node, sequence, after)
    return Ragged(
        sequence.kind,
        _concat(node, _cut(node, sequence.data, begin, end)),
        _concat(node, _cut(node, sequence.shapes, place, after)),
    )


def stacked(node: Emission, sequence: Ragged, axis: int) -> Expr:
    """All items along a new axis; they must be of one shape, and there must be one."""
    if sequence.whole is not None:
        return _moved(node, _some(node, sequence.whole), axis)
    dims = _common_shape(node, sequence, None)
    count = sequence.count(node)
    size = as_dim(count * prod(dims))
    whole = node.assert_shape(sequence.data, (size,))
    whole = node.op("reshape", whole, (count, *dims))
    return _moved(node, whole, axis)


def joined(node: Emission, sequence: Ragged, axis: int) -> Expr:
    """All items one behind another along an axis; their other axes must be as long as each other's.

    An element of the result is found by its place among the columns of all items, those of the
    axes from the joined one on.
    """
    rank = _rank(node, sequence)
    axis = node.axis(axis, rank)
    if sequence.whole is not None:
        count, *each = node.shape_of(sequence.whole)
        each[axis] = as_dim(count * each[axis])
        return node.op("reshape", _moved(node, _some(node, sequence.whole), axis), tuple(each))
    dims = _common_shape(node, sequence, axis)
    rows = Ints(node, sequence.shapes)
    extents = _column(rows, axis)
    (extent,) = bound(node, extents.total(), "joined")
    shape = (*dims[:axis], extent, *dims[axis + 1 :])
    outer, inner = as_dim(prod(dims[:axis])), as_dim(prod(dims[axis + 1 :]))
    data = node.assert_shape(sequence.data, (as_dim(outer * extent * inner),))
    if outer == 1:
        return node.op("reshape", data, shape)
    starts, _ = _extents_of(node, sequence)
    width = extents * vector_of(node, (inner,))
    columns = Ints(node, node.op("arange", 0, as_dim(extent * inner), 1, dtype=INT64))
    of, first = _owners(node, width, columns)
    within = columns - _at(node, first, of)
    base = _at(node, starts, of) + within
    step = _at(node, width, of)
    outers = Ints(node, node.op("arange", 0, outer, 1, dtype=INT64)).row(1)
    places = outers * step.row(0) + base.row(0)
    return node.op("reshape", node.op("take", data, places.value, axis=0), shape)


def parted(node: Emission, x: Expr, axis: int, lengths: Ints, *, keeps_axis: bool = True) -> Ragged:
    """A tensor in parts of some lengths along an axis, which are checked to make it up.

    Args:
        node: What this is emitted for.
        x: The tensor.
        axis: Along which.
        lengths: A vector; of a number that may be unknown.
        keeps_axis: Whether the items have that axis; if not, all lengths are 1.
    """
    shape = node.shape_of(x)
    outer, inner = as_dim(prod(shape[:axis])), as_dim(prod(shape[axis + 1 :]))
    matched(node, node.op("reshape", lengths.total().value, (1,)), (shape[axis],), "parts")
    bound_all = (lengths < 0).op("any", axis=None)
    bound(node, bound_all.choose(-1, 0), "length")
    (count,) = node.shape_of(lengths.value)
    columns = [
        lengths.row(1) if k == axis else Ints(node, node.op("broadcast_to", one.value, (count, 1)))
        for k, one in enumerate(Ints(node, vector_of(node, (d,)).value).row(0) for d in shape)
    ]
    kept = [c for k, c in enumerate(columns) if keeps_axis or k != axis]
    rows: Expr = Constant(np.empty((0, 0), np.int64))
    if kept:
        rows = kept[0].value if len(kept) == 1 else node.op("concat", _tuple(kept), axis=1)
    else:
        rows = node.op("zeros", (count, 0), dtype=INT64)
    ints = tuple(d if isinstance(d, int) else None for d in shape)
    left = tuple(
        None if k == axis and keeps_axis else d
        for k, d in enumerate(ints)
        if keeps_axis or k != axis
    )
    kind = ItemKind(node.dtype_of(x), len(left), left)
    flat = node.op("reshape", x, (as_dim(outer * shape[axis] * inner),))
    if outer == 1:
        return Ragged(kind, flat, rows)
    width = lengths * vector_of(node, (inner,))
    places = Ints(node, node.op("arange", 0, node.shape_of(flat)[0], 1, dtype=INT64))
    of, first = _owners(node, width * vector_of(node, (outer,)), places)
    within = places - _at(node, first, of)
    own = _at(node, width, of).most(1)
    row = within // own
    column = within - row * own + _at(node, _before(node, width), of)
    at = row * vector_of(node, (as_dim(shape[axis] * inner),)) + column
    return Ragged(kind, node.op("take", flat, at.value, axis=0), rows)


def _some(node: Emission, whole: Expr) -> Expr:
    """A stack of items, of which there must be one when it runs."""
    count = node.shape_of(whole)[0]
    node.require(
        count, dim_max(count, 1), "joins_an_empty_sequence", "it joins a sequence of no items"
    )
    return whole


def _moved(node: Emission, whole: Expr, axis: int) -> Expr:
    """A stack with its first axis at another place."""
    rank = len(node.shape_of(whole))
    order = [*range(1, rank)]
    order.insert(axis % rank, 0)
    return node.op("permute_dims", whole, axes=tuple(order)) if order[0] else whole


def _tuple(parts: Sequence[Ints]) -> Tuple:
    return Tuple(tuple(p.value for p in parts))


def _concat(node: Emission, parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else node.op("concat", Tuple(tuple(parts)), axis=0)


def _row(node: Emission, dims: Shape, width: int) -> Expr:
    filled = vector_of(node, (*dims, *(-1,) * (width - len(dims))))
    return node.op("reshape", filled.value, (1, width))


def _from_front(node: Emission, at: Ints, count: Dim) -> Ints:
    whole = Ints(node, node.cast(at.value, INT64))
    return (whole < 0).choose(whole + vector_of(node, (count,)).element(0), whole)


def _inside(node: Emission, at: Ints, count: Dim, more: int) -> Ints:
    """Whether a place is one of a sequence, or (with 1 more) one to insert at."""
    beyond = vector_of(node, (as_dim(count + more),)).element(0)
    return (at < beyond) & (at < 0).negated()


def _at(node: Emission, table: Ints, places: Ints) -> Ints:
    return Ints(node, node.op("take", table.value, places.value, axis=0))


def _column(rows: Ints, axis: int) -> Ints:
    part = rows.op("strided_slice", axes=(1,), begin=(axis,), end=(axis + 1,))
    return part.op("squeeze", axis=1)


def _before(node: Emission, lengths: Ints) -> Ints:
    """Where each of some runs begins, which lie one behind another."""
    return Ints(node, node.op("cumsum", lengths.value, axis=0, exclusive=True))


def _extents_of(node: Emission, sequence: Ragged) -> tuple[Ints, Ints]:
    """Where each item begins in the data, and how many elements it has."""
    rows = Ints(node, sequence.shapes)
    lengths = (rows < 0).choose(1, rows).op("prod", axis=1)
    return _before(node, lengths), lengths


def _owners(node: Emission, lengths: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Which of some runs each of all places lies in, and where each run begins."""
    first = _before(node, lengths)
    none = node.op("zeros_like", places.value)
    ones = node.op("ones_like", first.value)
    marks = node.op("scatter_elements", none, first.value, ones, axis=0, reduction="add")
    return Ints(node, node.op("cumsum", marks, axis=0)) - 1, first


def _start_of(node: Emission, sequence: Ragged, place: Dim) -> Dim:
    """Where the data of the item at a place begins, or ends if there are no more."""
    _, lengths = _extents_of(node, sequence)
    count = sequence.count(node)
    nth = Ints(node, node.op("arange", 0, count, 1, dtype=INT64))
    earlier = nth < vector_of(node, (place,)).element(0)
    (begin,) = bound(node, earlier.choose(lengths, 0).total(), "begin")
    return begin


def _cut(node: Emission, x: Expr, begin: Dim, end: Dim) -> list[Expr]:
    """What lies along the first axis before a place, and what behind another."""
    extent = node.shape_of(x)[0]
    (left,) = bound(node, vector_of(node, (as_dim(extent - end),)), "rest")
    return [
        run_of(node, x, (0,), (0,), (begin,)),
        run_of(node, x, (0,), (end,), (left,)),
    ]


def _rank(node: Emission, sequence: Ragged) -> int:
    shape, fallback = sequence.kind.shape, sequence.kind.fallback
    if shape is None and fallback is None:
        raise node.gap("a sequence whose items have an unknown number of axes")
    return len(shape) if shape is not None else fallback or 0


def _common_shape(node: Emission, sequence: Ragged, but: int | None) -> Shape:
    """The shape of the first item; that the others have it is checked, but for one axis."""
    rank, width = _rank(node, sequence), sequence.kind.width
    known = sequence.kind.shape or (None,) * rank
    rows = Ints(node, sequence.shapes)
    if rank < width:
        rows = rows.op("strided_slice", axes=(1,), begin=(0,), end=(rank,))
    certain = tuple(d for d in known if d is not None)
    if but is None and len(certain) == rank:
        return certain
    bound(node, vector_of(node, (as_dim(sequence.count(node) - 1),)), "items_less_one")
    first = _at(node, rows, ints_of(node, Constant(np.asarray(0, np.int64))))
    same = rows.equals(first.row(0)).op("all", axis=0)
    if but is not None:
        same = same.op("logical_or", Ints(node, Constant(np.arange(rank) == but)))
    fresh = node.builder.fresh
    dims = tuple(fresh(f"{node.label}_dim_{k}") if d is None else d for k, d in enumerate(known))
    matched(node, same.choose(first, -1).value, dims, "shape")
    return dims
