"""JoinDequantize: weights that plain arithmetic dequantizes are calls of `dequantize`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, INT8, UINT8, Array, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.op.registry import dtype_attr

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..simplify.fold import PRODUCTS
from ..uses import count_uses


@dataclass(frozen=True, slots=True)
class JoinDequantize(Pass):
    """``(weight - zero) * scale`` of 8-bit integers is ``dequantize(weight, scale, zero)``.

    So exporters write it that have no operator for it: a cast, maybe a subtraction, a product by
    one scale or by one for each index of an axis. Only weights of products are looked at: passes
    for quantized weights know what to do with them.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 3, 8]) -> f32[Tensor, 3, 9]:
    ...     w = R.astype(R.const("w"), "float32")
    ...     return R.matmul(x, R.multiply(R.subtract(w, 3.0), 0.5))
    ... ''', {"w": np.ones((8, 9), np.int8)})
    >>> for line in print_module(JoinDequantize()(before, Context())).splitlines()[-3:-1]:
    ...     print(line.strip())
    multiply = R.dequantize(R.const("w"), 0.5, 3)
    matmul = R.matmul(x, multiply)
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Joiner(module, _weights(f)).function(f))


def _weights(f: Function) -> frozenset[Var]:
    """What only products read as weights, or what exchanges axes for them."""
    calls = {
        b.var: b.value
        for b in walk_bindings(f)
        if isinstance(b, VarBinding) and isinstance(b.value, Call)
    }
    read: defaultdict[Var, int] = defaultdict(int)
    uses = count_uses(f.body)

    def look(var: Var) -> None:
        """Count a variable read as a weight; what it was turned from, if it is alone, as well."""
        read[var] += 1
        match calls.get(var):
            case Call(Op("permute_dims"), (Var() as source,)) if read[var] == uses[var]:
                look(source)
            case _:
                pass

    for call in calls.values():
        match call:
            case Call(Op(name), (_, Var() as weight)) if name in PRODUCTS:
                look(weight)
            case _:
                pass
    return frozenset(v for v, count in read.items() if count == uses[v])


class _Joiner(BodyRewriter):
    """Carries what products read as weights."""

    def __init__(self, module: IRModule, weights: frozenset[Var]) -> None:
        super().__init__(module)
        self.weights = weights

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if var not in self.weights:
            return value
        match value:
            case Call(Op("multiply"), (Var() as x, Constant() as scale)):
                return self.joined(value, x, scale) or value
            case Call(Op("multiply"), (Constant() as scale, Var() as x)):
                return self.joined(value, x, scale) or value
            case _:
                return value

    def joined(self, call: Call, x: Var, scale: Constant) -> Call | None:
        """A product of integers that were cast, by their scale; None for anything else."""
        made, zero = self.values.get(x), Constant(np.zeros((), np.int32))
        match made:
            case Call(Op("subtract"), (Var() as wide, Constant() as zero)):
                made = self.values.get(wide)
            case _:
                pass
        match made:
            case Call(Op("astype"), (Constant(data) as weight,), attrs):
                pass
            case _:
                return None
        if dtype_attr(attrs, "dtype") != FLOAT32 or dtype(data.dtype) not in (INT8, UINT8):
            return None
        if dtype(scale.data.dtype) != FLOAT32 or data.ndim < 2:
            return None
        whole = np.asarray(np.rint(zero.data.astype(np.float64)))
        if not np.array_equal(whole, zero.data) or np.any(np.abs(whole) > 255):
            return None
        axes = [_axis(p, data) for p in (scale.data, zero.data)]
        if None in axes or (axes[0] != axes[1] and -1 not in axes):
            return None
        by, at = (
            np.asarray(p.reshape(() if axis == -1 else -1))
            for p, axis in zip((scale.data, whole.astype(np.int32)), axes, strict=True)
        )
        along = next((a for a in axes if a != -1), -1)
        found = Attrs(axis=along, out_dtype=FLOAT32, block=0)
        return Call(Op("dequantize"), (weight, Constant(by), Constant(at)), found, call.span)


def _axis(parameter: Array, data: Array) -> int | None:
    """The one axis of weights that numbers differ along; -1 for a single number, else None."""
    if parameter.size == 1:
        return -1 if parameter.ndim <= data.ndim else None
    if parameter.ndim > data.ndim:
        return None
    shape = (1,) * (data.ndim - parameter.ndim) + parameter.shape
    long = [k for k, n in enumerate(shape) if n != 1]
    return long[0] if len(long) == 1 and shape[long[0]] == data.shape[long[0]] else None
