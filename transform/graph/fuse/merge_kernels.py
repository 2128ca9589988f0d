"""The kernels that a primitive function calls, put one after the other in a single prim func."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.ir.attrs import Attrs
from unity.ir.dims import Symbol
from unity.ir.graph import CallTir, Expr, Function, Tuple, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Allocate, Block, Buffer, For, Let, PrimFunc, Seq, Stmt
from unity.ir.symbols.convert import size_var, to_prim_expr
from unity.ir.types import ShapeType, TensorType, Type
from unity.ir.visit import substitute_prim, substitute_stmt, walk_bindings, walk_stmt
from unity.op.registry import Pattern

from ..symbols import kernel_sizes, shape_of
from .groups import LEVELS


def merge(function: Function, module: IRModule) -> tuple[PrimFunc, tuple[Buffer, ...]]:
    """One kernel for a primitive function.

    Args:
        function: Its body is kernel calls giving one tensor each; its result is the last one, or a
            tuple of several.
        module: Where the kernels are.

    Returns:
        The kernel, and the buffers between the calls, allocated around its statements.
    """
    buffers: dict[Expr, Buffer] = {}
    sizes: list[SizeVar] = []
    for param in function.params:
        if isinstance(param.type, TensorType):
            buffers[param] = _buffer(param.name, param.type)
        elif isinstance(param.type, ShapeType) and isinstance(param.type.dims, tuple):
            sizes += [size_var(d) for d in param.type.dims if isinstance(d, Symbol)]
    inputs = tuple(buffers.values())
    stmts: list[Stmt] = []
    patterns: list[Pattern] = []
    between: list[Buffer] = []
    for binding in walk_bindings(function):
        assert isinstance(binding, VarBinding)
        assert isinstance(binding.value, CallTir)
        buffers[binding.var] = _buffer(binding.var.name, binding.var.type)
        kernel = module[binding.value.callee.name]
        assert isinstance(kernel, PrimFunc)
        stmts.append(_body(kernel, binding.value, binding.var, buffers))
        patterns.append(_pattern(kernel))
        between.append(buffers[binding.var])
    result = function.body.result
    fields = result.fields if isinstance(result, Tuple) else (result,)
    outputs = tuple(buffers[e] for e in fields)
    between = [b for b in between if b not in outputs]
    body: Stmt = Seq(tuple(stmts))
    for buffer in reversed(between):
        body = Allocate(buffer, body)
    marks = Attrs(
        num_outputs=len(outputs), pattern=max(patterns, key=LEVELS.__getitem__), private=True
    )
    return PrimFunc((*inputs, *outputs, *sizes), body, marks), tuple(between)


def _buffer(name: str, t: Type) -> Buffer:
    assert isinstance(t, TensorType)
    assert t.dtype is not None
    return Buffer(name, tuple(to_prim_expr(d) for d in shape_of(t)), t.dtype)


def _pattern(kernel: PrimFunc) -> Pattern:
    found = kernel.attrs.get("pattern", "opaque")
    return next(p for p in LEVELS if p == found)


def _body(kernel: PrimFunc, call: CallTir, result: Var, buffers: Mapping[Expr, Buffer]) -> Stmt:
    """A kernel's statement over the buffers and sizes of a call, its own variables made anew."""
    actual = [buffers[a] for a in (*call.args, result)]
    types = [*(a.type for a in call.args if isinstance(a, Var)), result.type]
    sizes = kernel_sizes(kernel, types, call.sym_args)
    into: dict[PrimVar | SizeVar, PrimExpr] = {s: to_prim_expr(d) for s, d in sizes.items()}
    renamed = dict(zip(kernel.buffers, actual, strict=True))
    return fresh_copy(kernel.body, into, renamed)


def fresh_copy(
    body: Stmt,
    vars: Mapping[PrimVar | SizeVar, PrimExpr],
    buffers: Mapping[Buffer, Buffer],
) -> Stmt:
    """The statement with some things replaced, and every variable and buffer it binds new."""
    into = dict(vars)
    places = dict(buffers)
    for s in walk_stmt(body):
        match s:
            case For() | Let():
                into[s.var] = PrimVar(s.var.name, s.var.dtype, s.var.span)
            case Allocate():
                places[s.buffer] = _fresh(s.buffer, into)
            case Block():
                into.update((a.var, PrimVar(a.var.name, a.var.dtype)) for a in s.axes)
                places.update((b, _fresh(b, into)) for b in s.allocations)
            case _:
                pass
    return substitute_stmt(body, into, places)


def _fresh(buffer: Buffer, vars: Mapping[PrimVar | SizeVar, PrimExpr]) -> Buffer:
    return replace(buffer, shape=tuple(substitute_prim(e, vars) for e in buffer.shape))
