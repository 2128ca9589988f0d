"""Normalization over axes: layer_norm and rms_norm."""

from __future__ import annotations

from collections.abc import Sequence

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.types import Type
from unity.op.accumulate import rounded
from unity.op.argument import axes, common_dtype, float_tensor, require_equal, type_text
from unity.op.attribute import INTS, NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, ints_attr
from unity.op.sampling import Sampler, sample

from .moments import (
    affine_over,
    arrays,
    epsilon,
    normalize_reference,
    normalized,
    parts_over,
    spread,
)

_LAYER = (
    Param("x"),
    Param("gamma"),
    Param("beta", default=None),
    attr("axes", INTS, -1),
    attr("epsilon", NUMBER, 1e-5),
)
_RMS = (Param("x"), Param("weight"), attr("axes", INTS, -1), attr("epsilon", NUMBER, 1e-5))


def _layer_infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    affine = [float_tensor(call, i) for i in range(1, len(call.args))]
    common_dtype(call, (x, *affine))
    if x.ndim is None:
        return x
    over = axes(call, call.attrs["axes"], x.ndim)
    for i, v in enumerate(affine, 1):
        name = call.op.params[i].name
        if v.ndim is not None and v.ndim != len(over):
            raise call.error(
                f"{name!r} must have rank {len(over)}, one for each of the axes {over}, "
                f"got {type_text(v)}"
            )
        if isinstance(v.shape, tuple) and isinstance(x.shape, tuple):
            for d, extent in zip(over, v.shape, strict=True):
                require_equal(call, extent, x.shape[d], f"{name!r} along axis {d}")
    return x


def _normalized_axes(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    given = attrs["axes"]
    numbers = (given,) if isinstance(given, int) else ints_attr(attrs, "axes")
    return tuple(n % ndim for n in numbers)


def _layer_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    over = _normalized_axes(attrs, x.ndim)
    return normalized(x, parts_over(x, over), epsilon(attrs), affine_over(vectors, over))


def _rms_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, *vectors = args
    assert isinstance(x, te.Tensor)
    over = _normalized_axes(attrs, x.ndim)
    return normalized(
        x, parts_over(x, over), epsilon(attrs), affine_over(vectors, over), centred=False
    )


def _rows_reference(args: Sequence[RefArg], attrs: Attrs, *, centred: bool) -> Array:
    x, *vectors = arrays(args)
    over = _normalized_axes(attrs, x.ndim)
    result = normalize_reference(x, over, epsilon(attrs), centred=centred)
    for position, v in enumerate(vectors):
        term = spread(v, over, x.ndim)
        result = result * term if position == 0 else result + term
    return rounded(result, x)


def _layer_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2)
    c = int(s.rng.integers(6, 20))

    def call(
        shape: tuple[int, ...], over: tuple[int, ...], kind: str = "float32", count: int = 2
    ) -> Sample:
        inner = tuple(shape[d] for d in over)
        vectors = [s.array(inner, kind) for _ in range(count)]
        return sample(_LAYER, (s.array(shape, kind), *vectors), axes=over)

    return [
        call((a, c), (-1,)),
        call((a, b, c), (-1,), count=1),
        call((a, b, c), (1, 2)),
        call((a, c, b), (2, 1), "float64"),
        call((c, b), (0,)),
        call((a, 17), (-1,), "float16"),
        call((0, c), (-1,)),
    ]


def _rms_samples(seed: int) -> Sequence[Sample]:
    return [sample(_RMS, s.args[:2], axes=s.attrs["axes"]) for s in _layer_samples(seed)]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.layer_norm",
        _LAYER,
        _layer_infer,
        lambda args, attrs: _rows_reference(args, attrs, centred=True),
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over `axes`.

        gamma and beta (optional) have the shape of those axes (R.nn.layer_norm, ONNX
        LayerNormalization). Statistics are in float32 for narrower floats.
        """,
        compute=_layer_compute,
        pattern="reduction",
        samples=_layer_samples,
        precision="never",
    ),
    OpDef(
        "nn.rms_norm",
        _RMS,
        _layer_infer,
        lambda args, attrs: _rows_reference(args, attrs, centred=False),
        "``x / sqrt(mean(x * x) + epsilon) * weight`` over `axes` (R.nn.rms_norm, ONNX 23).",
        compute=_rms_compute,
        pattern="reduction",
        samples=_rms_samples,
        precision="never",
    ),
)
