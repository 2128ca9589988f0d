"""MultiplyByReciprocals: divisions by constants become multiplications, rounded once more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import FLOAT32, dtype
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.module import IRModule

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class MultiplyByReciprocals(Pass):
    """A float32 division by a constant becomes a multiplication, which takes a quarter of the time.

    The result may differ in its last place. That is for programs whose products are rounded to
    bfloat16 or float16 anyway; those of float32 keep their divisions.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 2, 4]:
    ...     return R.divide(x, R.const(8.0, "float32"))
    ... ''')
    >>> print(print_module(MultiplyByReciprocals()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 2, 4]:
        divide = R.multiply(x, 0.125)
        return divide
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, _Multiplier(module).function)


class _Multiplier(BodyRewriter):
    """Replaces divisions whose reciprocals are normal numbers."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("divide"), (x, Constant(data) as divisor)):
                pass
            case _:
                return value
        if dtype(data.dtype) != FLOAT32:
            return value
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.asarray(np.float32(1) / data.astype(np.float32))
        least = float(np.finfo(np.float32).tiny)
        size = np.abs(inverse.astype(np.float64))
        if not bool(np.all((size >= least) & np.isfinite(size))):
            return value
        name = None if divisor.name is None else f"{divisor.name}_inverse"
        factor = Constant(inverse, name, divisor.span)
        return Call(Op("multiply"), (x, factor), value.attrs, value.span)
