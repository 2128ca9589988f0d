"""Nodes that read or change shapes. On sizes they are index games, played during the import."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unity.errors import UnityError
from unity.frontend.broadcasting import broadcast_shapes
from unity.frontend.run_time.axes import squeezed, unsqueezed
from unity.frontend.run_time.shapes import expanded
from unity.frontend.sizes import MOST, Sizes, sizes_of
from unity.ir.dims import Dim, as_dim, bounds, ceildiv, dim, equal, product
from unity.ir.graph import Expr
from unity.ir.types import Shape

from .node import Converter, Node, Value


def _shape(node: Node) -> Value:
    shape = node.shape_of(node.tensor(0))
    start = node.int_of("start", 0)
    end = node.int_of("end", len(shape))
    return sizes_of(shape[slice(start, end)])


def _size(node: Node) -> Value:
    return sizes_of(product(node.shape_of(node.tensor(0))))


def _flatten(node: Node) -> Value:
    x = node.tensor(0)
    shape = node.shape_of(x)
    given = node.int_of("axis", 1)
    axis = given + len(shape) if given < 0 else given
    if not 0 <= axis <= len(shape):
        raise UnityError(f"axis {given} is out of range for rank {len(shape)}")
    return node.op("reshape", x, (product(shape[:axis]), product(shape[axis:])))


def _axes(node: Node) -> tuple[int, ...] | None:
    """Axes: an attribute before opset 13, then an input."""
    if node.version < 13:
        return node.ints_of("axes")
    return node.ints(1, "axes") if node.has(1) else None


def _late_axes(node: Node) -> bool:
    """Whether axes are given, but known only at run time."""
    return node.version >= 13 and node.has(1) and not node.is_known(1)


def _squeeze(node: Node) -> Value:
    if _late_axes(node):
        return squeezed(node, node.tensor(0), node.run_time(1))
    axes = _axes(node)
    value = node.value(0)
    if isinstance(value, Sizes):
        return Sizes(np.asarray(value.dims.squeeze(axes), dtype=object), value.dtype)
    shape = node.shape_of(value)
    if axes is None:
        _require_others_not_one(node, value, shape)
        return node.op("squeeze", value)
    over = tuple(node.axis(a, len(shape)) for a in axes)
    # A symbol that must be 1 is checked at run time.
    wanted = tuple(1 if i in over and not isinstance(d, int) else d for i, d in enumerate(shape))
    checked = value if wanted == shape else node.assert_shape(value, wanted)
    return node.op("squeeze", checked, axis=over)


def _require_others_not_one(node: Node, value: Expr, shape: Shape) -> None:
    """Check at run time that extents unknown here are above 1: else the rank would be another."""
    builder = node.graph.builder
    unknown = [i for i, d in enumerate(shape) if not isinstance(d, int) and (bounds(d)[0] or 0) < 2]
    if not unknown:
        return
    fresh = {i: builder.fresh(f"squeeze_would_drop_axis_{i}").name for i in unknown}
    wanted = tuple(dim(fresh[i], min=2) if i in fresh else d for i, d in enumerate(shape))
    node.assert_shape(value, wanted)  # kept for its check


def _unsqueeze(node: Node) -> Value:
    if _late_axes(node):
        return unsqueezed(node, node.tensor(0), node.run_time(1))
    axes = _axes(node)
    if axes is None:
        raise UnityError("lacks its axes")
    value = node.value(0)
    if isinstance(value, Sizes):
        rank = value.dims.ndim + len(axes)
        places = tuple(node.axis(a, rank) for a in axes)
        return Sizes(np.expand_dims(value.dims, places), value.dtype)
    return node.op("expand_dims", value, axis=axes)


def _transpose(node: Node) -> Value:
    value = node.value(0)
    rank = value.dims.ndim if isinstance(value, Sizes) else node.rank(0)
    axes = node.ints_of("perm")
    order = tuple(reversed(range(rank))) if axes is None else axes
    if isinstance(value, Sizes) and sorted(order) == list(range(rank)):
        return Sizes(value.dims.transpose(order), value.dtype)
    x = node.tensor(0)
    return x if order == tuple(range(rank)) else node.op("permute_dims", x, axes=order)


def _expand(node: Node) -> Value:
    """Broadcasting both ways: a 1 in the wanted shape keeps the input's dim."""
    if not node.is_known(1):
        return expanded(node, node.tensor(0), node.run_time(1))
    wanted = node.dims(1, "a shape")
    value = node.value(0)
    numbers = tuple(d for d in wanted if isinstance(d, int))
    if isinstance(value, Sizes) and len(numbers) == len(wanted) and prod(numbers) <= MOST:
        shape = np.broadcast_shapes(value.dims.shape, numbers)
        return Sizes(np.broadcast_to(value.dims, shape), value.dtype)
    x = node.tensor(0)
    shape = node.shape_of(x)
    wider, sizes = broadcast_shapes(node, (shape, wanted))
    target = sizes.stretched
    if len(target) < len(shape):
        target = (*shape[: len(shape) - len(target)], *target)
    target = tuple(
        d if d != 1 or k < len(target) - len(shape) else wider.stretched[k - len(target)]
        for k, d in enumerate(target)
    )
    found = wider.of(node, x)
    return found if target == wider.stretched else node.op("broadcast_to", found, target)


