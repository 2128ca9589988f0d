"""Images resized: nearest pixels, linear and cubic interpolation, in two and three dimensions.

Along each axis an output reads a few inputs, its taps: an index and a weight each. A pixel is the
sum over the taps of all axes. What lies outside is the pixel at the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import always_ge
from unity.ir.dtype import FLOAT32, INT64, Array
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Real, real
from unity.op.argument import ranked, shape, type_text
from unity.op.attribute import DTYPE, INT, NUMBER, NUMBERS, TEXT
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_EDGE = 1e-5
"""What rounding errors of a coordinate may be off an integer, for floor and ceil."""


def _params(layout: str, rounding: str) -> tuple[Param, ...]:
    return (
        Param("x"),
        Param("size", "shape"),
        attr("roi", NUMBERS, None),
        attr("layout", TEXT, layout),
        attr("method", TEXT, "linear"),
        attr("coordinate_transformation_mode", TEXT, "half_pixel"),
        attr("rounding_method", TEXT, rounding),
        attr("cubic_alpha", NUMBER, -0.75),
        attr("cubic_exclude", INT, 0),
        attr("extrapolation_value", NUMBER, 0.0),
        attr("out_dtype", DTYPE, None),
    )


_AXES = {2: "HW", 3: "DHW"}
_PARAMS = {2: _params("NCHW", "round"), 3: _params("NCDHW", "")}


def _number(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _roi(attrs: Attrs, rank: int) -> tuple[float, ...]:
    """Where the part that is resized begins along each axis, then where it ends."""
    found = attrs["roi"]
    if not isinstance(found, tuple):
        return (0.0,) * rank + (1.0,) * rank
    return tuple(float(v) for v in found if isinstance(v, int | float))


def _spatial(attrs: Attrs, rank: int) -> tuple[int, ...]:
    """Where the axes lie that are resized."""
    return tuple(str(attrs["layout"]).index(a) for a in _AXES[rank])


def infer_resize(call: OpCall, rank: int) -> Type:
    """The type of an image of another size."""
    x, size = ranked(call, 0, rank + 2), shape(call, 1).dims
    layouts = (f"NC{_AXES[rank]}", f"N{_AXES[rank]}C")
    for name, choices in (
        ("layout", layouts),
        ("method", METHODS),
        ("coordinate_transformation_mode", MODES),
        ("rounding_method", ROUNDINGS),
    ):
        if call.attrs[name] not in choices:
            raise call.error(
                f"{name!r} must be one of {', '.join(map(repr, choices))}, got {call.attrs[name]!r}"
            )
    if call.integer("cubic_exclude") not in (0, 1):
        raise call.error(f"'cubic_exclude' must be 0 or 1, got {call.attrs['cubic_exclude']!r}")
    if len(_roi(call.attrs, rank)) != 2 * rank:
        raise call.error(
            f"'roi' must hold {2 * rank} numbers, first where it begins, got {call.attrs['roi']!r}"
        )
    kind = x.dtype if call.attrs["out_dtype"] is None else call.dtype("out_dtype")
    if isinstance(size, tuple) and len(size) != rank:
        raise call.error(f"'size' must hold {rank} dims, got {len(size)}")
    if not isinstance(x.shape, tuple) or not isinstance(size, tuple):
        return TensorType(rank + 2, kind)
    dims = list(x.shape)
    for at, extent in zip(_spatial(call.attrs, rank), size, strict=True):
        if dims[at] == 0 and extent != 0:
            raise call.error(f"nothing can be resized in {type_text(x)}")
        dims[at] = extent
    return TensorType(tuple(dims), kind)


# The compute: taps as expressions.


def _f32(value: float) -> PrimExpr:
    return imm(value, FLOAT32)


def _coordinate(
    attrs: Attrs, i: PrimExpr, source: PrimExpr, target: PrimExpr, begin: float, end: float
) -> PrimExpr:
    """Where an output's center lies among the inputs."""
    place, old, new = (te.cast(e, FLOAT32) for e in (i, source, target))
    scale = old / new
    last = te.cast(source - 1, FLOAT32)
    steps = te.cast(te.max_(target - 1, 1), FLOAT32)
    match attrs["coordinate_transformation_mode"]:
        case "half_pixel":
            return (place + _f32(0.5)) * scale - _f32(0.5)
        case "align_corners":
            return place * (last / steps)
        case "asymmetric":
            return place * scale
        case "pytorch_half_pixel":
            return te.select(target > 1, (place + _f32(0.5)) * scale - _f32(0.5), _f32(0))
        case "tf_half_pixel_for_nn":
            return (place + _f32(0.5)) * scale
        case _:
            part = last * _f32(begin) + place * (last * _f32(end - begin) / steps)
            return te.select(target > 1, part, last * _f32(0.5 * (begin + end)))


def _rounding(attrs: Attrs) -> str:
    given = str(attrs["rounding_method"])
    if given:
        return given
    return "round" if attrs["coordinate_transformation_mode"] == "align_corners" else "floor"


