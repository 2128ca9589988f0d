"""Resizing axis by axis: a gather or a weighted sum of gathers.

Positions are computed in float32, as the ONNX runtime does. At known extents they are constants
(`resize_positions.py`); an unknown extent has them computed when the model runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, floordiv
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from .emission import Emission
from .resize_positions import COORDINATES, CROPPED, NEAREST, Axis, Method
from .run_time.vectors import bound, ints_of, vector_of

LARGEST = 1 << 24
"""An extent beyond this is a damaged model; its positions are computed during the import."""
SIMPLEST = 1024
"""The largest denominator that a scale of an unknown extent is taken for a fraction of."""
CHECKED = 1 << 12
"""Up to this extent such a fraction gives the extents that the scale itself gives."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What axes are to become.

    Attributes:
        sizes: Their extents, if those are given.
        scales: Their scales, if those are given and known.
        late: Their scales as a float32 vector, if they are known only at run time, or are not the
            quotients of the sizes.
        region: Where the part that is resized begins for each axis, then where it ends, as a
            float32 vector; for tf_crop_and_resize.
    """

    sizes: Sequence[Dim] | None = None
    scales: Sequence[float] | None = None
    late: Expr | None = None
    region: Expr | None = None


def resized(node: Emission, x: Expr, method: Method, over: Sequence[int], wanted: Wanted) -> Expr:
    """`x` resized along the axes `over`."""
    sizes, scales = wanted.sizes, wanted.scales
    if method.mode not in ("nearest", "linear", "cubic"):
        raise node.gap(f"mode {method.mode!r}")
    if method.coordinates not in (*COORDINATES, CROPPED):
        raise UnityError(f"the coordinates {method.coordinates!r} are not known")
    if method.coordinates == CROPPED and (wanted.region is None or sizes is None):
        raise node.gap("tf_crop_and_resize by scales")
    if method.nearest not in NEAREST:
        raise node.gap(f"nearest_mode {method.nearest!r}")
    if sizes is None and wanted.late is not None:
        sizes = scaled_extents(node, x, over, wanted.late)
    given = sizes if sizes is not None else scales
    assert given is not None
    if len(given) != len(over):
        raise UnityError(f"{len(over)} axes take as many scales or sizes, got {len(given)}")
    shape = node.shape_of(x)
    kind = node.dtype_of(x)
    summed = method.mode != "nearest"
    if summed and kind.is_int and method.mode == "cubic":
        raise node.gap(f"mode 'cubic' of {kind}")  # sums may lie outside of what it holds
    if summed and (kind.bits < 32 or kind.is_int):
        x = node.op("astype", x, dtype=FLOAT32)
    beyond: list[tuple[int, Expr]] = []
    for i, axis in _grown_last(shape, over, sizes, scales):
        extent = shape[axis]
        scale = None if scales is None else scales[i]
        size = None if sizes is None else sizes[i]
        late, region = _element(node, wanted.late, i), _region(node, wanted.region, i, len(over))
        if region is None and (scale == 1 or (size == extent and late is None)):
            continue
        new = size if size is not None else _extent(node, extent, scale or 1.0)
        _require_possible(axis, extent, new, scale, size)
        along = Axis(node, method, extent, new, scale, late, region)
        if region is not None:
            beyond.append((axis, along.outside()))
        x = _axis(node, method, x, axis, along)
    for axis, outside in beyond:
        line = [1] * len(shape)
        line[axis] = -1
        x = node.op(
            "where",
            node.op("reshape", outside, tuple(line)),
            node.number(method.extrapolation, x),
            x,
        )
    return x if node.dtype_of(x) == kind else node.op("astype", x, dtype=kind)


def scaled_extents(node: Emission, x: Expr, over: Sequence[int], scales: Expr) -> Sequence[Dim]:
    """The extents of axes scaled by a float32 vector: rounded down, of products in float32."""
    extents = node.cast(vector_of(node, [node.shape_of(x)[a] for a in over]).value, FLOAT32)
    whole = node.op("floor", node.op("multiply", extents, scales))
    return bound(node, ints_of(node, whole), "size", least=1)


def _element(node: Emission, vector: Expr | None, index: int) -> Expr | None:
    """One element of a vector, as a vector."""
    if vector is None:
        return None
    return node.op("strided_slice", vector, axes=(0,), begin=(index,), end=(index + 1,))


def _region(
    node: Emission, region: Expr | None, index: int, count: int
) -> tuple[Expr, Expr] | None:
    first, end = _element(node, region, index), _element(node, region, index + count)
    return None if first is None or end is None else (first, end)


def _require_possible(axis: int, old: Dim, new: Dim, scale: float | None, size: Dim | None) -> None:
    if old == 0 or (scale is not None and scale <= 0):
        raise UnityError(f"axis {axis} of extent {old} can't be resized by {scale or size}")
    if isinstance(new, int) and not 0 < new <= LARGEST:
        raise UnityError(f"axis {axis} of extent {old} can't be resized to {new}")


def _grown_last(
    shape: Sequence[Dim],
    over: Sequence[int],
    sizes: Sequence[Dim] | None,
    scales: Sequence[float] | None,
) -> list[tuple[int, int]]:
    """Indices of `over` with their axes, such that little is read element by element.

    The innermost axis goes first, unless others shrink: along the others whole rows are added up.
    """

    def grows(i: int, axis: int) -> bool:
        if scales is not None:
            return scales[i] > 1
        size, old = (0 if sizes is None else sizes[i]), shape[axis]
        return not isinstance(size, int) or not isinstance(old, int) or size > old

    inner = len(shape) - 1

    def rank(at: tuple[int, int]) -> int:
        i, axis = at
        return 0 if axis == inner else 1 if grows(i, axis) else -1

    return sorted(enumerate(over), key=rank)


def _axis(node: Emission, method: Method, x: Expr, axis: int, over: Axis) -> Expr:
    if method.mode == "nearest":
        count = over.repetition()
        if count is not None:
            return node.op("repeat", x, repeats=count, axis=axis)
        return node.op("take", x, over.nearest(), axis=axis)
    if method.antialias:
        return _filtered(node, x, axis, over)
    new = over.new
    total: Expr | None = None
    trailing = (1,) * (len(node.shape_of(x)) - axis - 1)
    for index, weight in over.taps():
        if isinstance(weight, Constant) and not np.any(weight.data):
            continue
        kind = node.dtype_of(x)
        scaled = node.op("reshape", node.op("astype", weight, dtype=kind), (new, *trailing))
        part = node.op("multiply", node.op("take", x, index, axis=axis), scaled)
        total = part if total is None else node.op("add", total, part)
    assert total is not None
    return total


def _filtered(node: Emission, x: Expr, axis: int, over: Axis) -> Expr:
    """An axis as a product with a matrix of weights."""
    index, weights = over.filtered()
    last = len(node.shape_of(x)) - 1
    order = (*(a for a in range(last + 1) if a != axis), axis)
    back = (*range(axis), last, *range(axis, last))
    taps = node.op("permute_dims", node.op("take", x, index, axis=axis), axes=order)
    matrix = node.op("permute_dims", node.cast(weights, node.dtype_of(x)), axes=(1, 0))
    return node.op("permute_dims", node.op("matmul", taps, matrix), axes=back)


def _extent(node: Emission, old: Dim, scale: float) -> Dim:
    """What an extent becomes: ``floor(old * scale)``, of a product rounded to float32.

    Of an unknown one it is a fraction's: the simplest near the scale, or the scale exactly, if that
    is the same at every extent up to `CHECKED`.
    """
    if isinstance(old, int):
        return int(np.floor(np.float32(old) * np.float32(scale)))
    olds = np.arange(CHECKED, dtype=np.int64)
    wanted = np.floor(olds.astype(np.float32) * np.float32(scale))
    for ratio in (Fraction(scale).limit_denominator(SIMPLEST), Fraction(scale)):
        over, under = ratio.numerator, ratio.denominator
        small = max(over, under) < 1 << 40
        if small and np.array_equal(olds * over // under, wanted):
            return floordiv(old * over, under)
    raise node.symbolic_gap(f"the extent {old} scaled by {scale}, which is no simple fraction", old)
