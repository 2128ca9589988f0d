"""Maps read at regions of interest and at the taps of deformed windows, for every frontend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.frontend.sampling import Reading, axes_last, half_away, numbers, read_between, size_of
from unity.ir.dims import product
from unity.ir.dtype import DType
from unity.ir.graph import Constant, Expr


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of maps.

    Attributes:
        image: Which of the batch each is of, (count,).
        ends: For the rows and for the columns of a map: where each region begins and ends, in
            pixels, (count, 1).
        least: What no region is shorter than; None where one may end before it begins.
    """

    image: Expr
    ends: Sequence[tuple[Expr, Expr]]
    least: float | None


def aligned_regions(
    c: Emission,
    x: Expr,
    regions: Regions,
    size: Sequence[int],
    samples: int,
    mode: str,
    join: str = "add",
) -> Expr:
    """Means ("mean") or maxima ("max") of samples in the parts of regions.

    Args:
        c: The node.
        x: The maps, of the layout NCHW.
        regions: The regions.
        size: How many parts a region has along each axis.
        samples: How many samples a part has along each axis.
        mode: What becomes of a part's samples.
        join: What becomes of the weighted pixels around a sample (`Reading.join`).

    Returns:
        Of the layout NHWC: (regions, rows, columns, channels).
    """
    _, channels, *extents = c.shape_of(x)
    (count,) = c.shape_of(regions.image)
    height, width = size
    whole = count, height * samples, width * samples
    at: list[Expr] = []
    outside: Expr | None = None
    for axis, (parts, (first, last)) in enumerate(zip(size, regions.ends, strict=True)):
        length = c.op("subtract", last, first)
        if regions.least is not None:
            length = c.op("maximum", length, c.number(regions.least, first))
        where = (np.arange(parts * samples) + 0.5) / (parts * samples)
        shares = Constant(where.astype(c.dtype_of(first).numpy).reshape(1, -1))
        along = c.op("add", c.op("multiply", length, shares), first)
        behind = c.op("greater", along, size_of(c, extents[axis], along))
        beyond = c.op("logical_or", c.op("less", along, -1.0), behind)
        shape = (count, parts * samples, 1) if axis == 0 else (count, 1, parts * samples)
        beyond = c.op("broadcast_to", c.op("reshape", beyond, shape), whole)
        outside = beyond if outside is None else c.op("logical_or", outside, beyond)
        at.append(c.op("broadcast_to", c.op("reshape", along, shape), whole))
    assert outside is not None
    image = c.op("reshape", regions.image, (count, 1, 1))
    how = Reading("bilinear", "border", join=join)
    read = read_between(c, axes_last(c, x), image, at, extents, how)
    read = c.op("where", c.op("reshape", outside, (*whole, 1)), c.number(0, read), read)
    split = c.op("reshape", read, (count, height, samples, width, samples, channels))
    return c.op(mode, split, axis=(2, 4))


@dataclass(frozen=True, slots=True)
class DeformedWindow:
    """How a deformed window passes over a map.

    Attributes:
        strides: Steps along each axis.
        before: Padding before the first row and column.
        after: Padding behind the last.
        dilation: Pixels between taps.
        groups: Groups of channels with weights of their own.
        shared: Groups of channels that share their taps' places.
        padding: What is read outside: "zeros", or "border" where a tap within a pixel of the edge
            reads the edge and any other 0.
    """

    strides: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    dilation: Sequence[int]
    groups: int
    shared: int
    padding: str


def deformable_conv2d(
    c: Emission,
    x: Expr,
    moved: Expr,
    weight: Expr,
    window: DeformedWindow,
    *,
    mask: Expr | None = None,
    kind: DType,
) -> Expr:
    """A convolution whose taps each pixel moves: what they read, times the weights.

    Args:
        c: The node.
        x: The maps, NCHW, of known channels and extents.
        moved: How far taps are moved: (batch, shared * taps * 2, rows, columns).
        weight: OIHW.
        window: How it passes.
        mask: What each tap's value is multiplied by: (batch, shared * taps, rows, columns).
        kind: The dtype of the products and of what comes out.
    """
    batch = c.shape_of(x)[0]
    _, *known = c.extents(c.op("take", x, Constant(np.zeros(1, np.int64)), axis=0), "a map")
    channels, *extents = known
    out, inner, *kernel = c.extents(weight, "a kernel")
    size = [
        (e + p + q - d * (k - 1) - 1) // s + 1
        for e, p, q, d, k, s in zip(
            extents, window.before, window.after, window.dilation, kernel, window.strides,
            strict=True,
        )
    ]  # fmt: skip
    taps, groups, shared = kernel[0] * kernel[1], window.groups, window.shared
    if inner * groups != channels or channels % shared or out % groups:
        raise UnityError(f"{channels} channels don't fit a weight of {inner} in {groups} groups")
    moved = c.op("reshape", moved, (batch, shared, taps, 2, *size))
    at: list[Expr] = []
    outside: Expr | None = None
    for axis, before in enumerate(window.before):
        tap = np.indices(kernel)[axis].reshape(-1) * window.dilation[axis]
        start = np.indices(size)[axis] * window.strides[axis] - before
        fixed = (tap[:, None, None] + start).astype(c.dtype_of(moved).numpy)
        shift = c.op("take", moved, Constant(np.array(axis, np.int64)), axis=3)
        at.append(c.op("add", shift, Constant(fixed)))
        for beyond in (
            c.op("less", at[-1], 0.0),
            c.op("greater_equal", at[-1], float(extents[axis])),
        ):
            outside = beyond if outside is None else c.op("logical_or", outside, beyond)
    assert outside is not None
    part = channels // shared
    pieces = c.op("reshape", x, (batch, shared, part, *extents))
    split = c.op("permute_dims", pieces, axes=(0, 1, 3, 4, 2))
    images = product((batch, shared))
    flat = c.op("reshape", split, (images, *extents, part))
    image = c.op("reshape", numbers(c, images, 1), (batch, shared, 1, 1, 1))
    read = read_between(c, flat, image, at, extents, Reading("bilinear", window.padding))
    if window.padding == "border":
        beyond = c.op("reshape", outside, (*c.shape_of(outside), 1))
        read = c.op("where", beyond, c.number(0, read), read)
    if mask is not None:
        read = c.op("multiply", read, c.op("reshape", mask, (batch, shared, taps, *size, 1)))
    rows = c.op("permute_dims", read, axes=(0, 1, 5, 2, 3, 4))
    rows = c.op("reshape", rows, (batch, groups, inner * taps, size[0] * size[1]))
    matrix = c.op("reshape", weight, (1, groups, out // groups, inner * taps))
    found = c.op("matmul", c.cast(matrix, kind), c.cast(rows, kind))
    return c.op("reshape", found, (batch, out, *size))


def pooled_regions(c: Emission, x: Expr, rois: Expr, size: tuple[int, int], scale: float) -> Expr:
    """The largest pixel in each part of regions, (regions, channels, *size); 0 where none is.

    Args:
        c: The node.
        x: The map, of the layout NCHW.
        rois: Rows of an image's number and left, top, right, bottom.
        size: How many parts there are, down and across.
        scale: What corners are multiplied by; halves are rounded away from 0.
    """
    first, rest = (
        c.op("strided_slice", rois, axes=(1,), begin=(b,), end=(e,)) for b, e in ((0, 1), (1, 5))
    )
    scaled = c.op("multiply", rest, c.number(scale, rois))
    corners = c.op("concat", [first, half_away(c, scaled)], axis=1)
    return c.op("vision.roi_pool", x, corners, pooled_size=size, spatial_scale=1.0)
