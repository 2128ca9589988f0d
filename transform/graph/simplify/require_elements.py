"""RequireElements: what has no result of nothing is refused where its axis turns out empty."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dims import always_ge, dim, product
from unity.ir.graph import Call, Expr, Op, ShapeValue, Var
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType
from unity.op.registry import axes_attr

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter

_OF_SOME = ("argmax", "argmin", "median")


@dataclass(frozen=True, slots=True)
class RequireElements(Pass):
    """Puts an assertion before each `R.argmax`, `R.argmin` and `R.median` over what may be empty.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, 4, n]) -> i64[Tensor, 4]:
    ...     y = R.argmax(x, axis=1)
    ...     return y
    ... ''')
    >>> print(print_module(RequireElements()(before, Context())), end="")
    elements_of_argmax = dim("elements_of_argmax", min=1)
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, 4, n]) -> i64[Tensor, 4]:
        y_over_nothing = R.match_cast(R.shape(n), R.Shape(elements_of_argmax))
        y = R.argmax(x, axis=1)
        return y
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Requiring(module).function(f))


class _Requiring(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op(name), (operand, *_)) if name in _OF_SOME:
                x = self.infer(operand)
            case _:
                return value
        if isinstance(x, TensorType) and isinstance(x.shape, tuple):
            over = axes_attr(value.attrs, "axis", len(x.shape))
            count = product(x.shape[k] for k in over)
            if not always_ge(count, 1):
                some = dim(self.fresh(f"elements_of_{name}").name, min=1)
                told = ShapeValue((count,), var.span)
                self.match_cast(told, ShapeType((some,)), f"{var.name}_over_nothing", var.span)
        return value
