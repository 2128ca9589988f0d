"""FuseTir: each primitive function becomes one kernel."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.graph import Call, CallTir, Expr, FunctionRef, ShapeValue, Var
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc

from ...passes import Context, Pass
from ..rewriter import BodyRewriter
from ..symbols import tensor_fields
from .merge_kernels import merge
from .transposed_reads import inlined


@dataclass(frozen=True, slots=True)
class FuseTir(Pass):
    """Merges the kernels of every primitive function into one, and calls it in its place.

    Values between the merged kernels are inlined into their readers where each element is given by
    one formula; otherwise they are temporaries of the kernel, and the schedule decides. Transposed
    tensors whose rows are picked often are such, too (`transposed_reads.py`).

    >>> from unity.script import parse, print_module
    >>> from .fuse_ops import FuseOps
    >>> from unity.transform.graph import LegalizeOps
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 4], b: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    ...     with R.dataflow():
    ...         y = R.exp(R.nn.relu(R.add(x, b)))
    ...     return y
    ... ''')
    >>> fused = FuseOps()(LegalizeOps()(before, Context()), Context())
    >>> after = FuseTir()(fused, Context())
    >>> print(print_module(after.without("add", "relu", "exp")), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 4], b: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
        with R.dataflow():
            y = R.call_tir(fused_add_relu_exp, (x, b), out=f32[Tensor, n, 4])
        return y
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"num_outputs": 1, "pattern": "broadcast", "private": True})
    def fused_add_relu_exp(x: f32[Buffer, n, 4], b: f32[Buffer, 4], y: f32[Buffer, n, 4]) -> None:
        for i0, i1 in T.grid(n, 4):
            with T.block("exp"):
                vi0, vi1 = T.axis.remap("SS", i0, i1)
                y[vi0, vi1] = T.exp(T.max(x[vi0, vi1] + b[vi1], 0.0))
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Kernels first, then their callers."""
        primitives = {
            name: f for name, f in module.graph_functions().items() if f.attrs.get("primitive")
        }
        if not primitives:
            return module
        kernels: dict[str, PrimFunc] = {}
        for name, f in primitives.items():
            kernel, between = merge(f, module)
            kernels[name] = inlined(kernel, between)
        callers = {
            name: _Caller(module, frozenset(primitives)).function(f)
            for name, f in module.graph_functions().items()
            if name not in primitives
        }
        return module.with_({**callers, **kernels})


class _Caller(BodyRewriter):
    """Carries the names of what became kernels."""

    def __init__(self, module: IRModule, primitives: frozenset[str]) -> None:
        super().__init__(module)
        self.primitives = primitives

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call) or not isinstance(value.callee, FunctionRef):
            return value
        if value.callee.name not in self.primitives:
            return value
        out = tensor_fields(var.type)
        assert out is not None
        sizes = [d for a in value.args if isinstance(a, ShapeValue) for d in a.dims]
        tensors = tuple(a for a in value.args if not isinstance(a, ShapeValue))
        return CallTir(value.callee, tensors, out, tuple(sizes), span=value.span)
