"""Detections of several classes, each on its own: those that no better one covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, as_dim, equal, product
from unity.ir.dtype import BOOL, INT32, INT64, Array
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import TensorType, TupleType, Type
from unity.op.accumulate import real
from unity.op.argument import (
    common_dtype,
    float_tensor,
    has,
    int_tensor,
    ranked,
    require_equal,
    tensor,
    type_text,
)
from unity.op.attribute import FLAG, TEXT
from unity.op.registry import (
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    flag_attr,
)
from unity.op.sampling import Sampler, sample

from .boxes import (
    Boxes,
    ascending_corners,
    corners_of,
    kept_boxes,
    moved_to_front,
    overlap,
    picked,
    random_detections,
)

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_ALL_CLASS = (
    Param("boxes"),
    Param("scores"),
    Param("max_output_boxes_per_class", numbers=INT64),
    Param("iou_threshold"),
    Param("score_threshold", "tensor", None),
    attr("output_format", TEXT, "onnx"),
    attr("inclusive", FLAG, False),
)


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _infer(call: OpCall) -> Type:
    boxes, scores = ranked(call, 0, 3), ranked(call, 1, 3)
    floats = [0, 1, 3, *([4] if has(call, 4) else [])]
    kind = common_dtype(call, [float_tensor(call, k) for k in floats])
    int_tensor(call, 2)
    for k in range(2, len(call.args)):
        own = tensor(call, k)
        if isinstance(own.shape, tuple) and not equal(product(own.shape), 1):
            name = [p.name for p in _ALL_CLASS][k]
            raise call.error(f"{name!r} must be one number, got {type_text(own)}")
    form = call.attrs["output_format"]
    if form not in ("onnx", "tensorflow"):
        raise call.error(f"'output_format' must be 'onnx' or 'tensorflow', got {form!r}")
    whole: TensorType | None = None
    if isinstance(scores.shape, tuple):
        batch, classes, count = scores.shape
        whole = TensorType((batch, as_dim(classes * count)), kind)
        if isinstance(boxes.shape, tuple):
            for d, (got, wanted) in enumerate(zip(boxes.shape, (batch, count, 4), strict=True)):
                require_equal(call, got, wanted, f"'boxes' along axis {d}")
    if form == "onnx":
        found = call.fresh("selected")
        return TupleType((TensorType((found, 3), INT64), TensorType((1,), INT64)))
    if whole is None:
        return TupleType((TensorType(3, INT64), TensorType(2, kind), TensorType(1, INT64)))
    assert isinstance(whole.shape, tuple)
    places = TensorType((*whole.shape, 2), INT64)
    return TupleType((places, whole, TensorType(whole.shape[:1], INT64)))


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    boxes, scores, most, threshold, *least = args
    batch, classes, count = e.shape_of(scores)
    pairs = as_dim(batch * classes)
    if any(equal(n, 0) for n in (batch, classes, count)):
        return _nothing(e, boxes, attrs, (batch, as_dim(classes * count)))
    flat = e.op("reshape", scores, (pairs, count))
    order = e.op("argsort", flat, axis=1, descending=True)
    ranked_by = picked(e, flat, order)
    wide = e.op("reshape", boxes, (batch, 1, count, 4))
    wide = e.op("broadcast_to", wide, (batch, classes, count, 4))
    rows = picked(e, e.op("reshape", wide, (pairs, count, 4)), order)
    active = e.op("ones_like", ranked_by, dtype=BOOL)
    if least:
        active = e.op("greater", ranked_by, e.op("reshape", least[0], ()))
    # All scores count alike once they are in order.
    found = Boxes(corners_of(e, rows, 0), e.op("ones_like", ranked_by), None, active)
    limit = e.op("clip", e.op("reshape", most, ()), min=0, max=2**31 - 1)
    kept = kept_boxes(
        e,
        found,
        e.op("reshape", threshold, ()),
        e.cast(limit, INT32),
        counts_all=True,
        inclusive=flag_attr(attrs, "inclusive"),
    )
    if attrs["output_format"] == "onnx":
        return _selected(e, kept, order, classes)
    groups = (batch, as_dim(classes * count))
    label = e.op("reshape", e.op("arange", 0, classes, 1, dtype=INT64), (1, classes, 1, 1))
    label = e.op("broadcast_to", label, (batch, classes, count, 1))
    columns = (label, e.op("reshape", order, (batch, classes, count, 1)))
    places = e.op("reshape", e.op("concat", columns, axis=3), (*groups, 2))
    flags = e.op("reshape", kept, groups)
    moved, total = moved_to_front(e, flags, places, 0)
    values, _ = moved_to_front(e, flags, e.op("reshape", ranked_by, groups), 0)
    return Tuple((moved, values, e.cast(total, INT64)))


def _nothing(e: Emitter, boxes: Expr, attrs: Attrs, groups: tuple[Dim, Dim]) -> Expr:
    """What there is of no boxes."""
    if attrs["output_format"] == "onnx":
        return Tuple((Constant(np.zeros((0, 3), np.int64)), Constant(np.zeros(1, np.int64))))
    places = e.op("zeros", (*groups, 2), dtype=INT64)
    values = e.op("zeros", groups, dtype=e.dtype_of(boxes))
    return Tuple((places, values, e.op("zeros", groups[:1], dtype=INT64)))


def _selected(e: Emitter, kept: Expr, order: Expr, classes: Dim) -> Expr:
    """The image, class and box of each that is kept, and how many they are."""
    places = e.op("nonzero", kept)  # (2, kept): which pair of image and class, which rank
    pair = e.op("take", places, Constant(np.array(0, np.int64)), axis=0)
    box = e.op("gather_nd", order, e.op("permute_dims", places, axes=(1, 0)))
    per = e.op("dims", classes, dtype=INT64)
    image, label = e.op("floor_divide", pair, per), e.op("floor_mod", pair, per)
    triples = e.op("stack", (image, label, e.cast(box, INT64)), axis=1)
    return Tuple((triples, e.op("dims", (e.shape_of(box)[0],), dtype=INT64)))


def _reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    boxes, scores, most, threshold, *least = _arrays(args)
    limit, shared = int(most.reshape(())), float(threshold.reshape(()))
    batch, classes, count = scores.shape
    found: list[tuple[int, int, int]] = []
    for n in range(batch):
        corners = ascending_corners(boxes[n])
        for c in range(classes):
            kept: list[int] = []
            for at in np.argsort(-real(scores[n, c]), kind="stable").tolist():
                if least and not scores[n, c, at] > least[0].reshape(()):
                    continue
                parts = [overlap(corners[at], corners[b]) for b in kept]
                covered = any(v >= shared if attrs["inclusive"] else v > shared for v in parts)
                if len(kept) < limit and not covered:
                    kept.append(at)
            found += [(n, c, at) for at in kept]
    if attrs["output_format"] == "onnx":
        total = np.array([len(found)], np.int64)
        return np.asarray(found, np.int64).reshape(-1, 3), total
    places = np.zeros((batch, classes * count, 2), np.int64)
    values = np.zeros((batch, classes * count), scores.dtype)
    totals = np.zeros(batch, np.int64)
    for n, c, at in found:
        places[n, totals[n]], values[n, totals[n]] = (c, at), scores[n, c, at]
        totals[n] += 1
    return places, values, totals


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def call(
        sizes: tuple[int, int, int], most: int, *least: float, kind: str = "float32", **more: object
    ) -> Sample:
        batch, _, count = sizes
        boxes = random_detections(s, batch, count, kind)[:, :, 2:]
        scores = s.array(sizes, kind, 0, 1)
        numbers = [np.array(most), *(np.array(v, boxes.dtype) for v in (0.31, *least))]
        return sample(_ALL_CLASS, (boxes, scores, *numbers), **more)

    return [
        call((2, 3, 7), 3, 0.2),
        call((1, 2, 9), 99),
        call((2, 2, 6), 2, 0.1, output_format="tensorflow", inclusive=True),
        call((1, 2, 5), 2, 0.4, kind="float64", output_format="tensorflow"),
        call((1, 2, 4), 0),
        call((1, 2, 0), 3),
        call((2, 1, 0), 3, output_format="tensorflow"),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "vision.all_class_non_max_suppression",
        _ALL_CLASS,
        _infer,
        _reference,
        """The boxes of each class that no better one of it covers by more than `iou_threshold`.

        Of `boxes` ``(b, n, 4)``, two opposite corners each, and `scores` ``(b, c, n)`` those above
        `score_threshold` are looked at (all without), and at most `max_output_boxes_per_class` are
        kept; 0 keeps none. With `inclusive` a box is covered by just the threshold, too (as TVM
        has it). The three are single numbers. Gives the image, class and box of each kept,
        ``(selected, 3)``, classes in order, best first, where `selected` is a fresh symbol, and
        ``(1,)`` their number, both int64. With `output_format` "tensorflow" for each image: class
        and box ``(b, c * n, 2)``, int64, scores ``(b, c * n)``, both 0 behind the last, and their
        number ``(b,)``, int64 (R.vision.all_class_non_max_suppression, ONNX NonMaxSuppression).
        """,
        expand=_expand,
        samples=_samples,
    ),
)
