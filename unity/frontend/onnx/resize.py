"""Resize and its forerunner Upsample: axis by axis, a gather or a weighted sum of gathers.

Where the extent is a symbol, only repeating each element a whole number of times is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.dims import Dim, floordiv
from unity.ir.graph import Constant, Expr

from .node import Converter, Node, Value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PROBE = 6
"""A small extent on which a repetition is recognized; positions are periodic in the input."""

LARGEST = 1 << 24
"""An extent beyond this is a damaged model; its positions are computed during the import."""


@dataclass(frozen=True, slots=True)
class Method:
    """How positions of the output are found in the input, and what is read there."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool

    def positions(self, old: int, new: int, scale: float) -> Floats:
        """Where each output element lies among the input's."""
        x = np.arange(new, dtype=np.float64)
        match self.coordinates:
            case "half_pixel":
                return (x + 0.5) / scale - 0.5
            case "half_pixel_symmetric":
                offset = old / 2 * (1 - new / (scale * old))
                return offset + (x + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return (x + 0.5) / scale - 0.5 if new > 1 else x * 0
            case "align_corners":
                return x * (old - 1) / (new - 1) if new > 1 else x * 0
            case "asymmetric":
                return x / scale
            case "tf_half_pixel_for_nn":
                return (x + 0.5) / scale
            case _:
                raise UnityError(f"the coordinates {self.coordinates!r} are not known")

    def indices(self, old: int, new: int, scale: float) -> Ints:
        """The nearest element to each position."""
        at = self.positions(old, new, scale)
        rounded = _ROUNDINGS[self.nearest](at)
        return np.clip(rounded, 0, old - 1).astype(np.int64)

    def taps(self, old: int, new: int, scale: float) -> list[tuple[Ints, Floats]]:
        """The elements each position is a weighted sum of: indices and weights."""
        at = self.positions(old, new, scale)
        base = np.floor(at)
        t = at - base
        if self.mode == "linear":
            weights = [1 - t, t]
            first = 0
        else:
            weights, first = _cubic_weights(t, self.cubic_a), -1
        found: list[tuple[Ints, Floats]] = []
        for i, weight in enumerate(weights):
            index = base + first + i
            if self.exclude_outside:
                weight = np.where((index < 0) | (index >= old), 0, weight)
            found.append((np.clip(index, 0, old - 1).astype(np.int64), weight))
        total = sum(w for _, w in found)
        return [(i, w / total) for i, w in found] if self.exclude_outside else found


_ROUNDINGS: dict[str, Callable[[Floats], Floats]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _cubic_weights(t: Floats, a: float) -> list[Floats]:
    """Keys' cubic convolution (1981) at distances 1 + t, t, 1 - t, 2 - t."""

    def near(d: Floats) -> Floats:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1

    def far(d: Floats) -> Floats:
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a

    return [far(1 + t), near(t), near(1 - t), far(2 - t)]


def _resize(node: Node) -> Value:
    if node.int_of("antialias", 0):
        raise node.gap("antialias")
    if node.text_of("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.gap("keep_aspect_ratio_policy")
    early = node.version < 11
    method = Method(
        node.text_of("mode", "nearest"),
        node.text_of("coordinate_transformation_mode", "asymmetric" if early else "half_pixel"),
        node.text_of("nearest_mode", "floor" if early else "round_prefer_floor"),
        node.float_of("cubic_coeff_a", -0.75),
        bool(node.int_of("exclude_outside", 0)),
    )
    node.ignore("extrapolation_value")  # only for tf_crop_and_resize, which is refused
    rank = node.rank(0)
    axes = node.ints_of("axes")
    over = tuple(range(rank)) if axes is None else tuple(node.axis(a, rank) for a in axes)
    scales_at = 1 if early else 2
    sizes = node.dims(3, "sizes") if node.has(3) else ()
    if sizes:
        return _apply(node, method, over, sizes, None)
    scales = _scales(node, scales_at)
    return _apply(node, method, over, None, scales)


def _upsample(node: Node) -> Value:
    mode = node.text_of("mode", "nearest")
    method = Method(mode, "asymmetric", "floor", -0.75, False)
    given = node.attribute("scales")
    scales = tuple(float(s) for s in given.floats) if given is not None else _scales(node, 1)
    return _apply(node, method, tuple(range(node.rank(0))), None, scales)


def _scales(node: Node, index: int) -> tuple[float, ...]:
    array = node.constant(index) if node.has(index) else None
    if array is None:
        raise node.gap("scales known only at run time")
    return tuple(float(s) for s in array.astype(np.float64).reshape(-1))


def _apply(
    node: Node,
    method: Method,
    over: Sequence[int],
    sizes: Sequence[Dim] | None,
    scales: Sequence[float] | None,
) -> Value:
    if method.mode not in ("nearest", "linear", "cubic"):
        raise node.gap(f"mode {method.mode!r}")
    if method.coordinates == "tf_crop_and_resize":
        raise node.gap("tf_crop_and_resize")
    if method.nearest not in _ROUNDINGS:
        raise node.gap(f"nearest_mode {method.nearest!r}")
    given = sizes if sizes is not None else scales
    assert given is not None
    if len(given) != len(over):
        raise UnityError(f"{len(over)} axes take as many scales or sizes, got {len(given)}")
    x = node.tensor(0)
    shape = node.shape_of(x)
    for i, axis in _grown_last(shape, over, sizes, scales):
        extent = shape[axis]
        scale = None if scales is None else scales[i]
        size = None if sizes is None else sizes[i]
        if scale == 1 or size == extent:
            continue
        x = _axis(node, method, x, axis, scale, size)
    return x


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
    node: Node, method: Method, x: Expr, axis: int, scale: float | None, size: Dim | None
) -> Expr:
    old = node.shape_of(x)[axis]
    if not isinstance(old, int) or (size is not None and not isinstance(size, int)):
        return _repeated(node, method, x, axis, old, scale, size)
    if old == 0 or (scale is not None and scale <= 0):
        raise UnityError(f"axis {axis} of extent {old} can't be resized by {scale or size}")
    new = size if isinstance(size, int) else math.floor(old * (scale or 1))
    if not 0 < new <= LARGEST:
        raise UnityError(f"axis {axis} of extent {old} can't be resized to {new}")
    ratio = scale if scale is not None else new / old
    if method.mode == "nearest":
        indices = method.indices(old, new, ratio)
        if np.array_equal(indices, np.repeat(np.arange(old), new // old)):
            return node.op("repeat", x, repeats=new // old, axis=axis)
        return node.op("take", x, Constant(indices), axis=axis)
    total: Expr | None = None
    trailing = (1,) * (len(node.shape_of(x)) - axis - 1)
    for index, weight in method.taps(old, new, ratio):
        if not np.any(weight):
            continue
        kind = node.dtype_of(x).numpy
        scaled = Constant(weight.astype(kind).reshape(-1, *trailing))
        part = node.op("multiply", node.op("take", x, Constant(index), axis=axis), scaled)
        total = part if total is None else node.op("add", total, part)
    assert total is not None
    return total


def _repeated(
    node: Node,
    method: Method,
    x: Expr,
    axis: int,
    old: Dim,
    scale: float | None,
    size: Dim | None,
) -> Expr:
    factor = scale if size is None else floordiv(size, old)
    whole = isinstance(factor, int | float) and factor == int(factor) >= 1
    if not whole or method.mode != "nearest":
        raise node.symbolic_gap(f"the symbolic extent {old} resized other than by repetition", old)
    count = int(factor) if isinstance(factor, int | float) else 1
    probe = method.indices(PROBE, PROBE * count, float(count))
    if not np.array_equal(probe, np.repeat(np.arange(PROBE), count)):
        raise node.symbolic_gap(f"the symbolic extent {old} resized other than by repetition", old)
    return node.op("repeat", x, repeats=count, axis=axis)


CONVERTERS: dict[str, Converter] = {"Resize": _resize, "Upsample": _upsample}
