"""Calls of kernels by kernels, which TVMScript writes in any order."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..parser.source import Source
from .syntax import path_of


def callees_first(source: Source, functions: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The functions of a module, each kernel behind those that it calls, which it gives buffers.

    Args:
        source: For errors.
        functions: Rewritten; calls are made statements, in place.

    Raises:
        UnityError: A kernel calls itself, by others or directly.
    """
    kernels = {f.name: f for f in functions if _is_kernel(f)}
    order: dict[str, ast.FunctionDef] = {}

    def place(function: ast.FunctionDef, within: Mapping[str, None]) -> None:
        for call in _calls(function, kernels):
            name = path_of(call.func)
            if name in within:
                raise source.error(call, f"the kernel {name!r} calls itself", "write a loop")
            if name not in order:
                place(kernels[name], {**within, name: None})
        order[function.name] = function

    for function in functions:
        if function.name not in kernels:
            order[function.name] = function
        elif function.name not in order:
            place(function, {function.name: None})
    return list(order.values())


def _is_kernel(function: ast.FunctionDef) -> bool:
    decorator = function.decorator_list[0]
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return path_of(called) == "script.prim_func"


def _calls(function: ast.FunctionDef, kernels: Mapping[str, ast.FunctionDef]) -> Iterator[ast.Call]:
    """The calls of kernels; ``T.evaluate(Module.f(...))`` is made the statement itself."""
    for node in ast.walk(function):
        match node:
            case ast.Expr(ast.Call(func, [ast.Call() as inner], [])) if (
                path_of(func) == "T.evaluate" and path_of(inner.func) in kernels
            ):
                node.value = inner
            case ast.Call() if path_of(node.func) in kernels:
                yield node
            case _:
                pass
