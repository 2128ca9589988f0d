"""Functions for modules of kernels alone, which could not be called from Python else."""

from __future__ import annotations

from dataclasses import replace

from unity.errors import UnityError
from unity.ir.dtype import INT64
from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.convert import symbol_of
from unity.ir.types import PrimType
from unity.ir.visit import type_symbols

from .builder import GraphBuilder, graph_type


def with_entries(module: IRModule) -> IRModule:
    """A module of kernels alone with a function for each, of its name, that returns its outputs.

    The function takes the kernel's inputs, and the sizes that no input's shape tells. Kernels are
    called ``double_kernel`` then. Modules with graph functions are given back as they are.

    Raises:
        UnityError: No function can call a kernel: it takes numbers besides sizes, or has no output.

    >>> from unity.script import parse, print_module
    >>> module = parse('''
    ... @script.prim_func
    ... def double(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         y[i] = x[i] * 2.0
    ... ''')
    >>> print(print_module(with_entries(module)), end="")
    @script.function
    def double(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        with R.dataflow():
            double_kernel_1 = R.call_tir(double_kernel, (x,), out=f32[Tensor, 4])
        return double_kernel_1
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def double_kernel(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
        for i in range(4):
            y[i] = x[i] * 2.0
    """
    kernels = module.prim_funcs()
    if module.graph_functions() or not kernels:
        return module
    found = {name: d for name, d in module.functions.items() if name not in kernels}
    taken = {*module.functions, *(p.name for func in kernels.values() for p in func.params)}
    for name, func in kernels.items():
        called = f"{name}_kernel"
        while called in taken:
            called += "_"
        taken.add(called)
        found |= _entry(name, func, called).functions
    return replace(module, functions=found)


def _entry(name: str, func: PrimFunc, called: str) -> IRModule:
    """A function of a kernel's name that calls it."""
    count = func.attrs.get("num_outputs", 1)
    many = count if isinstance(count, int) else 1
    numbers = [p.name for p in func.params if isinstance(p, PrimVar)]
    if numbers or not 0 < many <= len(func.buffers):
        raise UnityError(
            f"{name} is a kernel that no function can call: "
            + (f"it takes the number {numbers[0]}" if numbers else "it has no output"),
            hint="decorated with @script.prim_func, it can be called with arrays and numbers",
        )
    inputs, outputs = func.buffers[: len(func.buffers) - many], func.buffers[-many:]
    b = GraphBuilder(name)
    args = [b.param(x.name, graph_type(x)) for x in inputs]
    told = {s for x in inputs for s in type_symbols(graph_type(x))}
    others = [s for x in outputs for s in type_symbols(graph_type(x))]
    others += [symbol_of(p) for p in func.params if isinstance(p, SizeVar)]
    for symbol in dict.fromkeys(s for s in others if s not in told):
        b.param(symbol.name, PrimType(INT64, symbol))
    result = b.emit_tir(func, args, [graph_type(x) for x in outputs], called)
    return b.finish(result)
