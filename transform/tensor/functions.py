"""What tensor passes share: one prim func rewritten after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc, Stmt


def map_prim_funcs(module: IRModule, rewrite: Callable[[PrimFunc], PrimFunc]) -> IRModule:
    """The module with every prim func rewritten; the same object if none changed."""
    return module.with_({name: rewrite(f) for name, f in module.prim_funcs().items()})


def with_body(func: PrimFunc, body: Stmt) -> PrimFunc:
    """The prim func with another body; the same object if it is the same."""
    return func if body is func.body else replace(func, body=body)
