"""What a product of quantized tensors multiplies: integers of 8 bits, their zero points and scales.

Such tensors come as calls of `dequantize`, or in int32 off their zero points (MatMulInteger,
QLinearConv ...). What is found here is read off a function's bindings; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import FLOAT32, INT8, INT32, UINT8, Array, dtype
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType
from unity.op.elementwise.quantize import limits
from unity.op.registry import dtype_attr, int_attr

from ..layout.narrow_weights import in_8_bits

Values = Mapping[Var, Expr]
"""What each variable is bound to."""


@dataclass(frozen=True, slots=True)
class Activations:
    """The left operand.

    Attributes:
        integers: Of 8 bits.
        zero: What stands for 0 among them: a scalar of 8 or 32 bits.
        scale: What one is in reals; None where the product is one of int32.
    """

    integers: Var
    zero: Expr
    scale: Array | None


@dataclass(frozen=True, slots=True)
class Weights:
    """The right operand, known and without zero points.

    Attributes:
        source: The constant it is from.
        integers: In int8, the axes as the product has them; a convolution's in int16 where int8
            does not hold them without their zero points, but the sum of two does.
        scale: What one is in reals: a scalar, or one for each output; None as above.
        offset: What is to be added to the integers of each output, where int8 does not hold them
            without their zero points; None where it does.
    """

    source: Constant
    integers: Array
    scale: Array | None
    offset: Array | None = None


def activations(x: Expr, values: Values) -> Activations | None:
    """The left operand that a variable is."""
    made = values.get(x) if isinstance(x, Var) else None
    match made:
        case Call(Op("dequantize"), (Var() as q, Constant(scale), Constant() as zero), attrs):
            alone = scale.ndim == 0 and zero.data.ndim == 0
            real = {dtype(scale.dtype), dtype_attr(attrs, "out_dtype")} == {FLOAT32}
            return Activations(q, zero, scale) if alone and real and _is_narrow(q) else None
        case Call(Op("subtract"), (Var() as wide, zero)) if _is_scalar(zero):
            found = widened(values.get(wide))
        case _:
            found, zero = widened(made), Constant(np.zeros((), np.int32))
    return Activations(found, zero, None) if isinstance(found, Var) else None


def weights(w: Expr, values: Values, outputs: int) -> Weights | None:
    """The right operand that a variable or a constant is.

    Args:
        w: The operand.
        values: What variables are bound to.
        outputs: Its axis of outputs; scales differ along no other.
    """
    match w:
        case Constant(data) if data.dtype == np.int32:
            return _weights(w, data, None, outputs)
        case Var():
            made = values.get(w)
        case _:
            return None
    match made:
        case Call(Op("permute_dims"), (turned,), attrs) if attrs["axes"] == (1, 0):
            inner = weights(turned, values, 1 - outputs)
            if inner is None:
                return None
            data = np.ascontiguousarray(inner.integers.T)
            return Weights(inner.source, data, inner.scale, inner.offset)
        case Call(Op("dequantize"), (Constant(data) as c, Constant(scale), Constant(zero)), attrs):
            if scale.ndim > 1 or zero.ndim > 1:
                return None  # of blocks
            axis = int_attr(attrs, "axis") % max(1, data.ndim)
            real = {dtype(scale.dtype), dtype_attr(attrs, "out_dtype")} == {FLOAT32}
            if not real or not (scale.ndim == 0 or axis == outputs):
                return None
            along = zero.reshape(-1, *(1,) * (data.ndim - 1 - axis)) if zero.ndim else zero
            wide = data if not np.any(zero) else data.astype(np.int32) - along.astype(np.int32)
            return _weights(c, wide, scale, outputs)
        case Call(Op("subtract"), (Var() as w32, Constant(zero))):
            source = widened(values.get(w32))
            if not isinstance(source, Constant):
                return None
            moved = source.data.astype(np.int32) - zero.astype(np.int32)
            same = moved.shape == source.data.shape
            return _weights(source, moved, None, outputs) if same else None
        case _:
            source = widened(made)
            return (
                _weights(source, source.data, None, outputs)
                if isinstance(source, Constant)
                else None
            )


def _weights(source: Constant, wide: Array, scale: Array | None, outputs: int) -> Weights | None:
    """Integers in int8, of a matrix maybe with an offset for each output."""
    found = in_8_bits(wide)
    if found is not None:
        return Weights(source, found, scale)
    if wide.ndim != 2:
        low, high = limits(INT8)
        held = 2 * low <= int(wide.min()) and int(wide.max()) <= 2 * high
        return Weights(source, wide.astype(np.int16), scale) if held else None
    exact = wide.astype(np.int64)  # which holds the difference of any two in int32
    low, high = (f(exact, axis=1 - outputs, keepdims=True) for f in (np.min, np.max))
    if np.any(high - low > 255):
        return None
    offset = low + 128
    moved = (exact - offset).astype(np.int8)
    return Weights(source, moved, scale, offset.ravel())


def widened(made: Expr | None) -> Expr | None:
    """What of 8 bits was cast to int32."""
    match made:
        case Call(Op("astype"), (x,), attrs) if dtype_attr(attrs, "dtype") == INT32:
            return x if _is_narrow(x) else None
        case _:
            return None


def _is_narrow(x: Expr) -> bool:
    match atom_type(x) if isinstance(x, Var | Constant) else None:
        case TensorType(_, of) if of in (INT8, UINT8):
            return True
        case _:
            return False


def _is_scalar(x: Expr) -> bool:
    match atom_type(x) if isinstance(x, Var | Constant) else None:
        case TensorType(()):
            return True
        case _:
            return False
