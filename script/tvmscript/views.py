"""Names of TVMScript for parts of other buffers, or for their memory in another shape.

``A0 = T.match_buffer(A[i * 4 : i * 4 + 4, j], (4,))`` makes ``A0[k]`` mean ``A[i * 4 + k, j]``;
``B = T.decl_buffer((64,), data=A.data)`` of an ``A`` of 8 x 8 makes ``B[k]`` mean
``A[k // 8, k % 8]``. So no such name is left in the program: an element has one name.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unity.errors import index_count

from ..parser.source import Source
from .syntax import at_place, constant, distance


@dataclass(frozen=True, slots=True)
class Declared:
    """A buffer of a program, as far as its text says.

    Attributes:
        dtype: The name of what it holds; None where it is no literal.
        shape: Its extents, in our spelling.
        packed: Whether elements lie one behind the other.
    """

    dtype: object
    shape: tuple[ast.expr, ...]
    packed: bool = True


@dataclass(frozen=True, slots=True)
class RegionView:
    """A part of a buffer.

    Attributes:
        buffer: The buffer's name.
        starts: Where it begins along each axis of the buffer; the last axes are the view's.
        shape: The view's extents.
    """

    buffer: str
    starts: tuple[ast.expr, ...]
    shape: tuple[ast.expr, ...]


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A buffer's elements in another shape, in the order in which they lie.

    Attributes:
        buffer: The buffer's name.
        whole: The buffer's extents.
        shape: The view's extents.
        strides: How far its elements are apart along each axis; None if they lie side by side.
        offset: The element of the buffer at which it begins.
    """

    buffer: str
    whole: tuple[ast.expr, ...]
    shape: tuple[ast.expr, ...]
    strides: tuple[ast.expr, ...] | None = None
    offset: ast.expr = field(default_factory=lambda: ast.Constant(0))


View = RegionView | MemoryView


def region_view(
    source: Source,
    region: ast.Subscript,
    whole: Sequence[ast.expr],
    shape: Sequence[ast.expr] | None,
) -> RegionView:
    """What ``T.match_buffer(A[...], shape)`` names.

    Args:
        source: For errors.
        region: The part of a buffer, in our spelling.
        whole: The buffer's extents.
        shape: The view's extents; None for those of the region.

    Raises:
        UnityError: The shape leaves out an axis along which the region is not one element, or has
            another extent than the region.
    """
    assert isinstance(region.value, ast.Name)
    parts = _parts(region.slice)
    if len(parts) != len(whole):
        raise source.error(region, index_count(region.value.id, len(whole), len(parts)))
    taken = [_extent(p, e) for p, e in zip(parts, whole, strict=True)]
    shape = taken if shape is None else shape
    left_out = len(parts) - len(shape)
    if left_out < 0:
        raise source.error(region, f"the region has {len(parts)} axes, the view {len(shape)}")
    for part in parts[:left_out]:
        if isinstance(part, ast.Slice):
            raise source.error(
                part,
                f"the view has {len(shape)} axes: the first {left_out} of the region are points",
                "write an index in place of the slice",
            )
    for part, extent, said in zip(parts[left_out:], taken[left_out:], shape, strict=True):
        known, wanted = constant(extent), constant(said)
        if isinstance(known, int) and isinstance(wanted, int) and known != wanted:
            raise source.error(
                part,
                f"the region takes {known} along this axis, the view {wanted}",
                "a view is of the region's shape; leave 'shape' out, and it is",
            )
    starts = [(p.lower or ast.Constant(0)) if isinstance(p, ast.Slice) else p for p in parts]
    return RegionView(region.value.id, tuple(starts), tuple(shape))


def element_of(source: Source, node: ast.Subscript, view: View) -> ast.Subscript:
    """An access of a view, as one of the buffer that it names a part of.

    Args:
        source: For errors.
        node: The access, its indices in our spelling.
        view: What is accessed.

    Raises:
        UnityError: It has another number of indices than the view has axes, or takes a stretch
            of a view in another shape.
    """
    parts = _parts(node.slice)
    if len(parts) != len(view.shape):
        name = ast.unparse(node.value)
        raise source.error(node, index_count(name, len(view.shape), len(parts)))
    if isinstance(view, RegionView):
        indices = _in_region(view, parts)
    elif _is_whole(view):
        indices = parts
    else:
        indices = _in_memory(source, view, parts)
    slices = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
    return at_place(ast.Subscript(ast.Name(view.buffer, ast.Load()), slices, node.ctx), node)


