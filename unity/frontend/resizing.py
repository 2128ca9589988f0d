"""Resizing axis by axis: a gather or a weighted sum of gathers.

Positions are computed in float32, as the ONNX runtime does. At known extents they are constants
(`resize_positions.py`); an unknown extent has them computed when the model runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, floordiv
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from .emission import Emission
from .resize_positions import COORDINATES, NEAREST, Axis, Method

LARGEST = 1 << 24
"""An extent beyond this is a damaged model; its positions are computed during the import."""
SIMPLEST = 1024
"""The largest denominator that a scale of an unknown extent is taken for a fraction of."""
CHECKED = 1 << 12
"""Up to this extent such a fraction gives the extents that the scale itself gives."""


def resized(
    node: Emission,
    x: Expr,
    method: Method,
    over: Sequence[int],
    sizes: Sequence[Dim] | None,
    scales: Sequence[float] | None,
) -> Expr:
    """`x` resized along the axes `over` to sizes or by scales."""
    if method.mode not in ("nearest", "linear", "cubic"):
        raise node.gap(f"mode {method.mode!r}")
    if method.coordinates == "tf_crop_and_resize":
        raise node.gap("tf_crop_and_resize")
    if method.coordinates not in COORDINATES:
        raise UnityError(f"the coordinates {method.coordinates!r} are not known")
    if method.nearest not in NEAREST:
        raise node.gap(f"nearest_mode {method.nearest!r}")
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
    for i, axis in _grown_last(shape, over, sizes, scales):
        extent = shape[axis]
        scale = None if scales is None else scales[i]
        size = None if sizes is None else sizes[i]
        if scale == 1 or size == extent:
            continue
        x = _axis(node, method, x, axis, scale, size)
    return x if node.dtype_of(x) == kind else node.op("astype", x, dtype=kind)


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


def _axis(
    node: Emission, method: Method, x: Expr, axis: int, scale: float | None, size: Dim | None
) -> Expr:
    old = node.shape_of(x)[axis]
    if old == 0 or (scale is not None and scale <= 0):
        raise UnityError(f"axis {axis} of extent {old} can't be resized by {scale or size}")
    new = size if size is not None else _extent(node, old, scale or 1.0)
    if isinstance(new, int) and not 0 < new <= LARGEST:
        raise UnityError(f"axis {axis} of extent {old} can't be resized to {new}")
    over = Axis(node, method, old, new, scale)
    if method.mode == "nearest":
        count = over.repetition()
        if count is not None:
            return node.op("repeat", x, repeats=count, axis=axis)
        return node.op("take", x, over.nearest(), axis=axis)
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
