"""Kernels that are equal but for names become one: nothing is lowered twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.ir.graph import CallTir, Expr, FunctionRef, Var
from unity.ir.module import IRModule

from ..rewriter import BodyRewriter


def share_kernels(module: IRModule, identities: Mapping[str, str]) -> IRModule:
    """The module with each private kernel replaced by the first one that is equal to it.

    >>> from unity.ir.fingerprint import fingerprint
    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = R.call_tir(double, (x,), out=f32[Tensor, 4])
    ...     z = R.call_tir(twice, (y,), out=f32[Tensor, 4])
    ...     return z
    ... @script.prim_func(attrs={"private": True})
    ... def double(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         b[i] = a[i] * 2.0
    ... @script.prim_func(attrs={"private": True})
    ... def twice(c: f32[Buffer, 4], d: f32[Buffer, 4]) -> None:
    ...     for j in range(4):
    ...         d[j] = c[j] * 2.0
    ... ''')
    >>> after = share_kernels(before, {n: fingerprint(f) for n, f in before.prim_funcs().items()})
    >>> print(print_module(after), end="")
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        y = R.call_tir(double, (x,), out=f32[Tensor, 4])
        z = R.call_tir(double, (y,), out=f32[Tensor, 4])
        return z
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"private": True})
    def double(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
        for i in range(4):
            b[i] = a[i] * 2.0

    Args:
        module: The module.
        identities: The fingerprint of each kernel that may be shared.
    """
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    for name, func in module.prim_funcs().items():
        if name in identities and func.attrs.get("private"):
            kept = first.setdefault(identities[name], name)
            if kept != name:
                same[name] = kept
    if not same:
        return module
    functions = module.graph_functions().items()
    callers = {name: _Caller(module, same).function(f) for name, f in functions}
    return module.with_(callers).without(*same)


class _Caller(BodyRewriter):
    """Carries what each kernel is called from now on."""

    def __init__(self, module: IRModule, same: Mapping[str, str]) -> None:
        super().__init__(module)
        self.same = same

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, CallTir) or value.callee.name not in self.same:
            return value
        return replace(value, callee=FunctionRef(self.same[value.callee.name]))
