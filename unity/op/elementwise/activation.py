"""Activations: elementwise functions of one tensor (prelu takes its slopes as a second)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import equal
from unity.ir.dtype import Array
from unity.ir.prim_expr import Imm, PrimExpr, imm
from unity.ir.types import Type
from unity.op.accumulate import Real, real, rounded, widened
from unity.op.argument import axis, common_dtype, float_tensor, ranked, require_equal, tensor
from unity.op.attribute import INT, NUMBER
from unity.op.registry import (
    ComputeArg,
    ComputeRule,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

from .unary import told

_Scalar: TypeAlias = Callable[[PrimExpr, Attrs], PrimExpr]
_Numpy: TypeAlias = Callable[[Real, Attrs], Real]


def _number_input(call: OpCall) -> Type:
    found = tensor(call, 0)
    if found.dtype is not None and found.dtype.kind == "bool":
        raise call.error("a bool tensor has no order", hint='convert with astype(x, "float32")')
    return found


def _float(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _compute(scalar: _Scalar, name: str) -> ComputeRule:
    def rule(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        (x,) = args
        assert isinstance(x, te.Tensor)

        def element(*i: PrimExpr) -> PrimExpr:
            return te.cast(scalar(widened(x[i]), attrs), x.dtype)

        return te.compute(x.shape, element, name)

    return rule


def _reference(function: _Numpy) -> Callable[[Sequence[RefArg], Attrs], Array]:
    def rule(args: Sequence[RefArg], attrs: Attrs) -> Array:
        (x,) = args
        assert isinstance(x, np.ndarray)
        with np.errstate(all="ignore"):
            return rounded(function(real(x), attrs), x)

    return rule


def _samples(
    params: tuple[Param, ...], kinds: tuple[str, ...]
) -> Callable[[int], Sequence[Sample]]:
    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        found = [sample(params, (s.array(s.shape(2), kind, -6, 6),)) for kind in kinds]
        edges = np.array([0.0, -0.0, 1e-8, -1e-8, 30.0, -30.0], np.float32)
        found.append(sample(params, (edges if kinds[0] == "float32" else edges.astype(kinds[0]),)))
        found.append(sample(params, (s.array((), kinds[0]),)))
        found.append(sample(params, (s.array((0, 3), kinds[0]),)))
        return found

    return rule


_FLOATS = ("float32", "float64", "float16")


def _row(
    name: str,
    scalar: _Scalar,
    reference: _Numpy,
    doc: str,
    *attrs: Param,
    tolerance: float = 1e-5,
    finite: bool = False,
    onnx: str | None = None,
    divides: str | None = None,
) -> OpDef:
    """A row; `divides` names the attribute that must not be 0."""
    params = (Param("x"), *attrs)

    def infer(call: OpCall) -> Type:
        if divides is not None and not call.number(divides):
            raise call.error(f"{divides!r} must not be 0")
        return float_tensor(call, 0)

    return OpDef(
        name,
        params,
        infer,
        _reference(reference),
        told(doc),
        compute=_compute(scalar, name.rpartition(".")[2]),
        pattern="elementwise",
        samples=_samples(params, _FLOATS),
        tolerance=tolerance,
        finite=finite,
        onnx=onnx,
    )


def _sigmoid(x: Real) -> Real:
    return 1 / (1 + np.exp(-x))


def _erf(x: Real) -> Real:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x), np.float64)


def _softplus(x: Real) -> Real:
    return np.logaddexp(0, x)


def _stable_softplus(x: PrimExpr) -> PrimExpr:
    """``log(1 + exp(x))`` that overflows nowhere: ``max(x, 0) + log1p(exp(-|x|))``."""
    return te.max_(x, 0.0) + te.log1p(te.exp(-te.abs_(x)))


def _clamped_line(x: PrimExpr, attrs: Attrs) -> PrimExpr:
    line = x * _float(attrs, "alpha") + _float(attrs, "beta")
    return te.min_(te.max_(line, 0.0), 1.0)


def _gelu_tanh(x: PrimExpr, attrs: Attrs) -> PrimExpr:
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (te.tanh(inner) + 1.0)


_X = (Param("x"),)


def _relu_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    return te.compute(x.shape, lambda *i: te.max_(x[i], 0), "relu")


def _relu_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.asarray(np.maximum(x, np.zeros((), x.dtype)))


_ALPHA_SELU, _SCALE_SELU = 1.6732632423543772, 1.0507009873554805


def _prelu_infer(call: OpCall) -> Type:
    x, slope = float_tensor(call, 0), ranked(call, 1, 1)
    common_dtype(call, (x, slope))
    if x.ndim is None:
        return x
    along = axis(call, call.attrs["axis"], x.ndim)
    if isinstance(x.shape, tuple) and isinstance(slope.shape, tuple):
        extent = x.shape[along] if not equal(slope.shape[0], 1) else 1
        require_equal(call, slope.shape[0], extent, f"slopes along axis {along}")
    return x


def _prelu_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, slope = args
    assert isinstance(x, te.Tensor)
    assert isinstance(slope, te.Tensor)
    along = int_attr(attrs, "axis") % len(x.shape)
    extent = slope.shape[0]
    single = isinstance(extent, Imm) and extent.value == 1

    def element(*i: PrimExpr) -> PrimExpr:
        value = x[i]
        return te.select(value < 0.0, value * slope[imm(0) if single else i[along]], value)

    return te.compute(x.shape, element, "prelu")


def _prelu_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, slope = args
    assert isinstance(x, np.ndarray)
    assert isinstance(slope, np.ndarray)
    shape = [1] * x.ndim
    shape[int_attr(attrs, "axis")] = len(slope)
    wide = real(x)
    return rounded(np.where(wide < 0, wide * real(slope).reshape(shape), wide), x)


_PRELU = (Param("x"), Param("alpha"), attr("axis", INT, 1))


def _prelu_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4)
    return [
        sample(_PRELU, (s.array((n, c, h, w)), s.array((c,)))),
        sample(_PRELU, (s.array((n, c), "float64"), s.array((1,), "float64"))),
        sample(_PRELU, (s.array((n, h, c), "float16"), s.array((c,), "float16")), axis=-1),
        sample(_PRELU, (s.array((0, c)), s.array((c,)))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.relu",
        _X,
        _number_input,
        _relu_reference,
        "``max(x, 0)``, NaN stays NaN (R.nn.relu, ONNX Relu). Any dtype but bool.",
        compute=_relu_compute,
        pattern="elementwise",
        samples=_samples(_X, (*_FLOATS, "int32", "uint8")),
        finite=True,
        onnx="Relu",
    ),
    _row(
        "nn.gelu",
        lambda x, _: x * 0.5 * (te.erf(x * math.sqrt(0.5)) + 1.0),
        lambda x, _: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
        "``x / 2 * (1 + erf(x / sqrt(2)))`` (R.nn.gelu, ONNX Gelu).",
        tolerance=2e-5,
        finite=True,
    ),
    _row(
        "nn.gelu_tanh",
        _gelu_tanh,
        lambda x, _: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "The tanh approximation of gelu (R.nn.gelu_tanh, ONNX Gelu approximate=tanh).",
        tolerance=2e-5,
    ),
    _row(
        "nn.silu",
        lambda x, _: x * te.sigmoid(x),
        lambda x, _: x * _sigmoid(x),
        "``x * sigmoid(x)`` (R.nn.silu, torch silu, swish).",
        finite=True,
    ),
    _row(
        "nn.leakyrelu",
        lambda x, a: te.select(x < 0.0, x * _float(a, "alpha"), x),
        lambda x, a: np.where(x < 0, x * _float(a, "alpha"), x),
        "``x`` where ``x >= 0``, else ``alpha * x`` (R.nn.leakyrelu, ONNX LeakyRelu).",
        attr("alpha", NUMBER, 0.01),
        finite=True,
    ),
    OpDef(
        "nn.prelu",
        _PRELU,
        _prelu_infer,
        _prelu_reference,
        """``x`` where ``x >= 0``, else ``alpha[c] * x``, c the index along `axis` (R.nn.prelu).

        `alpha` has shape ``(x.shape[axis],)`` or ``(1,)``.
        """,
        compute=_prelu_compute,
        pattern="broadcast",
        samples=_prelu_samples,
    ),
    _row(
        "nn.elu",
        lambda x, a: te.select(x < 0.0, te.expm1(x) * _float(a, "alpha"), x),
        lambda x, a: np.where(x < 0, _float(a, "alpha") * np.expm1(x), x),
        "``x`` where ``x >= 0``, else ``alpha * (exp(x) - 1)`` (ONNX Elu).",
        attr("alpha", NUMBER, 1.0),
    ),
    _row(
        "nn.celu",
        lambda x, a: te.select(
            x < 0.0, te.expm1(x * (1 / _float(a, "alpha"))) * _float(a, "alpha"), x
        ),
        lambda x, a: np.where(x < 0, _float(a, "alpha") * np.expm1(x / _float(a, "alpha")), x),
        "``x`` where ``x >= 0``, else ``alpha * (exp(x / alpha) - 1)`` (ONNX Celu, torch's celu).",
        attr("alpha", NUMBER, 1.0),
        divides="alpha",
    ),
    _row(
        "nn.softsign",
        lambda x, _: x / (te.abs_(x) + 1.0),
        lambda x, _: x / (1 + np.abs(x)),
        "``x / (1 + |x|)`` (ONNX Softsign, torch's softsign).",
        finite=True,
        onnx="Softsign",
    ),
    _row(
        "nn.thresholdedrelu",
        lambda x, a: te.select(x > _float(a, "alpha"), x, imm(0.0, x.dtype)),
        lambda x, a: np.where(x > _float(a, "alpha"), x, 0),
        "``x`` where ``x > alpha``, else 0 (ONNX ThresholdedRelu, torch's threshold).",
        attr("alpha", NUMBER, 1.0),
        finite=True,
    ),
    _row(
        "nn.logsigmoid",
        lambda x, _: -_stable_softplus(-x),
        lambda x, _: -_softplus(-x),
        "``log(sigmoid(x))``, which overflows nowhere (torch's logsigmoid).",
    ),
    _row(
        "nn.selu",
        lambda x, a: te.select(x < 0.0, te.expm1(x) * _float(a, "alpha"), x) * _float(a, "gamma"),
        lambda x, a: _float(a, "gamma") * np.where(x < 0, _float(a, "alpha") * np.expm1(x), x),
        "``gamma * elu(x, alpha)`` (R.nn.selu, ONNX Selu).",
        attr("alpha", NUMBER, _ALPHA_SELU),
        attr("gamma", NUMBER, _SCALE_SELU),
    ),
    _row(
        "nn.softplus",
        lambda x, a: _stable_softplus(x * _float(a, "beta")) * (1 / _float(a, "beta")),
        lambda x, a: _softplus(x * _float(a, "beta")) / _float(a, "beta"),
        "``log(1 + exp(beta * x)) / beta`` (R.nn.softplus without threshold, ONNX Softplus).",
        attr("beta", NUMBER, 1.0),
        divides="beta",
    ),
    _row(
        "nn.hardsigmoid",
        _clamped_line,
        lambda x, a: np.clip(x * _float(a, "alpha") + _float(a, "beta"), 0, 1),
        "``clip(alpha * x + beta, 0, 1)`` (torch hardsigmoid; ONNX HardSigmoid has alpha 0.2).",
        attr("alpha", NUMBER, 1 / 6),
        attr("beta", NUMBER, 0.5),
        finite=True,
    ),
    _row(
        "nn.hardswish",
        lambda x, _: x * te.min_(te.max_(x * (1 / 6) + 0.5, 0.0), 1.0),
        lambda x, _: x * np.clip(x / 6 + 0.5, 0, 1),
        "``x * clip(x / 6 + 1 / 2, 0, 1)`` (ONNX HardSwish).",
        finite=True,
        onnx="HardSwish",
    ),
    _row(
        "nn.mish",
        lambda x, _: x * te.tanh(_stable_softplus(x)),
        lambda x, _: x * np.tanh(_softplus(x)),
        "``x * tanh(softplus(x))`` (ONNX Mish).",
        onnx="Mish",
    ),
)
