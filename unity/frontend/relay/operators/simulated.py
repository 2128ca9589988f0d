"""Simulated quantization: numbers stay reals, and are those that integers could stand for."""

from __future__ import annotations

from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.sampling import half_away
from unity.ir.dtype import INT8, INT32, UINT8, DType
from unity.ir.graph import Expr

from .elementwise import limits
from .quantized import channel

_KINDS: dict[int, DType] = {1: INT8, 2: UINT8, 3: INT32}
"""What TVM's codes of a simulated dtype mean; 0 is none: numbers pass."""
_IDENTITY = 0


def _kind(c: RelayCall) -> DType | None:
    code = int(c.scalar(1, "a simulated dtype"))
    if code and code not in _KINDS:
        raise c.gap(f"the simulated dtype {code}")
    return _KINDS.get(code)


def _placed(c: RelayCall, index: int, axis: int) -> Expr:
    """A scale or zero point in the input's dtype, one or a vector along an axis."""
    x, value = c.tensor(0), c.tensor(index)
    value = c.cast(value, c.dtype_of(x))
    if c.shape_of(value) in ((), (1,)):
        return c.reshaped(value, ())
    return c.along(value, axis, len(c.shape_of(x)))


def _quantize(c: RelayCall) -> Expr:
    x, kind, axis = c.tensor(0), _kind(c), channel(c, c.tensor(0))
    if kind is None:
        return x
    scale, zero = (_placed(c, i, axis) for i in (2, 3))
    low, high = limits(kind)
    found = c.op("add", half_away(c, c.op("divide", x, scale)), zero)
    return c.op("clip", found, min=float(low), max=float(high))


def _dequantize(c: RelayCall) -> Expr:
    c.drop("out_dtype")
    x, kind, axis = c.tensor(0), _kind(c), channel(c, c.tensor(0))
    if kind is None:
        return x
    scale, zero = (_placed(c, i, axis) for i in (2, 3))
    return c.op("multiply", c.op("subtract", x, zero), scale)


def _annotated(c: RelayCall) -> Expr:
    """What `relay.quantize` leaves before its scales are put into the layers."""
    x = c.tensor(0)
    if c.integer("kind") == _IDENTITY:
        c.drop("sign", "rounding")
        return x
    c.only("sign", True)
    c.only("rounding", "round")
    scale, low, high = (c.cast(c.tensor(i), c.dtype_of(x)) for i in (1, 2, 3))
    held = c.op(
        "maximum", *c.of(c.op("minimum", *c.of(c.op("divide", *c.of(x, scale)), high)), low)
    )
    return c.op("multiply", *c.of(half_away(c, held), scale))


CONVERTERS: dict[str, Converter] = {
    "qnn.simulated_quantize": _quantize,
    "qnn.simulated_dequantize": _dequantize,
    "relay.op.annotation.simulated_quantize": _annotated,
}
