"""Slices that take an interval of one axis: parts of splits, and how views go in front of them."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, equal, product
from unity.ir.graph import Call, Expr, Op
from unity.ir.types import Shape


def slice_of(x: Expr, axis: int, begin: int, end: int, like: Call | None = None) -> Call:
    """A slice of an axis from `begin` to before `end`."""
    attrs = Attrs(axes=(axis,), begin=(begin,), end=(end,), strides=None)
    return Call(Op("strided_slice"), (x,), attrs, None if like is None else like.span)


def begin_of(call: Call, axis: int, shape: Sequence[Dim]) -> int | None:
    """Where a slice begins that takes an interval of an axis alone; None for another slice.

    Args:
        call: Of `strided_slice`.
        axis: Not negative.
        shape: Of what is sliced.
    """
    axes, begin, strides = (call.attrs[k] for k in ("axes", "begin", "strides"))
    if axes not in ((axis,), (axis - len(shape),)) or strides not in (None, (1,)):
        return None
    match begin, shape[axis]:
        case (int() as first,), int() as extent:
            return min(max(first + extent, 0) if first < 0 else first, extent)
        case _:
            return None


def part_of_split(split: Call, shape: Shape, index: int) -> tuple[int, int, int] | None:
    """The axis that a tensor is split along, and where a part begins and ends; None if unknown."""
    cuts, axis = split.attrs["indices_or_sections"], split.attrs["axis"]
    if not isinstance(axis, int):
        return None
    extent = shape[axis]
    match cuts, extent:
        case int(), int():
            ends = [extent // cuts * (i + 1) for i in range(cuts)]
        case tuple(), int():
            ends = [*(c for c in cuts if isinstance(c, int)), extent]
            if len(ends) <= len(cuts) or sorted(ends) != ends or ends[0] < 0:
                return None
        case _:
            return None
    return axis % len(shape), ends[index - 1] if index else 0, ends[index]


def view_in_front(
    shape: Shape, begin: int, count: int, view: Shape
) -> tuple[Shape, int, int, int] | None:
    """How a view of an interval of the last axis is an interval of a view of the whole.

    Args:
        shape: Of the whole.
        begin: Where the interval of its last axis begins.
        count: How long it is.
        view: The shape of the view of the interval.

    Returns:
        The shape of the view of the whole, the axis of the interval, its begin and its end.

    >>> view_in_front((2, 5, 24), 8, 8, (10, 2, 4))
    ((10, 6, 4), 1, 2, 4)
    """
    extent = shape[-1]
    if not isinstance(extent, int) or not view or count == 0:
        return None
    match view[-2:]:
        case (int() as items, int() as size) if items * size == count and size != count:
            pass
        case (*_, int() as size) if size == count:
            items = 1
        case _:
            return None
    lead = view[:-1] if size == count else view[:-2]
    if not equal(product(lead), product(shape[:-1])):
        return None
    if size == count:
        return (*lead, extent), len(lead), begin, begin + count
    if begin % size or extent % size:
        return None
    return (*lead, extent // size, size), len(lead), begin // size, begin // size + items
