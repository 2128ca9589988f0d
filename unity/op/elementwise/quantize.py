"""Real numbers as integers of few bits, and back: ``real = scale * (integer - zero point)``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, ceildiv
from unity.ir.dtype import FLOAT32, INT8, INT32, Array, DType
from unity.ir.graph import Call, Constant, Op
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import working_dtype
from unity.op.argument import axis, float_tensor, int_tensor, require_equal, shape_text, type_text
from unity.op.attribute import DTYPE, INT
from unity.op.normalization.moments import arrays
from unity.op.reduction.reduce import known
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    dtype_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

_INPUTS = (
    Param("x"),
    Param("scale", numbers=FLOAT32),
    Param("zero_point", numbers=INT32),
    attr("axis", INT, -1),
)
_QUANTIZE = (*_INPUTS, attr("out_dtype", DTYPE, INT8))
_DEQUANTIZE = (*_INPUTS, attr("out_dtype", DTYPE, FLOAT32), attr("block", INT, 0))
MOST_BITS = 16
"""Of what is quantized to: float32 holds all such integers, with room to tell their halves."""
_MOST_SCALED = 32
"""Bits of what is dequantized: sums of products as well, which is what biases are."""


def _parameter(call: OpCall, index: int, x: TensorType, found: TensorType) -> None:
    """Check that a scale or zero point is one number, or one for each place along the axis."""
    name, size = call.op.params[index].name, found.shape
    if not isinstance(size, tuple) or not size:
        return
    block = block_of(call.attrs)
    if block:
        _blocks(call, name, block, x, size)
        return
    if len(size) != 1:
        raise call.error(
            f"{name!r} must be a scalar or a vector along the axis, got {type_text(found)}",
            hint="scales of blocks: dequantize with the attribute 'block'",
        )
    if isinstance(x.shape, tuple):
        along = axis(call, call.attrs["axis"], len(x.shape))
        what = f"{name!r} of shape {shape_text(size)} along axis {along} of {type_text(x)}"
        require_equal(call, size[0], x.shape[along], what)


def block_of(attrs: Attrs) -> int:
    """How many numbers along the axis share a scale; 0 where scales are no blocks'."""
    given = attrs.get("block")
    return given if isinstance(given, int) else 0


def _blocks(call: OpCall, name: str, block: int, x: TensorType, size: Sequence[Dim]) -> None:
    """Check that there is one number for each block along the axis."""
    if not isinstance(x.shape, tuple):
        return
    along = axis(call, call.attrs["axis"], len(x.shape))
    wanted = [ceildiv(e, block) if i == along else e for i, e in enumerate(x.shape)]
    what = f"{name!r} of shape {shape_text(tuple(size))} in blocks of {block} of {type_text(x)}"
    if len(size) != len(wanted):
        raise call.error(f"{what} has another rank")
    for got, expected in zip(size, wanted, strict=True):
        require_equal(call, got, expected, what)


def _parameters(call: OpCall, x: TensorType) -> None:
    if x.ndim is not None:  # also with one scale for all, where it means nothing
        axis(call, call.attrs["axis"], max(1, x.ndim))
    if block_of(call.attrs) < 0:
        raise call.error(f"'block' must not be negative, got {block_of(call.attrs)}")
    _parameter(call, 1, x, float_tensor(call, 1))
    _parameter(call, 2, x, int_tensor(call, 2))


def _infer_quantize(call: OpCall) -> Type:
    x, out = float_tensor(call, 0), call.dtype("out_dtype")
    if not out.is_int or out.bits > MOST_BITS:
        raise call.error(f"'out_dtype' must be an integer of at most {MOST_BITS} bits, got {out}")
    _parameters(call, x)
    return TensorType(x.shape, out)


def _infer_dequantize(call: OpCall) -> Type:
    x, out = int_tensor(call, 0), call.dtype("out_dtype")
    if x.dtype is not None and x.dtype.bits > _MOST_SCALED:
        raise call.error(f"'x' must be of at most {_MOST_SCALED} bits, got {type_text(x)}")
    if not out.is_float:
        raise call.error(f"'out_dtype' must be a float dtype, got {out}")
    _parameters(call, x)
    return TensorType(x.shape, out)


def is_of_weights(call: Call) -> bool:
    """Whether a call dequantizes a constant matrix or more.

    Such are not folded where constants are: as integers they are small, and may be multiplied.
    """
    match call:
        case Call(Op("dequantize"), (Constant(data), *_)):
            return data.ndim > 1
        case _:
            return False


def limits(of: DType) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    return int(te.min_value(of).value), int(te.max_value(of).value)