def _nearest(attrs: Attrs, at: PrimExpr) -> PrimExpr:
    match _rounding(attrs):
        case "round":
            return te.round_(at)
        case "round_prefer_floor":
            return te.ceil(at - _f32(0.5))
        case "round_prefer_ceil":
            return te.floor(at + _f32(0.5))
        case "floor":
            return te.floor(at + _f32(_EDGE))
        case _:
            return te.ceil(at - _f32(_EDGE))


def _taps(attrs: Attrs, at: PrimExpr, extent: PrimExpr) -> list[tuple[PrimExpr, PrimExpr]]:
    """Which inputs an output reads along an axis, each with its weight."""
    if attrs["method"] == "nearest_neighbor":
        return [(_inside(te.cast(_nearest(attrs, at), INT64), extent), _f32(1))]
    base = te.floor(at)
    first, t = te.cast(base, INT64), at - base
    if attrs["method"] == "linear":
        return [(_inside(first, extent), _f32(1) - t), (_inside(first + 1, extent), t)]
    a = _number(attrs, "cubic_alpha")
    t2, t3 = t * t, t * t * t
    weights: list[PrimExpr] = [
        (t3 - t2 * _f32(2) + t) * _f32(a),
        t3 * _f32(a + 2) - t2 * _f32(a + 3) + _f32(1),
        t2 * _f32(2 * a + 3) - t3 * _f32(a + 2) - t * _f32(a),
        (t2 - t3) * _f32(a),
    ]
    places = [first + (k - 1) for k in range(4)]
    if attrs["cubic_exclude"] != 0:
        seen = [te.all_true(p >= 0, p < extent) for p in places]
        weights = [te.select(s, w, _f32(0)) for s, w in zip(seen, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    return [(_inside(p, extent), w) for p, w in zip(places, weights, strict=True)]


def _inside(place: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return te.clamp(place, 0, extent - 1)


def compute_resize(args: Sequence[ComputeArg], attrs: Attrs, result: Type, rank: int) -> te.Tensor:
    """The kernel: every output reads the taps of all axes."""
    x = args[0]
    assert isinstance(x, te.Tensor)
    dims, out = known(result)
    axes, roi = _spatial(attrs, rank), _roi(attrs, rank)
    sized, sizes = te.placeholder(dims, out).shape, dims_of(x)
    crops = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"

    def element(*i: PrimExpr) -> PrimExpr:
        found = [
            _coordinate(attrs, i[d], x.shape[d], sized[d], roi[k], roi[rank + k])
            for k, d in enumerate(axes)
        ]
        taps = [_taps(attrs, at, x.shape[d]) for at, d in zip(found, axes, strict=True)]
        total: PrimExpr | None = None
        for each in product(*taps):
            place, weight = list(i), each[0][1]
            for d, (index, factor) in zip(axes, each, strict=True):
                place[d] = index
                weight = factor if d == axes[0] else weight * factor
            value = te.cast(x[tuple(place)], FLOAT32)
            part = value if attrs["method"] == "nearest_neighbor" else value * weight
            total = part if total is None else total + part
        assert total is not None
        maybe = [x.shape[d] for d in axes if not always_ge(sizes[d], 1)]
        if maybe:  # nothing is read of an image that turns out to have no pixels
            total = te.select(te.all_true(*(n > 0 for n in maybe)), total, _f32(0))
        if crops:
            inside = te.all_true(
                *(at >= _f32(0) for at in found),
                *(
                    at <= te.cast(x.shape[d] - 1, FLOAT32)
                    for at, d in zip(found, axes, strict=True)
                ),
            )
            total = te.select(inside, total, _f32(_number(attrs, "extrapolation_value")))
        return te.cast(total, out)

    return te.compute(dims, element, "resize")


# The reference: a matrix of weights for each axis.


def _coordinates(
    attrs: Attrs, source: int, target: int, begin: float, end: float
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    i = np.arange(target, dtype=np.float32)
    scale, half = np.float32(source) / np.float32(max(target, 1)), np.float32(0.5)
    mode = attrs["coordinate_transformation_mode"]
    if mode == "pytorch_half_pixel" and target <= 1:
        return np.zeros(target, np.float32)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return np.asarray((i + half) * scale - half, np.float32)
    if mode == "tf_half_pixel_for_nn":
        return np.asarray((i + half) * scale, np.float32)
    if mode == "asymmetric":
        return np.asarray(i * scale, np.float32)
    if mode == "align_corners":
        return np.asarray(i * (np.float32(source - 1) / np.float32(max(target - 1, 1))))
    if target <= 1:
        return np.full(target, 0.5 * (begin + end) * (source - 1), np.float32)
    last = np.float32(source - 1)
    steps = last * np.float32(end - begin) / np.float32(target - 1)
    return np.asarray(last * np.float32(begin) + i * steps, np.float32)


def _matrix(attrs: Attrs, at: Array, source: int) -> Real:
    """Of each output the weights of all inputs along an axis."""
    made = np.zeros((len(at), source))
    if source == 0:
        return made
    where = at.astype(np.float64)
    if attrs["method"] == "nearest_neighbor":
        rule = {
            "round": np.rint(at),
            "round_prefer_floor": np.ceil(where - 0.5),
            "round_prefer_ceil": np.floor(where + 0.5),
            "floor": np.floor(where + _EDGE),
            "ceil": np.ceil(where - _EDGE),
        }[_rounding(attrs)]
        places, weights = [rule.astype(np.int64)], [np.ones(len(at))]
    else:
        base = np.floor(where)
        t, first = where - base, base.astype(np.int64)
        if attrs["method"] == "linear":
            places, weights = [first, first + 1], [1 - t, t]
        else:
            a = _number(attrs, "cubic_alpha")
            near = [((a + 2) * u - (a + 3)) * u * u + 1 for u in (t, 1 - t)]
            far = [((a * u - 5 * a) * u + 8 * a) * u - 4 * a for u in (1 + t, 2 - t)]
            places = [first - 1, first, first + 1, first + 2]
            weights = [far[0], near[0], near[1], far[1]]
            if attrs["cubic_exclude"] != 0:
                weights = [
                    np.where((p >= 0) & (p < source), w, 0.0)
                    for p, w in zip(places, weights, strict=True)
                ]
                total = np.sum(weights, axis=0)
                weights = [w / total for w in weights]
    for place, weight in zip(places, weights, strict=True):
        np.add.at(made, (np.arange(len(at)), np.clip(place, 0, source - 1)), weight)
    return made


def refer_resize(args: Sequence[RefArg], attrs: Attrs, rank: int) -> Array:
    """The numpy reference."""
    x, size = args
    assert isinstance(x, np.ndarray)
    sizes = [n for n in size if isinstance(n, int)]
    axes, roi = _spatial(attrs, rank), _roi(attrs, rank)
    found, inside = real(x), np.ones((1,) * x.ndim, np.bool_)
    for k, (d, target) in enumerate(zip(axes, sizes, strict=True)):
        at = _coordinates(attrs, x.shape[d], target, roi[k], roi[rank + k])
        rows = np.tensordot(_matrix(attrs, at, x.shape[d]), found, axes=(1, d))
        found = np.moveaxis(rows, 0, d)
        seen = (at >= 0) & (at <= x.shape[d] - 1)
        inside = inside & seen.reshape([-1 if j == d else 1 for j in range(x.ndim)])
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        found = np.where(inside, found, _number(attrs, "extrapolation_value"))
    out = attrs["out_dtype"]
    kind = np.dtype(x.dtype) if out is None else getattr(out, "numpy", x.dtype)
    return found.astype(kind)


def _samples(rank: int, seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    params, axes = _PARAMS[rank], _AXES[rank]
    dims = s.shape(rank, 3, 4) if rank == 2 else s.shape(rank, 2, 3)
    small = tuple(n - 1 for n in dims)
    large = tuple(n + 2 for n in dims)
    x, last = s.array((2, 1, *dims)), s.array((1, *dims, 2))
    found = [
        sample(params, (x, large)),
        sample(params, (x, small), coordinate_transformation_mode="align_corners"),
        sample(params, (last, large), layout=f"N{axes}C", method="nearest_neighbor"),
        sample(
            params,
            (x, small),
            method="nearest_neighbor",
            rounding_method="floor",
            coordinate_transformation_mode="asymmetric",
        ),
        sample(
            params,
            (s.array((1, 1, *dims), "float64"), large),
            coordinate_transformation_mode="tf_crop_and_resize",
            roi=(0.2,) * rank + (1.25,) * rank,
            extrapolation_value=7.0,
        ),
        sample(params, (x, (1,) * rank), coordinate_transformation_mode="pytorch_half_pixel"),
    ]
    if rank == 2:  # 64 taps of an image of three dimensions take the interpreter long
        found += [
            sample(params, (x, large), method="cubic"),
            sample(params, (x, small), method="cubic", cubic_exclude=1, cubic_alpha=-0.5),
        ]
    return found


def _row(rank: int) -> OpDef:
    name = f"image.resize{rank}d"
    layouts = f"``NC{_AXES[rank]}`` or ``N{_AXES[rank]}C``"
    return OpDef(
        name,
        _PARAMS[rank],
        lambda call: infer_resize(call, rank),
        lambda args, attrs: refer_resize(args, attrs, rank),
        f"""Images, {layouts}, at another `size` (R.{name}, ONNX Resize).

        `method` is {", ".join(METHODS)}; `coordinate_transformation_mode` and `rounding_method`
        are ONNX's: {", ".join(MODES)}; {", ".join(ROUNDINGS[1:])}, or "" for round with
        align_corners and floor without. `roi`, begins then ends as parts of the extents, is what
        tf_crop_and_resize takes, `extrapolation_value` stands outside of it. `out_dtype` is x's by
        default; sums are in float32. An image that turns out to have no pixels gives zeros.
        """,
        compute=lambda args, attrs, result: compute_resize(args, attrs, result, rank),
        pattern="injective",
        samples=lambda seed: _samples(rank, seed),
        tolerance=1e-4,
    )


OPS: tuple[OpDef, ...] = (_row(2), _row(3))
