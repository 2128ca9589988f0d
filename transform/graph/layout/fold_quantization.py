"""FoldQuantization: what dequantizing costs at each call, where it need not be done then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.machine.target import Target
from unity.op.elementwise.quantize import limits
from unity.op.registry import dtype_attr, int_attr
from unity.op.table import OPS

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from .narrow_products import narrow_products


@dataclass(frozen=True, slots=True)
class FoldQuantization(Pass):
    """Constants are dequantized at compile time; reals that pass through integers stay reals.

    Dequantized weights take up to four times the memory of their integers, which
    `FoldConstants` therefore leaves alone; products and convolutions lay them out anew, and read
    them as reals. Where a quantized tensor is only dequantized by the same scale and zero point,
    nothing is stored in few bits: ``clip(round(x / scale), ...) * scale`` is the same to the bit,
    without a conversion there and back, and part of the kernel that computes `x`.
    Weights of products of few rows stay integers (`narrow_products.py`), which `PackWeights` lays
    out, with their axes as the product reads them.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 2, 4]:
    ...     q = R.quantize(x, 0.5, R.const(128, "uint8"), out_dtype="uint8")
    ...     return R.dequantize(q, 0.5, R.const(128, "uint8"))
    ... ''')
    >>> print(print_module(FoldQuantization()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 2, 4]:
        q = R.quantize(x, 0.5, R.const(128, "uint8"), out_dtype="uint8")
        steps = R.divide(x, 0.5)
        whole = R.round(steps)
        held = R.clip(whole, min=-128.0, max=127.0)
        dequantize = R.multiply(held, 0.5)
        return dequantize

    Attributes:
        narrow: Whether weights may stay integers.
    """

    narrow: bool = True

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, _Folder(module, ctx.target if self.narrow else None).function)


class _Folder(BodyRewriter):
    """Carries what integers are quantized from, and constants that were dequantized."""

    def __init__(self, module: IRModule, target: Target | None) -> None:
        super().__init__(module)
        self.target = target
        self.stay: frozenset[Var] = frozenset()
        self.folded: dict[tuple[int, bytes, bytes, Attrs], Constant] = {}

    def function(self, f: Function) -> Function:
        self.stay = frozenset() if self.target is None else narrow_products(f, self.target)
        return super().function(f)

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if var in self.stay:
            return value
        match value:
            case Call(Op("permute_dims"), (Var() as x,)) if x in self.stay:
                return self.turned(value, x)
            case Call(Op("dequantize"), (Constant() as x, Constant() as s, Constant() as z)):
                return self.constant(value, x, s, z)
            case Call(Op("dequantize"), (Var() as x, Constant(), Constant())):
                made = self.values.get(x)
                match made:
                    case Call(Op("quantize"), (real, Constant(), Constant())):
                        return self.held(value, var.type, made, real) or value
                    case _:
                        return value
            case _:
                return value

    def turned(self, call: Call, x: Var) -> Expr:
        """A matrix that stays integers, its axes exchanged."""
        match self.values[x]:
            case Call(callee, (Constant() as weight, scale, zero), attrs):
                data = derived(weight, np.ascontiguousarray(weight.data.T), "turned")
                axis = 1 - int_attr(attrs, "axis") % 2
                scale, zero = (_turned(e) for e in (scale, zero))
                return Call(callee, (data, scale, zero), attrs.with_(axis=axis), call.span)
            case _:
                return call

    def constant(self, call: Call, x: Constant, scale: Constant, zero: Constant) -> Constant:
        """A constant dequantized, once for all calls."""
        key = (id(x.data), scale.data.tobytes(), zero.data.tobytes(), call.attrs)
        if key not in self.folded:
            reference = OPS["dequantize"].reference
            assert reference is not None
            data = reference([x.data, scale.data, zero.data], call.attrs)
            assert isinstance(data, np.ndarray)
            self.folded[key] = derived(x, data, "dequantized")
        return self.folded[key]

    def held(self, call: Call, kind: Type, made: Call, real: Expr) -> Call | None:
        """What quantizing leaves of a real; None where both ways are not by one scale."""
        (_, by, at), (_, scale, zero) = made.args, call.args
        assert isinstance(by, Constant)
        assert isinstance(at, Constant)
        assert isinstance(scale, Constant)
        assert isinstance(zero, Constant)
        same = np.array_equal(by.data, scale.data) and np.array_equal(at.data, zero.data)
        alone = by.data.ndim == 0 and at.data.ndim == 0
        kinds = {dtype(by.data.dtype), dtype_attr(call.attrs, "out_dtype")}
        if not same or not alone or kinds != {FLOAT32} or atom_type(real) != kind:
            return None
        least, most = limits(dtype_attr(made.attrs, "out_dtype"))
        point, span = int(at.data), call.span
        steps = self.emit(Call(Op("divide"), (real, by), span=span), "steps", span)
        whole = self.emit(Call(Op("round"), (steps,), span=span), "whole", span)
        bounds = Attrs(min=float(least - point), max=float(most - point))
        held = self.emit(Call(Op("clip"), (whole,), bounds, span), "held", span)
        return Call(Op("multiply"), (held, scale), span=span)


def _turned(parameter: Expr) -> Expr:
    """Scales or zero points with their axes exchanged, where they have two."""
    match parameter:
        case Constant(data, name, span) if data.ndim == 2:
            return Constant(np.ascontiguousarray(data.T), name, span)
        case _:
            return parameter
