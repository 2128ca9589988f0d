"""Images sampled at the points of a grid, and grids made by affine maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT32, INT64, Array
from unity.ir.prim_expr import Compare, PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Real, real, rounded, working_dtype
from unity.op.argument import common_dtype, float_tensor, ranked, require_equal, shape, type_text
from unity.op.attribute import FLAG, TEXT
from unity.op.indexing.gather import safe_read
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

_AFFINE = (Param("x"), Param("size", "shape"), attr("align_corners", FLAG, True))
_SAMPLE = (
    Param("x"),
    Param("grid"),
    attr("method", TEXT, "bilinear"),
    attr("layout", TEXT, "NCHW"),
    attr("padding_mode", TEXT, "zeros"),
    attr("align_corners", FLAG, False),
)
_TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}
"""Pixels along an axis that each method reads."""
_PADDINGS = ("zeros", "border", "reflection")
_ALPHA = -0.75
"""Of cubic interpolation, as torch has it."""


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


# affine_grid


def _affine_infer(call: OpCall) -> Type:
    x, size = ranked(call, 0, 3), shape(call, 1).dims
    float_tensor(call, 0)
    if not isinstance(size, tuple):
        return TensorType(None, x.dtype)
    rank = len(size)
    if rank not in (2, 3):
        raise call.error(f"'size' must hold 2 or 3 dims, got {rank}")
    if not isinstance(x.shape, tuple):
        return TensorType(rank + 2, x.dtype)
    require_equal(call, x.shape[1], rank, "the rows of 'x'")
    require_equal(call, x.shape[2], rank + 1, "the columns of 'x'")
    return TensorType((x.shape[0], rank, *size), x.dtype)


def _affine_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x = args[0]
    assert isinstance(x, te.Tensor)
    dims, out = known(result)
    wide = working_dtype(out)
    sized, rank = te.placeholder(dims, out).shape[2:], len(dims) - 2

    def place(i: PrimExpr, extent: PrimExpr) -> PrimExpr:
        at, one = te.cast(i, wide), imm(1.0, wide)
        if attrs["align_corners"] is True:
            steps = te.max_(extent - 1, imm(1, extent.dtype))
            return at * (imm(2.0, wide) / te.cast(steps, wide)) - one
        return (at * imm(2.0, wide) + one) / te.cast(extent, wide) - one

    def element(n: PrimExpr, d: PrimExpr, *i: PrimExpr) -> PrimExpr:
        total = te.cast(x[n, d, rank], wide)
        for k in range(rank):
            total = total + te.cast(x[n, d, rank - 1 - k], wide) * place(i[k], sized[k])
        return te.cast(total, out)

    return te.compute(dims, element, "affine_grid")


def _affine_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, size = args
    assert isinstance(x, np.ndarray)
    sizes = [n for n in size if isinstance(n, int)]
    if attrs["align_corners"] is True:
        rows = [np.linspace(-1, 1, n) for n in sizes]
    else:
        rows = [(2 * np.arange(n) + 1) / n - 1 for n in sizes]
    points = np.stack([*reversed(np.meshgrid(*rows, indexing="ij")), np.ones(sizes)])
    return rounded(np.tensordot(real(x), points, axes=(2, 0)), x)


def _affine_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_AFFINE, (s.array((2, 2, 3)), (3, 5))),
        sample(_AFFINE, (s.array((2, 2, 3), "float64"), (1, 4)), align_corners=False),
        sample(_AFFINE, (s.array((1, 3, 4)), (2, 3, 4))),
        sample(_AFFINE, (s.array((2, 2, 3)), (1, 3))),
    ]


# grid_sample


def _sample_infer(call: OpCall) -> Type:
    x, grid = ranked(call, 0, 4), ranked(call, 1, 4)
    kind = common_dtype(call, (float_tensor(call, 0), float_tensor(call, 1)))
    for name, choices in (
        ("method", (*_TAPS,)),
        ("layout", ("NCHW",)),
        ("padding_mode", _PADDINGS),
    ):
        if call.attrs[name] not in choices:
            raise call.error(
                f"{name!r} must be one of {', '.join(map(repr, choices))}, got {call.attrs[name]!r}"
            )
    if not isinstance(x.shape, tuple) or not isinstance(grid.shape, tuple):
        return TensorType(4, kind)
    require_equal(call, grid.shape[0], x.shape[0], "the batch of 'grid'")
    require_equal(call, grid.shape[1], 2, "the coordinates of 'grid'")
    if any(d == 0 for d in x.shape[2:]):
        raise call.error(f"nothing can be sampled from {type_text(x)}")
    return TensorType((*x.shape[:2], *grid.shape[2:]), kind)


def _sample_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, grid = args
    assert isinstance(x, te.Tensor)
    assert isinstance(grid, te.Tensor)
    dims, out = known(result)
    wide, method = working_dtype(out), attrs["method"]
    taps = _TAPS[str(method)]
    places = (dims[0], *dims[2:])

    def number(value: float) -> PrimExpr:
        return imm(value, wide)

    def coordinate(value: PrimExpr, extent: PrimExpr) -> PrimExpr:
        size = te.cast(extent, wide)
        if attrs["align_corners"] is True:
            return (value + number(1)) * number(0.5) * (size - number(1))
        return ((value + number(1)) * size - number(1)) * number(0.5)

    def folded(at: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """A coordinate reflected at the border until it lies inside."""
        size = te.cast(extent, wide)
        corners = attrs["align_corners"] is True
        low = number(0) if corners else number(-0.5)
        span = size - number(1) if corners else size
        off = te.abs_(at - low)
        safe = te.max_(span, number(1e-9))
        turns = te.floor(off / safe)
        rest = off - turns * safe
        odd = turns - te.floor(turns * number(0.5)) * number(2)
        back = te.select(odd > number(0.5), span - rest, rest) + low
        return te.select(span > number(0), back, number(0))

    def inside(at: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """The nearest coordinate of a pixel; of NaN the first."""
        return te.fmin(te.fmax(at, number(0)), te.cast(extent - 1, wide))

    def moved(at: PrimExpr, extent: PrimExpr) -> PrimExpr:
        if attrs["padding_mode"] == "reflection":
            at = folded(at, extent)
        return at if attrs["padding_mode"] == "zeros" else inside(at, extent)

    def position(value: PrimExpr, k: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """The pixel along an axis that tap `k` reads; what is beyond an end is next to it."""
        at = coordinate(value, extent)
        if method == "nearest":
            at = te.round_(moved(at, extent))
        elif method == "bilinear":
            at = te.floor(moved(at, extent)) + te.cast(k, wide)
        else:
            at = moved(te.floor(at) + te.cast(k - 1, wide), extent)
        return te.cast(te.fmin(te.fmax(at, number(-1)), te.cast(extent, wide)), INT32)

    def weight(value: PrimExpr, k: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """What tap `k` of an axis counts, by how far from it the coordinate is."""
        at = coordinate(value, extent)
        if method == "bilinear":
            at = moved(at, extent)
            rest = at - te.floor(at)
            return te.select(k > 0, rest, number(1) - rest)
        away, a = te.abs_(at - te.floor(at) - te.cast(k - 1, wide)), _ALPHA
        near = (away * number(a + 2) - number(a + 3)) * away * away + number(1)
        far = ((away * number(a) - number(5 * a)) * away + number(8 * a)) * away - number(4 * a)
        return te.select(away <= number(1), near, far)

    def stage(of: Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr], axis: int) -> te.Tensor:
        """Positions or weights of all taps along an axis: the same for every channel."""
        return te.compute(
            (places[0], taps, *places[1:]),
            lambda n, k, i, j: of(te.cast(grid[n, 1 - axis, i, j], wide), k, x.shape[2 + axis]),
            f"{of.__name__}_{'yx'[axis]}",
        )

    ys, xs = stage(position, 0), stage(position, 1)
    weights = None if taps == 1 else (stage(weight, 0), stage(weight, 1))

    def element(n: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        total: PrimExpr = number(0)
        for k, m in product(range(taps), repeat=2):
            at = [te.cast(ys[n, k, i, j], INT64), te.cast(xs[n, m, i, j], INT64)]
            held = [te.min_(te.max_(v, 0), x.shape[2 + a] - 1) for a, v in enumerate(at)]
            value: PrimExpr = te.cast(safe_read(x, (n, c, *held), (2, 3)), wide)
            if attrs["padding_mode"] == "zeros":
                seen = te.all_true(*(Compare("eq", v, h) for v, h in zip(at, held, strict=True)))
                value = te.select(seen, value, number(0))
            if weights is not None:  # those of NaN are NaN, outside as well
                value = value * (weights[0][n, k, i, j] * weights[1][n, m, i, j])
            total = total + value
        return te.cast(total, out)

    return te.compute(dims, element, "grid_sample")


def _folded(at: Real, low: float, high: float) -> Real:
    span = high - low
    if span <= 0:
        return np.zeros_like(at)
    off = np.abs(at - low)
    turns, rest = np.floor(off / span), np.mod(off, span)
    return np.where(turns % 2 == 1, span - rest, rest) + low


def _inside(at: Real, extent: int) -> Real:
    """The nearest coordinate of a pixel; of NaN the first."""
    return np.fmin(np.fmax(at, 0), extent - 1)


def _sample_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, grid = _arrays(args)
    corners, extents = attrs["align_corners"] is True, x.shape[2:]
    found = np.zeros((*x.shape[:2], *grid.shape[2:]))

    def moved(at: Real, extent: int) -> Real:
        if attrs["padding_mode"] == "reflection":
            at = _folded(at, 0, extent - 1) if corners else _folded(at, -0.5, extent - 0.5)
        return at if attrs["padding_mode"] == "zeros" else _inside(at, extent)

    axes: list[list[tuple[Real, Real]]] = []
    for k, extent in enumerate(extents):
        value = real(grid[:, 1 - k])
        at = (value + 1) / 2 * (extent - 1) if corners else ((value + 1) * extent - 1) / 2
        if attrs["method"] == "nearest":
            axes.append([(np.rint(moved(at, extent)), np.ones_like(at))])
            continue
        at = moved(at, extent) if attrs["method"] == "bilinear" else at
        base, t = np.floor(at), at - np.floor(at)
        if attrs["method"] == "bilinear":
            axes.append([(base, 1 - t), (base + 1, t)])
            continue
        a = _ALPHA
        near = [((a + 2) * u - (a + 3)) * u * u + 1 for u in (t, 1 - t)]
        far = [((a * u - 5 * a) * u + 8 * a) * u - 4 * a for u in (1 + t, 2 - t)]
        weights = [far[0], near[0], near[1], far[1]]
        axes.append([(moved(base + k - 1, extent), w) for k, w in enumerate(weights)])
    batch = np.arange(x.shape[0])[:, None, None]
    for (y, wy), (z, wx) in product(*axes):
        seen = (y >= 0) & (y <= extents[0] - 1) & (z >= 0) & (z <= extents[1] - 1)
        rows, columns = (
            _inside(p, n).astype(np.int64) for p, n in ((y, extents[0]), (z, extents[1]))
        )
        picked = np.moveaxis(real(x)[batch, :, rows, columns], -1, 1)
        found += np.where(seen[:, None], picked, 0.0) * (wy * wx)[:, None]
    return rounded(found, x)


def _sample_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    x, grid = s.array((2, 3, 4, 5)), s.array((2, 2, 3, 2), low=-1.6, high=1.6)
    return [
        sample(_SAMPLE, (x, grid)),
        sample(_SAMPLE, (x, grid), padding_mode="border", align_corners=True),
        sample(_SAMPLE, (x, grid), padding_mode="reflection"),
        sample(_SAMPLE, (x, grid), padding_mode="reflection", align_corners=True),
        sample(_SAMPLE, (x, grid), method="nearest"),
        sample(_SAMPLE, (x, grid), method="bicubic", padding_mode="border"),
        sample(_SAMPLE, (x, grid), method="bicubic"),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "image.affine_grid",
        _AFFINE,
        _affine_infer,
        _affine_reference,
        """Points of a grid, each mapped by an affine matrix: what `image.grid_sample` takes.

        Of matrices ``(n, 2, 3)`` and a size ``(h, w)`` points ``(n, 2, h, w)``, x before y; of
        ``(n, 3, 4)`` and ``(d, h, w)`` points ``(n, 3, d, h, w)``. -1 and 1 are the outermost
        pixels' centers with `align_corners`, else their outer edges (R.image.affine_grid; torch
        and ONNX AffineGrid have the coordinates last).
        """,
        compute=_affine_compute,
        pattern="opaque",
        samples=_affine_samples,
    ),
    OpDef(
        "image.grid_sample",
        _SAMPLE,
        _sample_infer,
        _sample_reference,
        """Pixels of images ``(n, c, h, w)`` at the points of a grid, ``(n, 2, h2, w2)``.

        Points are x, y, from -1 to 1 as in `image.affine_grid`; `method` is bilinear, nearest or
        bicubic, and outside are zeros, the border's pixels, or the image in a mirror: zeros,
        border, reflection (R.image.grid_sample; torch and ONNX GridSample have the coordinates
        last). A coordinate that is NaN gives, as in torch, NaN where pixels are weighed, and by the
        first pixel where coordinates are moved into the image or the nearest one is taken.
        """,
        compute=_sample_compute,
        pattern="opaque",
        samples=_sample_samples,
        tolerance=1e-4,
    ),
)