def _place(parameter: te.Tensor, attrs: Attrs, index: Sequence[PrimExpr]) -> PrimExpr:
    """The scale or zero point of an element."""
    if not parameter.shape:
        return parameter[()]
    block = block_of(attrs)
    if block:
        along = int_attr(attrs, "axis") % len(index)
        return parameter[tuple(i // block if k == along else i for k, i in enumerate(index))]
    return parameter[(index[int_attr(attrs, "axis") % len(index)],)]


def _tensors(args: Sequence[ComputeArg]) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    x, scale, zero = args
    assert isinstance(x, te.Tensor)
    assert isinstance(scale, te.Tensor)
    assert isinstance(zero, te.Tensor)
    return x, scale, zero


def _compute_quantize(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, scale, zero = _tensors(args)
    shape, out = known(result)
    wide, (low, high) = working_dtype(x.dtype), limits(out)

    def element(*i: PrimExpr) -> PrimExpr:
        ratio = te.cast(x[i], wide) / te.cast(_place(scale, attrs, i), wide)
        whole = te.round_(ratio) + te.cast(_place(zero, attrs, i), wide)
        return te.cast(te.clamp(whole, float(low), float(high)), out)

    return te.compute(shape, element, "quantize")


def _compute_dequantize(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, scale, zero = _tensors(args)
    shape, out = known(result)
    wide = working_dtype(scale.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        centred = te.cast(x[i], INT32) - te.cast(_place(zero, attrs, i), INT32)
        return te.cast(te.cast(centred, wide) * te.cast(_place(scale, attrs, i), wide), out)

    return te.compute(shape, element, "dequantize")


def _along(parameter: Array, attrs: Attrs, shape: tuple[int, ...]) -> Array:
    rank, block = len(shape), block_of(attrs)
    if parameter.ndim == 0:
        return parameter
    along = int_attr(attrs, "axis") % rank
    if block:
        whole = np.repeat(parameter, block, axis=along)
        return whole[tuple(slice(e) for e in shape)]
    behind = rank - 1 - along
    return parameter.reshape(-1, *(1,) * behind)


def _working(of: Array) -> np.dtype[np.generic]:
    """The numpy type that an array of floats is computed in."""
    return np.dtype(np.float64 if of.dtype == np.float64 else np.float32)


def _quantize_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, scale, zero = arrays(args)
    out, wide = dtype_attr(attrs, "out_dtype"), _working(x)
    with np.errstate(all="ignore"):
        ratio = np.divide(x.astype(wide), _along(scale, attrs, x.shape).astype(wide))
        whole = np.rint(ratio) + _along(zero, attrs, x.shape).astype(wide)
        return np.asarray(np.clip(whole, *limits(out))).astype(out.numpy)


def _dequantize_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, scale, zero = arrays(args)
    wide = _working(scale)
    centred = x.astype(np.int32) - _along(zero, attrs, x.shape).astype(np.int32)
    factor = _along(scale, attrs, x.shape).astype(wide)
    wide_result = np.multiply(centred.astype(wide), factor)
    return np.asarray(wide_result).astype(dtype_attr(attrs, "out_dtype").numpy)


def _quantize_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, low=2)

    def call(shape: tuple[int, ...], of: str, out: str, along: int | None = None) -> Sample:
        size = () if along is None else (shape[along],)
        x, scale = s.array(shape, of, -40, 40), s.array(size, low=0.05, high=0.3)
        zero = s.array(size, out, -7, 7)
        axis = {} if along is None else {"axis": along}
        return sample(_QUANTIZE, (x, scale, zero), out_dtype=DType(out), **axis)

    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, -300], np.float32)
    one, none = np.array(1, np.float32), np.array(0, np.int8)
    return [
        call((a, b), "float32", "int8"),
        call((a, b, c), "float32", "uint8", 1),
        call((a, b), "float16", "int16", -1),
        call((b, c), "float64", "uint16", 0),
        call((), "float32", "uint8"),
        call((0, b), "float32", "int8", 1),
        sample(_QUANTIZE, (halves, one, none)),
    ]


def _dequantize_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, low=2)

    def call(
        shape: tuple[int, ...], of: str, out: str = "float32", along: int | None = None
    ) -> Sample:
        size = () if along is None else (shape[along],)
        x, zero = s.array(shape, of, -128, 127), s.array(size, of, -9, 9)
        axis = {} if along is None else {"axis": along}
        scale = s.array(size, "float32", 0.01, 1)
        return sample(_DEQUANTIZE, (x, scale, zero), out_dtype=DType(out), **axis)

    return [
        call((a, b), "int8"),
        call((a, b, c), "uint8", along=1),
        call((a, b), "int16", "float16", -1),
        call((b, c), "int32", along=0),
        call((), "uint8"),
        call((0, b), "int8", along=1),
        call((a, c), "uint16", "float64"),
        sample(
            _DEQUANTIZE,
            (s.array((7, b), "uint8", 0, 15), s.array((3, b)), s.array((3, b), "uint8", 0, 15)),
            axis=0,
            block=3,
        ),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "quantize",
        _QUANTIZE,
        _infer_quantize,
        _quantize_reference,
        """``clip(round(x / scale) + zero_point)`` in `out_dtype`; shape of x (R.quantize).

        `scale` (floats) and `zero_point` (integers) are scalars or vectors of ``x.shape[axis]``.
        Halves round to even, what `out_dtype` does not hold becomes the nearest that it holds.
        `x` is a float tensor, `out_dtype` an integer of at most 16 bits; float32 is computed in,
        float64 for float64 (ONNX QuantizeLinear).
        """,
        compute=_compute_quantize,
        pattern="broadcast",
        samples=_quantize_samples,
        precision="never",
    ),
    OpDef(
        "dequantize",
        _DEQUANTIZE,
        _infer_dequantize,
        _dequantize_reference,
        """``scale * (x - zero_point)`` in `out_dtype`; shape of x (R.dequantize).

        `x` holds integers of at most 32 bits; `scale` (floats) and `zero_point` (integers) are
        scalars or vectors of ``x.shape[axis]``, or, with `block`, tensors like x that have one for
        each block of so many along `axis`. The difference wraps in int32; the product is of
        `scale`'s dtype, of float32 at least (ONNX DequantizeLinear).
        """,
        compute=_compute_dequantize,
        pattern="broadcast",
        samples=_dequantize_samples,
        precision="never",
    ),
)
"""Both ways between reals and integers."""
