"""What goes back to an image: Col2Im, MaxUnpool, and the places that MaxPool found maxima at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.frontend.onnx.layers import per_axis
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.reshaping import reshaped
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim, dim_max, floordiv, product
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape


def _col2im(node: Node) -> Value:
    """Blocks added up in an image."""
    x = node.tensor(0)
    image, block = node.dims(1, "the shape of an image"), node.dims(2, "the shape of blocks")
    rank = len(image)
    if len(block) != rank or node.rank(0) != 3:
        raise UnityError(
            f"an image {image} of blocks {block} for {node.shape_of(x)}; expected (N, C * block, L)"
        )
    pads = node.ints_of("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise UnityError(f"pads {pads} are not {2 * rank} numbers")
    steps = _Steps(per_axis(node, "strides", rank), per_axis(node, "dilations", rank), pads)
    known = [d for d in (*image, *block, node.shape_of(x)[1]) if isinstance(d, int)]
    if len(known) == 2 * rank + 1 and rank <= 3 and node.dtype_of(x).is_float:
        return _by_convolution(node, x, known[:rank], known[rank:-1], steps)
    return _by_places(node, x, image, block, steps)


@dataclass(frozen=True, slots=True)
class _Steps:
    """How blocks lie in an image: steps between them and within one, befores and then afters."""

    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]


def _by_convolution(
    node: Node, x: Expr, image: Sequence[int], block: Sequence[int], steps: _Steps
) -> Expr:
    """A transposed convolution, by weights each of which is 1 at one pixel of a block."""
    rank, taps, pads = len(image), prod(block), steps.pads
    batch, wide, count = node.shape_of(x)
    assert isinstance(wide, int)
    if wide % taps:
        raise UnityError(f"{wide} channels don't hold blocks of {taps} elements")
    reach = [d * (k - 1) + 1 for k, d in zip(block, steps.dilations, strict=True)]
    room = [i + pads[k] + pads[rank + k] - reach[k] for k, i in enumerate(image)]
    blocks = [r // s + 1 for r, s in zip(room, steps.strides, strict=True)]
    if isinstance(count, int) and count != prod(blocks):
        raise UnityError(f"an image {tuple(image)} has {prod(blocks)} blocks, got {count}")
    whole = node.assert_shape(x, (batch, wide, prod(blocks)))
    own = np.tile(np.eye(taps), (wide // taps, 1)).astype(node.dtype_of(x).numpy)
    return node.op(
        f"nn.conv{rank}d_transpose",
        node.op("reshape", whole, (batch, wide, *blocks)),
        Constant(own.reshape(wide, 1, *block)),
        strides=tuple(steps.strides),
        padding=tuple(pads),
        output_padding=tuple(r % s for r, s in zip(room, steps.strides, strict=True)),
        dilation=tuple(steps.dilations),
        groups=wide // taps,
    )


def _by_places(node: Node, x: Expr, image: Shape, block: Shape, steps: _Steps) -> Expr:
    """Each element added to its pixel, of sizes that may be known only at run time."""
    rank = len(image)
    batch, wide, _ = node.shape_of(x)
    blocks: list[Dim] = []
    for axis, (extent, taps) in enumerate(zip(image, block, strict=True)):
        around = steps.pads[axis] + steps.pads[rank + axis]
        room = as_dim(extent + around - steps.dilations[axis] * (taps - 1) - 1)
        blocks.append(dim_max(as_dim(floordiv(room, steps.strides[axis]) + 1), 0))
    at, outside = _places(node, image, block, blocks, steps, range(rank))
    pixels, each = product(image), product((*block, *blocks))
    # What is beyond the image is written nowhere.
    at = node.op("where", outside, node.materialize(sizes_of(pixels)), at)
    channels = node.sized(floordiv(wide, dim_max(product(block), 1)), f"{node.label}_channels")
    rows = product((batch, channels))
    values = reshaped(node, x, (rows, each), copies=False)
    at = node.op("broadcast_to", node.op("reshape", at, (1, each)), (rows, each))
    nothing = node.op("zeros", (rows, pixels), dtype=node.dtype_of(x))
    found = node.op("scatter_elements", nothing, at, values, axis=1, reduction="add")
    return node.op("reshape", found, (batch, channels, *image))


def _places(
    node: Node,
    image: Sequence[Dim],
    block: Sequence[Dim],
    blocks: Sequence[Dim],
    steps: _Steps,
    order: Sequence[int],
) -> tuple[Expr, Expr]:
    """Which pixel each element of each block is, and whether it is beyond the image.

    Args:
        node: The node.
        image: The extents of the image.
        block: Those of a block.
        blocks: How many blocks there are along each axis.
        steps: How they lie in the image.
        order: The axes by which pixels are counted, the slowest first.

    Returns:
        int64 and bool, both of the axes of a block, then those of the blocks; a pixel beyond the
        image has some number.
    """
    rank = len(image)
    at: Expr = Constant(np.zeros((), np.int64))
    outside: Expr = Constant(np.zeros((), np.bool_))
    for axis in order:
        tap = node.op("arange", 0, block[axis], 1, dtype=INT64)
        first = node.op("arange", 0, blocks[axis], 1, dtype=INT64)
        first = node.agreed(first, (blocks[axis],))  # of fewer than none, there are none
        tap = node.op("multiply", tap, node.number(steps.dilations[axis], tap))
        first = node.op("multiply", first, node.number(steps.strides[axis], first))
        first = node.op("subtract", first, node.number(steps.pads[axis], first))
        alone = [1] * (2 * rank)
        tap = node.op("reshape", tap, (*alone[:axis], block[axis], *alone[axis + 1 :]))
        wanted = (*alone[: rank + axis], blocks[axis], *alone[rank + axis + 1 :])
        pixel = node.op("add", tap, node.op("reshape", first, wanted))
        size = node.materialize(sizes_of(image[axis]))
        for beyond in (
            node.op("less", pixel, node.number(0, pixel)),
            node.op("greater_equal", pixel, size),
        ):
            outside = node.op("logical_or", outside, beyond)
        at = node.op("add", node.op("multiply", at, size), pixel)
    return at, outside


def _max_unpool(node: Node) -> Value:
    """An image of 0 with values at the places that maxima were found at."""
    x, places = node.tensor(0), node.tensor(1)
    shape = node.shape_of(x)
    rank = len(shape) - 2
    kernel = node.ints_of("kernel_shape")
    if kernel is None or len(kernel) != rank:
        raise UnityError(f"kernel_shape {kernel} does not fit the input {shape}")
    strides = per_axis(node, "strides", rank)
    pads = node.ints_of("pads") or (0,) * (2 * rank)
    inner = tuple(
        as_dim((d - 1) * s + k - pads[i] - pads[rank + i])
        for i, (d, s, k) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    )
    count = product(shape)
    flat = node.op("zeros", (product((*shape[:2], *inner)),), dtype=node.dtype_of(x))
    at = node.op("reshape", node.assert_shape(places, shape), (count,))
    found = node.op("scatter_elements", flat, at, node.op("reshape", x, (count,)), axis=0)
    whole = node.op("reshape", found, (*shape[:2], *inner))
    if not node.has(2):
        return whole
    wanted = node.dims(2, "an output shape")
    if len(wanted) != len(shape):
        raise UnityError(f"an output shape of {len(wanted)} numbers for rank {len(shape)}")
    widths: list[Dim] = []
    for d, w in zip(node.shape_of(whole), wanted, strict=True):
        widths += [0, as_dim(w - d)]
    return node.op("nn.pad", whole, tuple(widths))


def places_of_maxima(
    node: Node,
    x: Expr,
    pooled: Expr,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Expr:
    """Where in a flat tensor the maximum of each window stands; of equals, the first.

    Args:
        node: The node, whose ``storage_order`` says whether the last axis is counted first.
        x: What is pooled.
        pooled: What came out.
        kernel: The extents of a window.
        strides: Steps between windows.
        padding: Befores, then afters.
        dilations: Pixels between taps.
    """
    rank = len(kernel)
    batch, channels, *extents = node.shape_of(x)
    size = node.shape_of(pooled)[2:]
    steps, lines = _Steps(strides, dilations, padding), range(rank)
    at, outside = _places(node, extents, kernel, size, steps, lines)
    told = at
    if node.int_of("storage_order", 0):
        told, _ = _places(node, extents, kernel, size, steps, lines[::-1])
    taps, windows, pixels = prod(kernel), product(size), product(extents)
    table = (taps, windows)
    read = reshaped(node, x, (batch, channels, pixels), copies=False)
    values = node.op("take", read, node.op("reshape", at, table), axis=2)
    lowest = node.number(te.min_value(node.dtype_of(x)).value, x)
    values = node.op("where", node.op("reshape", outside, table), lowest, values)
    best = node.op("argmax", values, axis=2)
    count = node.materialize(sizes_of(windows))
    window = node.agreed(node.op("arange", 0, windows, 1, dtype=INT64), (windows,))
    entry = node.op("add", node.op("multiply", best, count), window)
    pixel = node.op("take", node.op("reshape", told, (product(table),)), entry, axis=0)
    planes = node.op("arange", 0, product((batch, channels)), 1, dtype=INT64)
    first = node.op("multiply", planes, node.materialize(sizes_of(pixels)))
    first = node.op("reshape", first, (batch, channels, 1))
    return node.op("reshape", node.op("add", pixel, first), (batch, channels, *size))


CONVERTERS: dict[str, Converter] = {"Col2Im": _col2im, "MaxUnpool": _max_unpool}
