"""Boxes that better ones cover are suppressed, greedily: what detection ends with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, INT32, INT64, Array
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, PrimWhile, Seq, Stmt, Store
from unity.ir.types import TensorType, Type
from unity.op.accumulate import real, widened
from unity.op.argument import common_dtype, float_tensor, ranked, require_equal
from unity.op.attribute import FLAG
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

_BOXES = ("left", "top", "right", "bottom", "area")
_FLAGS = ("positive", "active", "shields")
_ROWS = (*_BOXES, *_FLAGS, "labels")
_PARAMS = (
    *map(Param, _BOXES),
    *(Param(name, numbers=BOOL) for name in _FLAGS),
    Param("labels", numbers=INT32),
    Param("threshold"),
    Param("most", numbers=INT32),
    attr("counts_all", FLAG, False),
    attr("inclusive", FLAG, True),
)


def _infer(call: OpCall) -> Type:
    rows = [ranked(call, k, 2) for k in range(len(_ROWS))]
    common_dtype(call, [float_tensor(call, k) for k in (*range(len(_BOXES)), len(_ROWS))])
    ranked(call, len(_ROWS), 0)
    ranked(call, len(_ROWS) + 1, 0)
    known = next((r for r in rows if isinstance(r.shape, tuple)), None)
    if known is None or not isinstance(known.shape, tuple):
        return TensorType(2, BOOL)
    for name, row in zip(_ROWS, rows, strict=True):
        if isinstance(row.shape, tuple):
            for a, b in zip(row.shape, known.shape, strict=True):
                require_equal(call, a, b, f"{name!r} has other boxes than {_ROWS[0]!r}")
    return TensorType(known.shape, BOOL)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    tensors: list[te.Tensor] = []
    for a in args:
        assert isinstance(a, te.Tensor)
        tensors.append(a)

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        return _suppressed(inputs, outputs[0], attrs)

    shape = tensors[0].shape
    (kept,) = te.extern([(shape, BOOL)], tensors, body, "kept_boxes")
    return kept


def _suppressed(inputs: Sequence[Buffer], kept: Buffer, attrs: Attrs) -> Stmt:
    """Each batch by itself: a box is compared with those that were kept, until one covers it."""
    *rows, threshold, most = inputs
    named: dict[str, Buffer] = dict(zip(_ROWS, rows, strict=True))
    batch, count = kept.shape
    n, i, j = PrimVar("n"), PrimVar("i"), PrimVar("j")
    shielding = Buffer("shielding", (count,), INT64)
    state = Buffer("state", (imm(4),), INT64, scope="local")
    found, shielded, hit, at = (Load(state, (imm(k),)) for k in range(4))

    def put(k: int, value: PrimExpr) -> Stmt:
        return Store(state, (imm(k),), value)

    def box(name: str, k: PrimExpr) -> PrimExpr:
        return widened(Load(named[name], (n, k)))

    def flag(name: str) -> PrimExpr:
        return Load(named[name], (n, i))

    def length(low: str, high: str) -> PrimExpr:
        inside = te.min_(box(high, i), box(high, j)) - te.max_(box(low, i), box(low, j))
        return te.max_(inside, imm(0.0, inside.dtype))

    common = length("left", "right") * length("top", "bottom")
    shared = PrimVar("common", common.dtype)
    union = box("area", i) + box("area", j) - shared
    whole = PrimVar("union", union.dtype)
    nothing = imm(0.0, union.dtype)
    overlap = te.select(whole <= nothing, nothing, shared / whole)
    limit = widened(Load(threshold, ()))
    reaches = overlap >= limit if attrs["inclusive"] is True else overlap > limit
    covers = te.and_(reaches, te.eq(Load(named["labels"], (n, i)), Load(named["labels"], (n, j))))
    compared = Seq((put(2, te.select(covers, imm(1), imm(0))), put(3, at + 1)))
    compare: Stmt = Let(shared, common, Let(whole, union, compared))
    search = Seq(
        (
            put(3, imm(0)),
            PrimWhile(
                te.and_(te.eq(hit, 0), at < shielded),
                Let(j, Load(shielding, (at,)), compare),
            ),
        )
    )
    keeps: list[Stmt] = [Store(kept, (n, i), imm(True, BOOL))]
    add = put(0, found + 1)
    keeps.append(add if attrs["counts_all"] is True else IfThen(flag("positive"), add))
    shield = Seq((Store(shielding, (shielded,), i), put(1, shielded + 1)))
    keeps.append(IfThen(te.and_(flag("positive"), flag("shields")), shield))
    none = te.eq(found, te.cast(Load(most, ()), INT64))
    step = Seq(
        (
            Store(kept, (n, i), imm(False, BOOL)),
            IfThen(
                te.and_(flag("active"), te.not_(none)),
                Seq(
                    (
                        put(2, imm(0)),
                        IfThen(flag("positive"), search),
                        IfThen(te.eq(hit, 0), Seq(tuple(keeps))),
                    )
                ),
            ),
        )
    )
    each = Seq((put(0, imm(0)), put(1, imm(0)), For(i, imm(0), count, step)))
    return For(n, imm(0), batch, Allocate(shielding, Allocate(state, each)), "parallel")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    rows = {k: real(a) for k, a in zip(_ROWS, arrays, strict=False)}
    threshold, most = real(arrays[-2]), int(arrays[-1])
    batch, count = arrays[0].shape
    kept = np.zeros((batch, count), np.bool_)
    for n in range(batch):
        found, shielding = 0, list[int]()
        left, top, right, bottom, area = (rows[k][n] for k in _BOXES)
        for i in range(count):
            if not rows["active"][n, i] or found == most:
                continue
            j = np.asarray(shielding, np.int64)
            across = np.minimum(right[i], right[j]) - np.maximum(left[i], left[j])
            down = np.minimum(bottom[i], bottom[j]) - np.maximum(top[i], top[j])
            common = np.maximum(across, 0) * np.maximum(down, 0)
            union = area[i] + area[j] - common
            overlap = np.where(union <= 0, 0, common / np.where(union <= 0, 1, union))
            covers = overlap >= threshold if attrs["inclusive"] is True else overlap > threshold
            positive = bool(rows["positive"][n, i])
            same = rows["labels"][n, i] == rows["labels"][n, j]
            if positive and np.any(covers & same):
                continue
            kept[n, i] = True
            found += attrs["counts_all"] is True or positive
            if positive and rows["shields"][n, i]:
                shielding.append(i)
    return kept


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def call(shape: tuple[int, int], most: int, kind: str = "float32", **attrs: object) -> Sample:
        left, top = (s.array(shape, kind, 0, 4) for _ in range(2))
        right, bottom = (np.add(a, s.array(shape, kind, 1, 3)) for a in (left, top))
        area = np.multiply(np.subtract(right, left), np.subtract(bottom, top))
        flags = [np.not_equal(s.array(shape, "int32", 0, 3), 0) for _ in range(3)]
        labels = s.array(shape, "int32", 0, 1)
        ends = np.array(0.31, left.dtype), np.array(most, np.int32)
        return sample(_PARAMS, (left, top, right, bottom, area, *flags, labels, *ends), **attrs)

    return [
        call((2, 23), -1),
        call((1, 40), 6, counts_all=True, inclusive=False),
        call((3, 9), 4, "float64"),
        call((2, 0), -1),
        call((0, 3), 2),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "kept_boxes",
        _PARAMS,
        _infer,
        _reference,
        """Which boxes, in the order of their scores, no better one covers: (batch, count), bool.

        A box is kept if it is `active`, fewer than `most` (a scalar; none is -1) of its batch were,
        and it is not `positive` or overlaps none of those that shield: the kept ones that are
        `positive` and in `shields`, of the same of `labels`. Boxes overlap whose intersection has
        the `threshold`'s part of their union, or more (`inclusive`). Kept ones count that are
        positive, or all (`counts_all`). The rest, of shape (batch, count): `left`, `top`, `right`,
        `bottom` and `area` in one float dtype (greedy suppression, as ONNX NonMaxSuppression).
        """,
        compute=_compute,
        samples=_samples,
    ),
)
