"""Element by element: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import BOOL, FLOAT32, DType
from unity.op.table import OF_ONNX

from .rule import NodeRule, plain
from .writer import Arg, OpNode, onnx_dtype


def _divide(n: OpNode) -> Arg:
    if not n.dtype().is_float:
        raise UnityError("division of integers rounds otherwise in ONNX")
    return n.w.node("Div", n.inputs)


def _square(n: OpNode) -> Arg:
    return n.w.node("Mul", [n.input(0), n.input(0)])


def _rsqrt(n: OpNode) -> Arg:
    return n.w.node("Reciprocal", [n.w.node("Sqrt", n.inputs)])


def _not_equal(n: OpNode) -> Arg:
    return n.w.node("Not", [n.w.node("Equal", n.inputs)])


def _clip(n: OpNode) -> Arg:
    bounds: list[str] = []
    for name in ("min", "max"):
        value = n.attrs[name]
        if value is not None and n.dtype().is_int:
            limits = np.iinfo(str(n.dtype()))
            if not limits.min <= n.number(name) <= limits.max:
                raise UnityError(f"{name}={value} is no {n.dtype()}")
        bounds.append("" if value is None else n.w.scalar(n.number(name), n.dtype()))
    return n.w.node("Clip", [n.input(0), *bounds])


def _astype(n: OpNode) -> Arg:
    target = n.attrs["dtype"]
    assert isinstance(target, DType)
    if n.dtype().is_float and not target.is_float and target != BOOL:
        raise UnityError("a float out of an integer's range is converted otherwise in ONNX")
    return n.w.node("Cast", n.inputs, to=onnx_dtype(target))


def _quantize(name: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        narrow = n.attrs["out_dtype"] if name == "QuantizeLinear" else n.dtype()
        wide = n.dtype() if name == "QuantizeLinear" else n.attrs["out_dtype"]
        if n.dtype(2) != narrow or n.dtype(1) != FLOAT32 or wide != FLOAT32:
            raise UnityError("takes float32 and a zero point of the integers' dtype")
        if n.attrs.get("block", 0):
            raise UnityError("has scales of blocks from opset 21 on")
        return n.w.node(name, n.inputs, axis=n.axis() if n.rank(1) or n.rank(2) else 0)

    return rule


def _gelu(approximate: str) -> NodeRule:
    return lambda n: n.w.node("Gelu", n.inputs, approximate=approximate)


def _silu(n: OpNode) -> Arg:
    return n.w.node("Mul", [n.input(0), n.w.node("Sigmoid", n.inputs)])


def _leaky(n: OpNode) -> Arg:
    return n.w.node("LeakyRelu", n.inputs, alpha=n.number("alpha"))


def _elu(n: OpNode) -> Arg:
    return n.w.node("Elu", n.inputs, alpha=n.number("alpha"))


def _selu(n: OpNode) -> Arg:
    return n.w.node("Selu", n.inputs, alpha=n.number("alpha"), gamma=n.number("gamma"))


def _prelu(n: OpNode) -> Arg:
    slope, axis = n.input(1), n.axis()
    beside = n.rank() - 1 - axis
    if n.rank(1) != 1:
        raise UnityError("takes one slope a channel")
    shape = n.w.vector((*n.dims(1), *([1] * beside)))
    return n.w.node("PRelu", [n.input(0), n.w.node("Reshape", [slope, shape])])


def _hard_sigmoid(n: OpNode) -> Arg:
    return n.w.node("HardSigmoid", n.inputs, alpha=n.number("alpha"), beta=n.number("beta"))


def _softplus(n: OpNode) -> Arg:
    if n.number("beta") != 1.0:
        raise UnityError("takes beta=1")
    return n.w.node("Softplus", n.inputs)


RULES: dict[str, NodeRule] = {
    **{op.name: plain(onnx) for onnx, op in OF_ONNX.items()},
    "divide": _divide,
    "square": _square,
    "rsqrt": _rsqrt,
    "not_equal": _not_equal,
    "clip": _clip,
    "astype": _astype,
    "quantize": _quantize("QuantizeLinear"),
    "dequantize": _quantize("DequantizeLinear"),
    "nn.gelu": _gelu("none"),
    "nn.gelu_tanh": _gelu("tanh"),
    "nn.silu": _silu,
    "nn.leakyrelu": _leaky,
    "nn.elu": _elu,
    "nn.selu": _selu,
    "nn.prelu": _prelu,
    "nn.hardsigmoid": _hard_sigmoid,
    "nn.softplus": _softplus,
}
