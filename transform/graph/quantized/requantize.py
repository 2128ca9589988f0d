"""What products of integers read, quantized and dequantized by plain arithmetic in float32.

A division by a scale becomes a product by its inverse, which is multiplied into scales that were
there before: results may differ by one quantum, where a number is half way between two.
"""

from __future__ import annotations

import numpy as np

from unity.ir.dtype import FLOAT32, UINT8, Array, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit import walk_bindings
from unity.op.call import call_op
from unity.op.elementwise.quantize import limits
from unity.op.registry import dtype_attr

from ..rewriter import BodyRewriter
from ..uses import count_uses

MOVES = frozenset(
    {"reshape", "permute_dims", "nn.max_pool2d", "strided_slice", "squeeze", "expand_dims", "take"}
)
"""What picks or moves elements: the same of integers as of the reals they stand for."""


class Requantizer(BodyRewriter):
    """Carries which integers are read by products, and how often variables are used."""

    def __init__(self, module: IRModule, read: frozenset[Var], f: Function) -> None:
        super().__init__(module)
        self.read = read | _moved(f)
        self.uses = count_uses(f.body)

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A call of `quantize` or `dequantize` as arithmetic."""
        match value:
            case Call(Op("quantize"), (x, Constant(scale), Constant(zero))) if var in self.read:
                return self.quantized(value, x, scale, zero) or value
            case Call(Op("dequantize"), (Var() as q, Constant(scale), Constant(zero))):
                alone = scale.ndim == 0 and zero.ndim == 0
                real = {dtype(scale.dtype), dtype_attr(value.attrs, "out_dtype")} == {FLOAT32}
                if not alone or not real:
                    return value
                if q in self.read:
                    return self.dequantized(value, q, zero)
                return self.held(value, self.values.get(q)) or value
            case _:
                return value

    def dequantized(self, call: Call, q: Var, zero: Array) -> Call:
        """Integers as reals."""
        reals: Expr = self.emit(call_op("astype", q, dtype=FLOAT32), "reals", call.span)
        if zero:
            point = Constant(np.asarray(zero.astype(np.float32)))
            reals = self.emit(call_op("subtract", reals, point), "centred", call.span)
        return call_op("multiply", reals, call.args[1], span=call.span)

    def quantized(self, call: Call, x: Expr, scale: Array, zero: Array) -> Call | None:
        """A real quantized; None where its scale has no inverse, or there are several."""
        if zero.ndim:
            return None
        out, span = dtype_attr(call.attrs, "out_dtype"), call.span
        low, high = limits(out)
        if zero.ndim:
            return None
        if int(zero) == low:
            x = self.without_relu(x)
        whole = self.steps(call, x, scale)
        if whole is None:
            return None
        if zero:
            point = Constant(np.asarray(zero.astype(np.float32)))
            whole = self.emit(call_op("add", whole, point), "moved", span)
        held = self.emit(call_op("clip", whole, min=float(low), max=float(high)), "held", span)
        return call_op("astype", held, dtype=out, span=span)

    def held(self, call: Call, made: Expr | None) -> Call | None:
        """What quantizing leaves of a real, where it is dequantized by the same scale."""
        match made:
            case Call(Op("quantize"), (x, Constant(by), Constant(at))):
                pass
            case _:
                return None
        _, scale, zero = call.args
        assert isinstance(scale, Constant)
        assert isinstance(zero, Constant)
        if not np.array_equal(by, scale.data) or not np.array_equal(at, zero.data):
            return None
        low, high = limits(dtype_attr(made.attrs, "out_dtype"))
        point = int(at)
        whole = self.steps(made, self.without_relu(x) if point == low else x, by)
        if whole is None:
            return None
        if point == low:
            held = self.emit(call_op("clip", whole, min=0.0, max=float(high - low)), "held")
            return call_op("multiply", held, scale, span=call.span)
        least, most = (np.array(n - point, np.float32) for n in (low, high))
        above = self.emit(call_op("maximum", whole, Constant(least)), "above", call.span)
        held = self.emit(call_op("minimum", above, Constant(most)), "held", call.span)
        return call_op("multiply", held, scale, span=call.span)

    def steps(self, call: Call, x: Expr, scale: Array) -> Var | None:
        """A real in steps of its scale, rounded; None where there is no inverse of that."""
        with np.errstate(all="ignore"):
            inverse = np.asarray(np.float32(1) / scale.astype(np.float32))
        kind = atom_type(x)
        if scale.ndim or not np.isfinite(inverse) or inverse <= 0:
            return None
        if not isinstance(kind, TensorType) or kind.dtype != FLOAT32:
            return None
        steps = self.emit(self.by(x, inverse) or _times(x, inverse), "steps", call.span)
        return self.emit(call_op("round", steps), "whole", call.span)

    def without_relu(self, x: Expr) -> Expr:
        """What is clipped at zero again, when it is quantized."""
        match self.values.get(x) if isinstance(x, Var) else None:
            case Call(Op("nn.relu"), (inner,)):
                return inner
            case _:
                return x

    def by(self, x: Expr, factor: Array) -> Call | None:
        """What is scaled anyway, scaled by a factor more; None for anything else."""
        made = self.values.get(x) if isinstance(x, Var) and self.uses[x] == 1 else None
        match made:
            case Call(Op("multiply"), (inner, Constant(scale))):
                if dtype(scale.dtype) != FLOAT32:
                    return None
                return _times(inner, np.asarray(np.multiply(scale, factor, dtype=np.float32)))
            case Call(Op("add"), (Var() as inner, Constant(bias))):
                product = self.by(inner, factor)
                if product is None:
                    return None
                scaled = self.emit(product, inner.name, made.span)
                return call_op(
                    "add",
                    scaled,
                    Constant(np.asarray(np.multiply(bias, factor, dtype=np.float32))),
                    span=made.span,
                )
            case Call(Op("nn.relu"), (Var() as inner,)):
                product = self.by(inner, factor)
                if product is None:
                    return None
                return call_op("nn.relu", self.emit(product, inner.name, made.span))
            case _:
                return None


def _times(x: Expr, factor: Array) -> Call:
    return call_op("multiply", x, Constant(factor))


def _moved(f: Function) -> frozenset[Var]:
    """Integers that are moved as such."""
    found: set[Var] = set()
    for binding in walk_bindings(f):
        match binding.value:
            case Call(Op(name), (Var() as q, *_)) if name in MOVES and _is_byte(q.type):
                found.add(q)
                if isinstance(binding.var.type, TensorType):
                    found.add(binding.var)
            case _:
                pass
    return frozenset(found)


def _is_byte(kind: Type) -> bool:
    return isinstance(kind, TensorType) and kind.dtype == UINT8
