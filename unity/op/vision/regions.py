"""What is read in boxes of a feature map, and boxes decoded from what is said of anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, TupleType, Type
from unity.op.accumulate import real, rounded, working_dtype
from unity.op.argument import common_dtype, float_tensor, ranked, require_equal
from unity.op.attribute import FLAG, INT, INTS, NUMBER, NUMBERS, TEXT
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_ALIGN = (
    Param("x"),
    Param("rois"),
    attr("pooled_size", INTS),
    attr("spatial_scale", NUMBER),
    attr("sample_ratio", INT, 2),
    attr("aligned", FLAG, False),
    attr("layout", TEXT, "NCHW"),
    attr("mode", TEXT, "avg"),
)
_POOL = (
    Param("x"),
    Param("rois"),
    attr("pooled_size", INTS),
    attr("spatial_scale", NUMBER),
    attr("layout", TEXT, "NCHW"),
)
_BOXES = (
    Param("cls_pred"),
    Param("loc_pred"),
    Param("anchor"),
    attr("clip", FLAG, False),
    attr("threshold", NUMBER, 0.0),
    attr("variances", NUMBERS, (1.0, 1.0, 1.0, 1.0)),
    attr("keep_background", FLAG, True),
    attr("apply_softmax", FLAG, True),
)


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _size(attrs: Attrs) -> tuple[int, int]:
    value = attrs["pooled_size"]
    if isinstance(value, tuple):
        h, w = (n for n in value if isinstance(n, int))
        return h, w
    assert isinstance(value, int)
    return value, value


def _number(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _pooled(call: OpCall) -> Type:
    x, rois = ranked(call, 0, 4), ranked(call, 1, 2)
    kind = common_dtype(call, (float_tensor(call, 0), float_tensor(call, 1)))
    size = call.ints("pooled_size")
    if len(size) not in (1, 2) or any(n < 1 for n in size):
        raise call.error(
            f"'pooled_size' must be one or two positive ints, got {call.attrs['pooled_size']!r}"
        )
    if call.attrs["layout"] != "NCHW":
        raise call.error(f"'layout' must be 'NCHW', got {call.attrs['layout']!r}")
    if not isinstance(x.shape, tuple) or not isinstance(rois.shape, tuple):
        return TensorType(4, kind)
    require_equal(call, rois.shape[1], 5, "the length of a row of 'rois'")
    h, w = (*size, *size)[:2]
    return TensorType((rois.shape[0], x.shape[1], h, w), kind)


# roi_align


def _align_infer(call: OpCall) -> Type:
    if call.attrs["mode"] not in ("avg", "max"):
        raise call.error(f"'mode' must be 'avg' or 'max', got {call.attrs['mode']!r}")
    if call.integer("sample_ratio") < 1:
        raise call.error(
            f"'sample_ratio' must be at least 1, got {call.attrs['sample_ratio']!r}",
            hint="as many points as a box has pixels, Relax's -1, is not implemented",
        )
    return _pooled(call)


def _align_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, rois = args
    assert isinstance(x, te.Tensor)
    assert isinstance(rois, te.Tensor)
    dims, out = known(result)
    wide = working_dtype(out)
    scale, count = imm(_number(attrs, "spatial_scale"), wide), int_attr(attrs, "sample_ratio")
    mean = attrs["mode"] == "avg"
    steps = (te.reduce_axis(count, "down"), te.reduce_axis(count, "right"))

    def number(value: float) -> PrimExpr:
        return imm(value, wide)

    def part(r: PrimExpr, k: int, i: PrimExpr, step: PrimExpr) -> PrimExpr:
        """The coordinate of a point along an axis (0 the lines)."""
        begin, end = (te.cast(rois[r, 2 - k + d], wide) * scale for d in (0, 2))
        extent = end - begin
        if attrs["aligned"] is not True:
            extent = te.max_(extent, number(1))
        cell = extent / number(_size(attrs)[k])
        inner = (te.cast(step, wide) + number(0.5)) * cell / number(count)
        return begin + te.cast(i, wide) * cell + inner

    def element(r: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr | te.Reduce:
        at = [part(r, k, p, s.var) for k, (p, s) in enumerate(zip((i, j), steps, strict=True))]
        seen: list[PrimExpr] = []
        taps: list[list[tuple[PrimExpr, PrimExpr]]] = []
        for k, place in enumerate(at):
            extent = x.shape[2 + k]
            seen += [place >= number(-1), place <= te.cast(extent, wide)]
            inside = te.clamp(place, number(0), te.cast(extent - 1, wide))
            base = te.floor(inside)
            first, t = te.cast(base, INT64), inside - base
            last = te.cast(extent - 1, INT64)
            taps.append([(first, number(1) - t), (te.min_(first + 1, last), t)])
        image = te.clamp(te.cast(rois[r, 0], INT64), 0, x.shape[0] - 1)
        total: PrimExpr = number(0)
        for y, wy in taps[0]:
            for z, wx in taps[1]:
                total = total + te.cast(x[image, c, y, z], wide) * (wy * wx)
        value = te.select(te.all_true(*seen), total, number(0))
        return te.sum(value / number(count * count), steps) if mean else te.max(value, steps)

    made = te.compute(dims, element, "roi_align")
    return made if made.dtype == out else te.compute(dims, lambda *i: te.cast(made[i], out), "cast")


def _align_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, rois = _arrays(args)
    (h, w), count = _size(attrs), int_attr(attrs, "sample_ratio")
    found = np.zeros((len(rois), x.shape[1], h, w))
    for r, roi in enumerate(real(rois)):
        left, top, right, bottom = (roi[1:] * _number(attrs, "spatial_scale")).tolist()
        sides = [bottom - top, right - left]
        if attrs["aligned"] is not True:
            sides = [max(side, 1.0) for side in sides]
        rows = top + (np.arange(h * count) + 0.5) * sides[0] / (h * count)
        columns = left + (np.arange(w * count) + 0.5) * sides[1] / (w * count)
        down, across = (
            _line_weights(at, extent) for at, extent in ((rows, x.shape[2]), (columns, x.shape[3]))
        )
        image = real(x)[int(np.clip(roi[0], 0, x.shape[0] - 1))]
        points = down @ image @ across.T
        cells = points.reshape(x.shape[1], h, count, w, count)
        found[r] = cells.mean((2, 4)) if attrs["mode"] == "avg" else cells.max((2, 4))
    return rounded(found, x)


def _line_weights(at: Array, extent: int) -> Array:
    """Of each point the weights of the pixels along an axis: linear, and 0 outside."""
    made = np.zeros((len(at), extent))
    for k, place in enumerate(at.tolist()):
        if -1 <= place <= extent:
            inside = min(max(place, 0.0), extent - 1.0)
            first = int(inside)
            made[k, first] += 1 - (inside - first)
            made[k, min(first + 1, extent - 1)] += inside - first
    return made


def _rois(s: Sampler, count: int) -> NDArray[np.float32]:
    begin = real(s.array((count, 2), low=-1, high=6))
    size = real(s.array((count, 2), low=0, high=8))
    image = real(s.array((count, 1), "int64", 0, 1))
    return np.concatenate([image, begin, begin + size], axis=1).astype(np.float32)


def _align_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    x = s.array((2, 3, 6, 7))
    return [
        sample(_ALIGN, (x, _rois(s, 4)), pooled_size=(2, 3), spatial_scale=1.0),
        sample(_ALIGN, (x, _rois(s, 3)), pooled_size=2, spatial_scale=0.5, aligned=True),
        sample(
            _ALIGN, (x, _rois(s, 3)), pooled_size=2, spatial_scale=0.7, sample_ratio=3, mode="max"
        ),
    ]


# roi_pool


def _pool_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, rois = args
    assert isinstance(x, te.Tensor)
    assert isinstance(rois, te.Tensor)
    dims, out = known(result)
    wide = working_dtype(out)
    scale = imm(_number(attrs, "spatial_scale"), wide)
    steps = [te.reduce_axis(x.shape[2 + k], name) for k, name in enumerate(("row", "column"))]

    def bounds(r: PrimExpr, k: int, i: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The first line of a cell, and the one behind its last."""
        begin, end = (
            te.floor(te.cast(rois[r, 2 - k + d], wide) * scale + imm(0.5, wide)) for d in (0, 2)
        )
        cell = te.max_(end - begin + imm(1.0, wide), imm(1.0, wide)) / imm(_size(attrs)[k], wide)
        low = te.floor(te.cast(i, wide) * cell) + begin
        high = te.ceil(te.cast(i + 1, wide) * cell) + begin
        extent = te.cast(x.shape[2 + k], wide)
        zero = imm(0.0, wide)
        return (
            te.cast(te.clamp(low, zero, extent), INT64),
            te.cast(te.clamp(high, zero, extent), INT64),
        )

    def largest(r: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> te.Reduce:
        inside: list[PrimExpr] = []
        for k, place in enumerate((i, j)):
            low, high = bounds(r, k, place)
            at = te.cast(steps[k].var, INT64)
            inside += [at >= low, at < high]
        image = te.clamp(te.cast(rois[r, 0], INT64), 0, x.shape[0] - 1)
        value = x[image, c, steps[0].var, steps[1].var]
        return te.max(te.select(te.all_true(*inside), value, te.min_value(out)), steps)

    found = te.compute(dims, largest, "roi_pool")

    def element(r: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        (top, bottom), (left, right) = bounds(r, 0, i), bounds(r, 1, j)
        some = te.all_true(top < bottom, left < right)
        return te.select(some, found[r, c, i, j], imm(0, out))

    return te.compute(dims, element, "roi_pool_some")


def _pool_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, rois = _arrays(args)
    h, w = _size(attrs)
    found = np.zeros((len(rois), x.shape[1], h, w))
    for r, roi in enumerate(rois):
        scaled = roi[1:].astype(np.float32) * np.float32(_number(attrs, "spatial_scale"))
        left, top, right, bottom = np.floor(scaled + np.float32(0.5)).astype(np.int64).tolist()
        image = real(x)[int(np.clip(roi[0], 0, x.shape[0] - 1))]
        sides = np.float32(max(bottom - top + 1, 1)), np.float32(max(right - left + 1, 1))
        cell = sides[0] / np.float32(h), sides[1] / np.float32(w)
        for i in range(h):
            for j in range(w):
                rows = _span(i, cell[0], top, x.shape[2])
                columns = _span(j, cell[1], left, x.shape[3])
                part = image[:, rows, columns]
                found[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return rounded(found, x)


def _span(i: int, cell: np.float32, begin: int, extent: int) -> slice:
    low = int(np.floor(np.float32(i) * cell)) + begin
    high = int(np.ceil(np.float32(i + 1) * cell)) + begin
    return slice(min(max(low, 0), extent), min(max(high, 0), extent))


def _pool_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    x = s.array((2, 3, 6, 7))
    return [
        sample(_POOL, (x, _rois(s, 4)), pooled_size=(2, 3), spatial_scale=1.0),
        sample(_POOL, (x, _rois(s, 3) * np.float32(2)), pooled_size=2, spatial_scale=0.5),
    ]


# multibox_transform_loc


def _boxes_infer(call: OpCall) -> Type:
    scores, moves, anchors = ranked(call, 0, 3), ranked(call, 1, 2), ranked(call, 2, 3)
    kind = common_dtype(call, [float_tensor(call, k) for k in range(3)])
    variances = call.attrs["variances"]
    if not isinstance(variances, tuple) or len(variances) != 4:
        raise call.error(f"'variances' must hold four numbers, got {variances!r}")
    if not isinstance(scores.shape, tuple):
        return TupleType((TensorType(3, kind), TensorType(3, kind)))
    batch, _, count = scores.shape
    if isinstance(moves.shape, tuple):
        require_equal(call, moves.shape[0], batch, "the batch of 'loc_pred'")
        require_equal(call, moves.shape[1], count * 4, "the length of a row of 'loc_pred'")
    if isinstance(anchors.shape, tuple):
        for d, (got, wanted) in enumerate(zip(anchors.shape, (1, count, 4), strict=True)):
            require_equal(call, got, wanted, f"'anchor' along axis {d}")
    return TupleType((TensorType((batch, count, 4), kind), TensorType(scores.shape, kind)))


def _variances(attrs: Attrs) -> tuple[float, ...]:
    """The scales of what moves x and y, and of what grows width and height."""
    found = attrs["variances"]
    assert isinstance(found, tuple)
    return tuple(float(v) for v in found if isinstance(v, int | float))


def _boxes_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    scores, moves, anchors = args
    batch, classes, count = e.shape_of(scores)
    moves = e.op("reshape", moves, (batch, count, 4))
    variances = _variances(attrs)

    def column(rows: Expr, k: int) -> Expr:
        return e.op("take", rows, Constant(np.array(k, np.int64)), axis=2)

    def scaled(x: Expr, factor: float) -> Expr:
        return e.op("multiply", x, e.number(factor, x))

    left, top, right, bottom = (column(anchors, k) for k in range(4))
    corners: list[tuple[Expr, Expr]] = []
    for first, last, k in ((top, bottom, 1), (left, right, 0)):
        size, middle = e.op("subtract", last, first), scaled(e.op("add", first, last), 0.5)
        moved = scaled(column(moves, k), variances[k])
        center = e.op("add", e.op("multiply", moved, size), middle)
        grown = e.op("exp", scaled(column(moves, k + 2), variances[k + 2]))
        half = scaled(e.op("multiply", grown, size), 0.5)
        corners.append((e.op("subtract", center, half), e.op("add", center, half)))
    (y1, y2), (x1, x2) = corners
    boxes = e.op("stack", (y1, x1, y2, x2), axis=2)
    if attrs["clip"] is True:
        boxes = e.op("clip", boxes, min=0.0, max=1.0)
    if attrs["apply_softmax"] is True:
        scores = e.op("nn.softmax", scores, axis=1)
    limit = e.number(_number(attrs, "threshold"), scores)
    scores = e.op("where", e.op("less", scores, limit), e.number(0, scores), scores)
    if attrs["keep_background"] is not True:
        place = e.op("reshape", e.op("arange", 0, classes, 1, dtype=INT64), (1, classes, 1))
        first = e.op("equal", place, Constant(np.array(0, np.int64)))
        scores = e.op("where", first, e.number(0, scores), scores)
    return Tuple((boxes, scores))


def _boxes_reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    scores, moves, anchors = _arrays(args)
    vx, vy, vw, vh = _variances(attrs)
    left, top, right, bottom = np.moveaxis(real(anchors)[0], -1, 0)
    dx, dy, dw, dh = np.moveaxis(real(moves).reshape(len(scores), -1, 4), -1, 0)
    x = dx * vx * (right - left) + (left + right) / 2
    y = dy * vy * (bottom - top) + (top + bottom) / 2
    w = np.exp(dw * vw) * (right - left) / 2
    h = np.exp(dh * vh) * (bottom - top) / 2
    boxes = np.stack([y - h, x - w, y + h, x + w], axis=-1)
    if attrs["clip"] is True:
        boxes = np.clip(boxes, 0, 1)
    shown = real(scores)
    if attrs["apply_softmax"] is True:
        powers = np.exp(shown - shown.max(1, keepdims=True))
        shown = powers / powers.sum(1, keepdims=True)
    shown = np.where(shown < _number(attrs, "threshold"), 0.0, shown)
    if attrs["keep_background"] is not True:
        shown[:, 0] = 0
    return rounded(boxes, scores), rounded(shown, scores)


def _boxes_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    scores, moves = s.array((2, 3, 5)), s.array((2, 20), low=-1, high=1)
    anchors = s.array((1, 5, 4), low=0, high=1)
    return [
        sample(_BOXES, (scores, moves, anchors)),
        sample(
            _BOXES,
            (scores, moves, anchors),
            clip=True,
            variances=(0.1, 0.1, 0.2, 0.2),
            keep_background=False,
        ),
        sample(_BOXES, (scores, moves, anchors), apply_softmax=False, threshold=0.31),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "vision.roi_align",
        _ALIGN,
        _align_infer,
        _align_reference,
        """Cells of boxes of a feature map ``(n, c, h, w)``, each the mean of points within it.

        Rows of `rois` ``(r, 5)`` are an image's number and left, top, right, bottom, which are
        multiplied by `spatial_scale`; gives ``(r, c, *pooled_size)``. A cell has `sample_ratio`
        squared points, read between pixels; their largest with `mode` "max". Without `aligned`
        boxes are one pixel at least (R.vision.roi_align, whose `sample_ratio` -1 is not
        implemented).
        """,
        compute=_align_compute,
        pattern="opaque",
        samples=_align_samples,
        tolerance=1e-4,
    ),
    OpDef(
        "vision.roi_pool",
        _POOL,
        _pooled,
        _pool_reference,
        """Cells of boxes of a feature map, each the largest pixel in it, as `vision.roi_align`.

        Of a map ``(n, c, h, w)`` and `rois` ``(r, 5)``, multiplied by `spatial_scale`, gives
        ``(r, c, *pooled_size)``. Boxes are rounded to whole pixels; a cell that has none is 0
        (R.vision.roi_pool, ONNX MaxRoiPool).
        """,
        compute=_pool_compute,
        pattern="opaque",
        samples=_pool_samples,
    ),
    OpDef(
        "vision.multibox_transform_loc",
        _BOXES,
        _boxes_infer,
        _boxes_reference,
        """Boxes ``(n, k, 4)`` as top, left, bottom, right, and scores, of k anchors.

        `loc_pred` ``(n, 4 k)`` moves the centers of anchors ``(1, k, 4)`` (left, top, right,
        bottom) by x and y and scales them by w and h, each by its variance. Scores ``(n, classes,
        k)`` go through softmax, and those below `threshold` are 0, class 0 as well without
        `keep_background` (R.vision.multibox_transform_loc).
        """,
        expand=_boxes_expand,
        samples=_boxes_samples,
    ),
)
