"""Activations quantized to int8 as uint8: the same integers, moved by 128, as dot products want."""

from __future__ import annotations

import numpy as np

from unity.ir.dtype import INT8, UINT8, Array
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.op.registry import dtype_attr

from ..rewriter import BodyRewriter
from ..uses import count_uses

OFFSET = 128


def unsigned(module: IRModule, f: Function) -> Function:
    """A function whose int8 activations are uint8, where nothing but `dequantize` reads them."""
    uses = count_uses(f.body)
    made: set[Var] = set()
    read: dict[Var, int] = {}
    for binding in walk_bindings(f):
        if not isinstance(binding, VarBinding):
            continue
        match binding.value:
            case Call(Op("quantize"), (Var(), Constant(), Constant(zero)), attrs):
                if zero.ndim == 0 and dtype_attr(attrs, "out_dtype") == INT8:
                    made.add(binding.var)
            case Call(Op("dequantize"), (Var() as q, Constant(), Constant(zero))):
                read[q] = read.get(q, 0) + (zero.ndim == 0)
            case _:
                pass
    found = frozenset(v for v in made if read.get(v, 0) == uses[v] > 0)
    return _Mover(module, found).function(f) if found else f


class _Mover(BodyRewriter):
    """Carries which variables are moved, and what they are bound to then."""

    def __init__(self, module: IRModule, found: frozenset[Var]) -> None:
        super().__init__(module)
        self.found = found
        self.moved: set[int] = set()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("quantize"), (x, scale, Constant(zero)), attrs) if var in self.found:
                attrs = attrs.with_(out_dtype=UINT8)
                new = Call(value.callee, (x, scale, moved(zero)), attrs, value.span)
                self.moved.add(id(new))
                return new
            case Call(Op("dequantize"), (Var() as q, scale, Constant(zero)), attrs):
                if id(self.values.get(q)) in self.moved:
                    return Call(value.callee, (q, scale, moved(zero)), attrs, value.span)
                return value
            case _:
                return value


def moved(zero: Array) -> Constant:
    """A zero point, which int8 need not hold, moved like what it belongs to."""
    return Constant(np.asarray(zero.astype(np.int32) + np.int32(OFFSET)))
