"""Elementwise operators of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, Array, DType
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import Binary, Intrinsic, Not, PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import unary, widened
from unity.op.argument import tensor
from unity.op.attribute import NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, array_arg, attr
from unity.op.sampling import Sampler, sample

Accepts: TypeAlias = Literal["float", "number", "int", "bool"]
_X = (Param("x"),)
_CLIP = (Param("x"), attr("min", NUMBER, None), attr("max", NUMBER, None))
_SHAPES: tuple[tuple[int, ...], ...] = ((), (7,), (2, 3, 4), (3, 0, 2))
_KINDS: dict[Accepts, tuple[str, ...]] = {
    "float": ("float32", "float64", "float16", "bfloat16"),
    "number": ("float32", "int32", "uint8", "float16", "int64"),
    "int": ("int32", "uint8", "int64"),
    "bool": ("bool",),
}


def accepts_dtype(accepts: Accepts, kind: DType) -> bool:
    """Whether an operator of this class takes a dtype."""
    match accepts:
        case "float":
            return kind.is_float
        case "int":
            return kind.is_int
        case "number":
            return kind.is_float or kind.is_int
        case "bool":
            return kind == BOOL


ACCEPTED: dict[Accepts, str] = {
    "float": "of a float dtype",
    "number": "of an integer or a float dtype",
    "int": "of an integer dtype",
    "bool": "bool",
}
"""What an operator of a class takes, in words."""


def told(doc: str, accepts: Accepts = "float", gives: DType | None = None) -> str:
    """What it computes, with what it takes and gives."""
    result = "its dtype" if gives is None else f"is {gives}"
    return (
        f"{doc}\n\nElementwise: `x` is a tensor of any shape, {ACCEPTED[accepts]}; another is"
        f"\nrefused. The result has its shape and {result}."
    )


def _rule(accepts: Accepts, gives: DType | None) -> Callable[[OpCall], Type]:
    def infer(call: OpCall) -> Type:
        x = tensor(call, 0)
        if x.dtype is not None and not accepts_dtype(accepts, x.dtype):
            wanted = "a number" if accepts == "number" else f"of {accepts} dtype"
            raise call.error(f"'x' must be {wanted}, got {x.dtype}", "convert with astype")
        return TensorType(x.shape, gives or x.dtype)

    return infer


def map_elements(
    args: Sequence[ComputeArg], result: Type, fn: Callable[[PrimExpr], PrimExpr], name: str
) -> te.Tensor:
    """The tensor of `fn` of each element, computed in the element's working dtype."""
    (x,) = args
    assert isinstance(x, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    out = result.dtype
    assert out is not None
    return te.compute(result.shape, lambda *i: te.cast(fn(widened(x[i])), out), name)


def _op(
    name: str,
    fn: Callable[[PrimExpr], PrimExpr],
    reference: Callable[[Array], Array],
    doc: str,
    accepts: Accepts = "float",
    gives: DType | None = None,
    span: tuple[float, float] = (-3, 3),
    tolerance: float = 1e-5,
    *,
    finite: bool = False,
    onnx: str | None = None,
) -> OpDef:
    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        kinds = _KINDS[accepts]
        return [
            sample(_X, (s.array(shape, kind, *span),))
            for i, shape in enumerate(_SHAPES)
            for kind in dict.fromkeys(
                (kinds[0], kinds[i % len(kinds)], kinds[(i + 1) % len(kinds)])
            )
        ]

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        with np.errstate(all="ignore"):
            x = array_arg(args)
            found = unary(reference, x) if gives is None else np.asarray(reference(x))
            return found.astype(gives.numpy) if gives is not None else found

    return OpDef(
        name,
        _X,
        _rule(accepts, gives),
        refer,
        told(doc, accepts, gives),
        compute=lambda args, attrs, result: map_elements(args, result, fn, name),
        pattern="elementwise",
        samples=samples,
        tolerance=tolerance,
        finite=finite,
        onnx=onnx,
    )


def _intrinsic(
    name: str,
    doc: str,
    span: tuple[float, float] = (-3, 3),
    accepts: Accepts = "float",
    *,
    op: str | None = None,
    gives: DType | None = None,
    tolerance: float = 1e-5,
    finite: bool = False,
    onnx: str | None = None,
) -> OpDef:
    """An operator that is a row of `unity.ir.intrinsics`."""
    row = INTRINSICS[name]

    def fn(x: PrimExpr) -> PrimExpr:
        return Intrinsic(name, (x,), row.result_dtype((x.dtype,)))

    return _op(
        op or name, fn, row.evaluate, doc, accepts, gives, span, tolerance, finite=finite, onnx=onnx
    )


def _negative(x: PrimExpr) -> PrimExpr:
    return -x


def _bitwise_not(x: PrimExpr) -> PrimExpr:
    ones = -1 if x.dtype.kind == "int" else (1 << x.dtype.bits) - 1
    return Binary("xor", x, imm(ones, x.dtype))


def _infer_clip(call: OpCall) -> Type:
    x = tensor(call, 0)
    for name in ("min", "max"):
        if call.attrs[name] is not None:
            bound = call.number(name)
            if x.dtype is not None and not x.dtype.is_float and not float(bound).is_integer():
                raise call.error(f"{name}={bound} is no {x.dtype}")
    if x.dtype is not None and not accepts_dtype("number", x.dtype):
        raise call.error(f"'x' must be a number, got {x.dtype}")
    return TensorType(x.shape, x.dtype)


def _bounds(attrs: Attrs, kind: DType) -> tuple[float | None, float | None]:
    """The bounds, those of an integer dtype brought into its range."""
    low, high = attrs["min"], attrs["max"]
    assert low is None or isinstance(low, int | float)
    assert high is None or isinstance(high, int | float)
    if not kind.is_int:
        return low, high
    least, most = int(te.min_value(kind).value), int(te.max_value(kind).value)
    inside = [None if b is None else max(least, min(most, int(b))) for b in (low, high)]
    return inside[0], inside[1]


def _compute_clip(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    assert isinstance(result, TensorType)
    assert result.dtype is not None
    low, high = _bounds(attrs, result.dtype)

    def fn(x: PrimExpr) -> PrimExpr:
        if low is not None:
            x = Binary("max", x, imm(low, x.dtype))
        return x if high is None else Binary("min", x, imm(high, x.dtype))

    return map_elements(args, result, fn, "clip")


def _refer_clip(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x = array_arg(args)
    low, high = attrs["min"], attrs["max"]
    if low is not None:
        x = np.maximum(x, np.asarray(low)).astype(x.dtype)
    return x if high is None else np.minimum(x, np.asarray(high)).astype(x.dtype)


def _clip_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_CLIP, (s.array((3, 5)),), min=-1.0, max=1.5),
        sample(_CLIP, (s.array((4,), "float16"),), min=0.0),
        sample(_CLIP, (s.array((2, 0)),), max=6.0),
        sample(_CLIP, (s.array((6,), "int32"),), min=-1, max=2),
        sample(_CLIP, (s.array((6,), "uint8"),), min=-1, max=2),
    ]


OPS: tuple[OpDef, ...] = (
    _intrinsic(
        "abs",
        "Absolute value; the least signed integer stays as it is.",
        accepts="number",
        finite=True,
        onnx="Abs",
    ),
    _op(
        "negative",
        _negative,
        np.negative,
        "``-x``; unsigned integers wrap.",
        "number",
        finite=True,
        onnx="Neg",
    ),
    _op("square", lambda x: x * x, np.square, "``x * x``; integers wrap.", "number"),
    _op("reciprocal", lambda x: 1.0 / x, np.reciprocal, "``1 / x``.", onnx="Reciprocal"),
    _intrinsic("sign", "-1, 0 or 1; NaN stays NaN.", accepts="number", onnx="Sign"),
    _intrinsic("exp", "``e ** x``.", onnx="Exp"),
    _intrinsic("exp2", "``2 ** x``."),
    _intrinsic("expm1", "``e ** x - 1``, exact near 0."),
    _intrinsic("log", "The natural logarithm; NaN below 0.", (0.1, 5), onnx="Log"),
    _intrinsic("log2", "The logarithm to base 2.", (0.1, 5)),
    _intrinsic("log10", "The logarithm to base 10.", (0.1, 5)),
    _intrinsic("log1p", "``log(1 + x)``, exact near 0.", (-0.9, 3)),
    _intrinsic("sqrt", "The square root; NaN below 0.", (0, 5), onnx="Sqrt"),
    _intrinsic("rsqrt", "``1 / sqrt(x)``.", (0.1, 5)),
    _intrinsic("sin", "The sine.", onnx="Sin"),
    _intrinsic("cos", "The cosine.", onnx="Cos"),
    _intrinsic("tan", "The tangent.", (-1.4, 1.4), onnx="Tan"),
    _intrinsic("asin", "The inverse sine.", (-1, 1), onnx="Asin"),
    _intrinsic("acos", "The inverse cosine.", (-1, 1), onnx="Acos"),
    _intrinsic("atan", "The inverse tangent.", onnx="Atan"),
    _intrinsic("sinh", "The hyperbolic sine.", onnx="Sinh"),
    _intrinsic("cosh", "The hyperbolic cosine.", onnx="Cosh"),
    _intrinsic("tanh", "The hyperbolic tangent.", finite=True, onnx="Tanh"),
    _intrinsic("asinh", "The inverse hyperbolic sine.", onnx="Asinh"),
    _intrinsic("acosh", "The inverse hyperbolic cosine.", (1.1, 5), onnx="Acosh"),
    _intrinsic("atanh", "The inverse hyperbolic tangent.", (-0.9, 0.9), onnx="Atanh"),
    _intrinsic("erf", "The error function.", onnx="Erf"),
    _intrinsic("sigmoid", "``1 / (1 + exp(-x))``.", finite=True, onnx="Sigmoid"),
    _intrinsic("floor", "Rounded down.", finite=True, onnx="Floor"),
    _intrinsic("ceil", "Rounded up.", finite=True, onnx="Ceil"),
    _intrinsic(
        "round",
        "Rounded to the nearest integer, ties to even (ONNX Round, numpy.rint).",
        finite=True,
        onnx="Round",
    ),
    _intrinsic("trunc", "Rounded towards zero.", finite=True),
    _intrinsic("isnan", "Whether each element is NaN.", gives=BOOL, onnx="IsNaN"),
    _intrinsic("isinf", "Whether each element is an infinity.", gives=BOOL),
    _intrinsic("isfinite", "Whether each element is neither NaN nor an infinity.", gives=BOOL),
    _op("logical_not", Not, np.logical_not, "``not x``, on bool tensors.", "bool", onnx="Not"),
    _op(
        "bitwise_not",
        _bitwise_not,
        np.invert,
        "Every bit flipped, on integers.",
        "int",
        onnx="BitwiseNot",
    ),
    OpDef(
        "clip",
        _CLIP,
        _infer_clip,
        _refer_clip,
        told(
            "``min(max(x, min), max)``; None does not bind, NaN stays NaN (R.clip, ONNX Clip).",
            "number",
        ),
        compute=_compute_clip,
        pattern="elementwise",
        samples=_clip_samples,
        finite=True,
    ),
)
