"""Tensors made by a formula of their indices: identity matrices, and windows of cosines."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim
from unity.ir.dtype import FLOAT32, INT64, Array
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type

from .accumulate import working_dtype
from .argument import ranked
from .attribute import DTYPE, FLAG, NUMBER, SIZE
from .reduction.reduce import known
from .registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, dtype_attr, int_attr
from .sampling import Sampler, sample

_EYE = (
    attr("n", SIZE),
    attr("m", SIZE, None),
    attr("k", SIZE, 0),
    attr("dtype", DTYPE, FLOAT32),
)
_EYE_LIKE = (Param("x"), attr("k", SIZE, 0), attr("dtype", DTYPE, None))
_WINDOW = (
    attr("window_size", SIZE),
    attr("periodic", FLAG, True),
    attr("dtype", DTYPE, FLOAT32),
)
_HAMMING = (
    *_WINDOW[:2],
    attr("alpha", NUMBER, 0.54),
    attr("beta", NUMBER, 0.46),
    _WINDOW[2],
)


def _size(attrs: Attrs, name: str) -> Dim:
    value = attrs[name]
    assert isinstance(value, int | SymDim), (name, value)
    return value


# eye


def _eye_infer(call: OpCall) -> Type:
    n = _size(call.attrs, "n")
    m = n if call.attrs["m"] is None else _size(call.attrs, "m")
    for name, extent in (("n", n), ("m", m)):
        if isinstance(extent, int) and extent < 0:
            raise call.error(f"{name!r} must not be negative, got {extent}")
    return TensorType((n, m), call.dtype())


def _eye_like_infer(call: OpCall) -> Type:
    x = ranked(call, 0, 2)
    return TensorType(x.shape, x.dtype if call.attrs["dtype"] is None else call.dtype())


def _eye_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    dims, out = known(result)
    k = te.cast(to_prim_expr(_size(attrs, "k")), INT64)

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        on = te.eq(te.cast(j, INT64) - te.cast(i, INT64), k)
        return te.select(on, imm(1, out), imm(0, out))

    return te.compute(dims, element, "eye")


def _eye_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    n = int_attr(attrs, "n")
    m = n if attrs["m"] is None else int_attr(attrs, "m")
    return np.eye(n, m, int_attr(attrs, "k")).astype(dtype_attr(attrs).numpy)


def _eye_like_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    kind = x.dtype if attrs["dtype"] is None else dtype_attr(attrs).numpy
    rows, columns = x.shape
    return np.eye(rows, columns, int_attr(attrs, "k")).astype(kind)


def _eye_samples(seed: int) -> Sequence[Sample]:
    a, b = Sampler.seeded(seed).shape(2, 2, 5)
    return [
        sample(_EYE, (), n=a),
        sample(_EYE, (), n=a, m=b, k=1, dtype=INT64),
        sample(_EYE, (), n=a, m=b, k=-2),
        sample(_EYE, (), n=0),
    ]


def _eye_like_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_EYE_LIKE, (s.array((a, b)),)),
        sample(_EYE_LIKE, (s.array((b, a), "int32"),), k=-1, dtype=FLOAT32),
    ]


# windows


def _window_infer(call: OpCall) -> Type:
    n, kind = _size(call.attrs, "window_size"), call.dtype()
    if isinstance(n, int) and n < 0:
        raise call.error(f"'window_size' must not be negative, got {n}")
    if not kind.is_float:
        raise call.error(f"'dtype' must be a float one, got {kind}")
    return TensorType((n,), kind)


def _weights(attrs: Attrs, weights: Sequence[float] | None) -> Sequence[float]:
    if weights is not None:
        return weights
    return [float(v) for v in (attrs["alpha"], attrs["beta"]) if isinstance(v, int | float)]


def _window(
    name: str, weights: Sequence[float] | None, params: tuple[Param, ...], doc: str
) -> OpDef:
    """A window: the weighted cosines of 0, 1, 2 ... times the angle, their signs in turns."""

    def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        dims, out = known(result)
        wide = working_dtype(out)
        length = to_prim_expr(_size(attrs, "window_size"))
        # A window of one element that is not periodic is divided by 1, not by 0.
        whole = length if attrs["periodic"] is True else te.max_(length - 1, 1)
        first, *rest = _weights(attrs, weights)

        def element(i: PrimExpr) -> PrimExpr:
            angle = te.cast(i, wide) * imm(2 * pi, wide) / te.cast(whole, wide)
            total: PrimExpr = imm(first, wide)
            for k, weight in enumerate(rest, 1):
                term = te.cos(angle * imm(float(k), wide)) * imm(weight, wide)
                total = total - term if k % 2 else total + term
            return te.cast(total, out)

        return te.compute(dims, element, name.rpartition(".")[2])

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        n = int_attr(attrs, "window_size")
        whole = n if attrs["periodic"] is True else max(n - 1, 1)
        angle = np.arange(n) * (2 * pi / max(whole, 1))
        parts = enumerate(_weights(attrs, weights))
        terms = [(-1.0) ** k * w * np.cos(k * angle) for k, w in parts]
        return np.asarray(np.sum(terms, axis=0)).astype(dtype_attr(attrs).numpy)

    def samples(seed: int) -> Sequence[Sample]:
        return [
            sample(params, (), window_size=9),
            sample(params, (), window_size=8, periodic=False),
            sample(params, (), window_size=1, periodic=False),
            sample(params, (), window_size=0),
        ]

    return OpDef(
        name, params, _window_infer, refer, doc, compute=compute, pattern="injective",
        samples=samples,
    )  # fmt: skip


OPS: tuple[OpDef, ...] = (
    OpDef(
        "eye",
        _EYE,
        _eye_infer,
        _eye_reference,
        "``(n, m)`` with 1 on the diagonal k (above the main one if positive), else 0 (R.eye); "
        "`m` is n by default.",
        compute=_eye_compute,
        pattern="injective",
        samples=_eye_samples,
    ),
    OpDef(
        "eye_like",
        _EYE_LIKE,
        _eye_like_infer,
        _eye_like_reference,
        "`R.eye` of a matrix's shape, and of its dtype by default (R.eye_like, ONNX EyeLike).",
        compute=_eye_compute,
        pattern="injective",
        samples=_eye_like_samples,
    ),
    _window(
        "hamming_window",
        None,
        _HAMMING,
        "``alpha - beta * cos(2 pi i / n)`` for i from 0 to n - 1, with n - 1 for n in the "
        "quotient if it is not `periodic`: a vector of `window_size` elements, n, of a float "
        "`dtype` (R.hamming_window, torch.hamming_window).",
    ),
    _window(
        "hann_window",
        (0.5, 0.5),
        _WINDOW,
        "``0.5 - 0.5 * cos(2 pi i / n)``: a vector as `hamming_window`, of a float `dtype` "
        "(torch.hann_window).",
    ),
    _window(
        "blackman_window",
        (0.42, 0.5, 0.08),
        _WINDOW,
        "``0.42 - 0.5 * cos(2 pi i / n) + 0.08 * cos(4 pi i / n)``: a vector as "
        "`hamming_window`, of a float `dtype` "
        "(torch.blackman_window).",
    ),
)