def names_of(view: View) -> frozenset[str]:
    """The names that a view is told by."""
    if isinstance(view, RegionView):
        parts = view.starts
    else:
        parts = (*view.whole, *view.shape, *(view.strides or ()), view.offset)
    names = {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
    return frozenset(names | {view.buffer})


def memory_of(name: str, views: Mapping[str, View]) -> str:
    """The buffer whose memory a view lies in; ``A0.data`` is that of ``A`` in TVM, too."""
    while name in views:
        name = views[name].buffer
    return name


def offset_of(name: str, buffers: Mapping[str, Declared], views: Mapping[str, View]) -> ast.expr:
    """How many elements of its buffer lie before a view: ``A0.elem_offset``."""
    view = views.get(name)
    if view is None:
        return ast.Constant(0)
    begin = offset_of(view.buffer, buffers, views)
    if isinstance(view, RegionView):
        return plus(begin, flat_index(buffers[view.buffer].shape, view.starts))
    return plus(begin, copy.deepcopy(view.offset))


def whole_of(name: ast.Name, view: View) -> ast.Subscript:
    """A view's name for all of its elements, ``T.reads(A0)``."""
    parts: list[ast.expr] = [ast.Slice(ast.Constant(0), copy.deepcopy(e)) for e in view.shape]
    slices = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
    return at_place(ast.Subscript(name, slices, ast.Load()), name)


def _in_region(view: RegionView, parts: Sequence[ast.expr]) -> list[ast.expr]:
    first = len(view.starts) - len(parts)
    found = [copy.deepcopy(start) for start in view.starts[:first]]
    for start, extent, part in zip(view.starts[first:], view.shape, parts, strict=True):
        if isinstance(part, ast.Slice):
            low = part.lower or ast.Constant(0)
            high = part.upper or copy.deepcopy(extent)
            found.append(ast.Slice(plus(start, low), plus(start, high)))
        else:
            found.append(plus(start, part))
    return found


def _in_memory(source: Source, view: MemoryView, parts: Sequence[ast.expr]) -> list[ast.expr]:
    """Indices of the element that lies as far from the first one."""
    for part in parts:
        if isinstance(part, ast.Slice):
            raise source.error(
                part,
                f"{view.buffer}'s elements in another shape are accessed one at a time",
                "write the stretch as one of the buffer itself",
            )
    flat = plus(view.offset, flat_index(view.shape, parts, view.strides))
    found: list[ast.expr] = []
    for k, extent in reversed(list(enumerate(view.whole))):
        rest = copy.deepcopy(flat)
        if k == 0:
            found.append(rest)
            break
        found.append(ast.BinOp(rest, ast.Mod(), copy.deepcopy(extent)))
        flat = ast.BinOp(flat, ast.FloorDiv(), copy.deepcopy(extent))
    return found[::-1] or [ast.Tuple([], ast.Load())]


def flat_index(
    shape: Sequence[ast.expr],
    parts: Sequence[ast.expr],
    strides: Sequence[ast.expr] | None = None,
) -> ast.expr:
    """How many elements lie before one, side by side or with strides."""
    flat: ast.expr = ast.Constant(0)
    if strides is not None:
        for stride, part in zip(strides, parts, strict=True):
            one = constant(stride) == 1
            flat = plus(flat, part if one else _times(part, stride))
        return flat
    for extent, part in zip(shape, parts, strict=True):
        flat = plus(_times(flat, extent), part)
    return flat


def _extent(part: ast.expr, whole: ast.expr) -> ast.expr:
    """How many elements a part of an index takes along an axis of so many."""
    if not isinstance(part, ast.Slice):
        return at_place(ast.Constant(1), part)
    first, last = part.lower or ast.Constant(0), part.upper or whole
    if (known := distance(first, last)) is not None:
        return at_place(ast.Constant(known), part)
    return at_place(ast.BinOp(copy.deepcopy(last), ast.Sub(), copy.deepcopy(first)), part)


def _times(a: ast.expr, b: ast.expr) -> ast.expr:
    if constant(a) == 0:
        return ast.Constant(0)
    return ast.BinOp(copy.deepcopy(a), ast.Mult(), copy.deepcopy(b))


def _is_whole(view: MemoryView) -> bool:
    """Whether an index of the view is one of the buffer."""
    if view.strides is not None or constant(view.offset) != 0:
        return False
    return _equal(view.shape, view.whole) or len(view.shape) == len(view.whole) == 1


def plus(a: ast.expr, b: ast.expr) -> ast.expr:
    """The sum of two numbers, which may be one of them."""
    if constant(a) == 0:
        return b
    if constant(b) == 0:
        return copy.deepcopy(a)
    return ast.BinOp(copy.deepcopy(a), ast.Add(), b)


def _parts(slices: ast.expr) -> list[ast.expr]:
    return list(slices.elts) if isinstance(slices, ast.Tuple) else [slices]


def _equal(a: Sequence[ast.expr], b: Sequence[ast.expr]) -> bool:
    return [ast.unparse(x) for x in a] == [ast.unparse(x) for x in b]