def _concat(node: Node) -> Value:
    axis = node.int_of("axis", 0)
    every = range(node.count)
    known = node.symbolic(*every)
    if known is not None:
        return Sizes(np.concatenate([k.dims for k in known], axis), known[0].dtype)
    tensors = [node.tensor(i) for i in every]
    if len(tensors) == 1:
        return tensors[0]
    rank = len(node.shape_of(tensors[0]))
    along = node.axis(axis, rank)
    first = node.shape_of(tensors[0])
    aligned = [tensors[0], *(_like(node, t, first, along) for t in tensors[1:])]
    whole = node.op("concat", tuple(aligned), axis=along)
    if rank == 1 and node.dtype_of(whole).is_int and any(map(node.is_known, every)):
        node.graph.joined[whole] = tuple(map(node.value, every))
    return whole


def _like(node: Node, x: Expr, first: Sequence[Dim], along: int) -> Expr:
    """A part of a concatenation, its other dims asserted to be those of the first part."""
    shape = node.shape_of(x)
    if len(shape) != len(first):
        raise UnityError(f"inputs of ranks {len(first)} and {len(shape)}")
    wanted = list(shape)
    for i, (own, other) in enumerate(zip(shape, first, strict=True)):
        both_numbers = isinstance(own, int) and isinstance(other, int)
        if i != along and not both_numbers and not equal(own, other):
            wanted[i] = other
    return x if tuple(wanted) == tuple(shape) else node.assert_shape(x, tuple(wanted))


def _split(node: Node) -> list[Value]:
    x = node.tensor(0)
    shape = node.shape_of(x)
    axis = node.axis(node.int_of("axis", 0), len(shape))
    if node.version < 13:
        sizes: Shape | None = node.ints_of("split")
    else:
        sizes = node.dims(1, "the sizes of a split") if node.has(1) else None
    count = node.int_of("num_outputs", len(node.proto.output))
    extent = shape[axis]
    if count != len(node.proto.output):
        raise UnityError(f"num_outputs is {count}, but there are {len(node.proto.output)} outputs")
    if sizes is None:
        sizes = _equal_parts(node, extent, count)
    if len(sizes) != count:
        raise UnityError(f"{len(sizes)} parts for {count} outputs")
    total = as_dim(sum(sizes))
    if isinstance(extent, int) and isinstance(total, int) and total != extent:
        raise UnityError(f"the parts {sizes} don't add up to the extent {extent}")
    if not equal(extent, total):
        x = node.assert_shape(x, (*shape[:axis], total, *shape[axis + 1 :]))
    if len(sizes) == 1:
        return [x]
    starts = [as_dim(sum(sizes[:i])) for i in range(len(sizes))]
    known = [s for s in starts[1:] if isinstance(s, int)]
    if len(known) == count - 1:
        parts = node.op("split", x, tuple(known), axis=axis)
        return [node.field(parts, i) for i in range(len(sizes))]
    return [_part(node, x, axis, s, n) for s, n in zip(starts, sizes, strict=True)]


def _equal_parts(node: Node, extent: Dim, count: int) -> Shape:
    """The sizes of equal parts, the last of which has what is left."""
    part = ceildiv(extent, count)
    if isinstance(extent, int) and isinstance(part, int):
        return tuple(max(0, min(part, extent - i * part)) for i in range(count))
    if equal(as_dim(part * count), extent):
        return (part,) * count
    each = node.sized(part, f"{node.label}_part")
    rest = node.sized(as_dim(extent - each * (count - 1)), f"{node.label}_last_part")
    return (*(each,) * (count - 1), rest)


def _part(node: Node, x: Expr, axis: int, start: Dim, size: Dim) -> Expr:
    end = as_dim(start + size)
    found = node.op("strided_slice", x, axes=(axis,), begin=(start,), end=(end,), strides=None)
    shape = node.shape_of(x)
    wanted = (*shape[:axis], size, *shape[axis + 1 :])
    return found if node.shape_of(found) == wanted else node.assert_shape(found, wanted)


def _tile(node: Node) -> Value:
    repeats = node.dims(1, "the repeats")
    if len(repeats) != node.rank(0):
        raise UnityError(f"{len(repeats)} repeats of a tensor of rank {node.rank(0)}")
    return node.op("tile", node.tensor(0), repeats)


def _depth_to_space(node: Node) -> Value:
    block = node.int_of("blocksize", 1)
    x = _in_blocks(node, block * block, axes=(1,))
    return node.op("depth_to_space", x, block_size=block, mode=node.text_of("mode", "DCR"))


def _in_blocks(node: Node, by: int, axes: tuple[int, ...]) -> Expr:
    """The image of a node; whether it can be cut into blocks shows at run time."""
    x = node.tensor(0)
    return node.divisible(x, axes, by) if by > 0 and node.rank(0) == 4 else x


def _space_to_depth(node: Node) -> Value:
    """Blocks of pixels into channels: those of a pixel together (DCR), or of a channel (CRD)."""
    mode, block = node.text_of("mode", "DCR"), node.int_of("blocksize", 1)
    if mode not in ("DCR", "CRD"):
        raise UnityError(f"mode {mode!r}; expected DCR or CRD")
    x = _in_blocks(node, block, axes=(2, 3))
    found = node.op("space_to_depth", x, block_size=block)
    if mode == "DCR":
        return found
    batch, wide, *extents = node.shape_of(found)
    channels = node.shape_of(x)[1]
    split = node.op("reshape", found, (batch, block * block, channels, *extents))
    return node.op(
        "reshape", node.op("permute_dims", split, axes=(0, 2, 1, 3, 4)), (batch, wide, *extents)
    )


CONVERTERS: dict[str, Converter] = {
    "Shape": _shape,
    "Size": _size,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Concat": _concat,
    "Split": _split,
    "Tile": _tile,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
