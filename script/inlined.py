"""A kernel at a call from another kernel: its body over what the call gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Buffer, Let, PrimFunc, Stmt
from unity.ir.visit import (
    bound_in,
    prim_loads,
    substitute_prim,
    substitute_stmt,
    temporaries,
    with_shape,
)

from .printer import text

Given: TypeAlias = Buffer | PrimExpr
Sizes: TypeAlias = dict[PrimVar | SizeVar, PrimExpr]


def inlined(name: str, callee: PrimFunc, args: Sequence[Given]) -> Stmt:
    """What a call of a kernel does, with variables and memory of its own.

    Args:
        name: The callee's, for errors.
        callee: The kernel that is called.
        args: A buffer for each of its buffers, of that dtype, shape, strides and scope; an
            expression for each scalar and size.

    Raises:
        UnityError: They don't fit.
    """
    if len(args) != len(callee.params):
        raise UnityError(f"{name} takes {len(callee.params)} arguments, got {len(args)}")
    sizes: Sizes = {}
    scalars: list[tuple[PrimVar, PrimExpr]] = []
    for param, arg in zip(callee.params, args, strict=True):
        if isinstance(param, Buffer) and isinstance(arg, Buffer):
            _note_sizes(param, arg, sizes)
        elif isinstance(param, SizeVar) and not isinstance(arg, Buffer):
            sizes[param] = arg
            if prim_loads(arg):  # the memory may change during the call
                sizes[param] = read = PrimVar(param.name, arg.dtype)
                scalars.append((read, arg))
    buffers: dict[Buffer, Buffer] = {}
    for param, arg in zip(callee.params, args, strict=True):
        if isinstance(param, Buffer):
            buffers[param] = _fitting(name, param, arg, sizes)
        elif isinstance(arg, Buffer) or arg.dtype != param.dtype:
            got = f"the buffer {arg.name}" if isinstance(arg, Buffer) else str(arg.dtype)
            raise UnityError(f"{name}: {param.name!r} is {param.dtype}, got {got}")
        elif isinstance(param, PrimVar):
            scalars.append((replace(param), arg))
            sizes[param] = scalars[-1][0]
    for var in bound_in(callee.body):
        sizes[var] = replace(var)
    for own in temporaries(callee.body):
        buffers[own] = replace(with_shape(own, lambda e: substitute_prim(e, sizes)))
    body = substitute_stmt(callee.body, sizes, buffers)
    for var, value in reversed(scalars):
        body = Let(var, value, body)
    return body


def _note_sizes(param: Buffer, arg: Buffer, sizes: Sizes) -> None:
    """The sizes that stand alone in a parameter's shape or strides."""
    for told, got in zip(_extents(param), _extents(arg), strict=False):
        if isinstance(told, SizeVar):
            sizes.setdefault(told, got)


def _fitting(name: str, param: Buffer, arg: Given, sizes: Sizes) -> Buffer:
    """The buffer given for a parameter."""
    if not isinstance(arg, Buffer):
        raise UnityError(
            f"{name}: {param.name!r} is a buffer, got a value",
            hint="give it a buffer of the caller's, whole",
        )
    told = with_shape(param, lambda e: substitute_prim(e, sizes))
    same = len(told.shape) == len(arg.shape) and _extents(told) == _extents(arg)
    if not same or (told.dtype, told.scope) != (arg.dtype, arg.scope):
        raise UnityError(
            f"{name}: {param.name!r} is {_shown(told)}, got {_shown(arg)}",
            hint="a kernel that another calls is given buffers as it declares them",
        )
    return arg


def _extents(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """Shape and strides."""
    return (*buffer.shape, *(buffer.strides or ()))


def _shown(buffer: Buffer) -> str:
    strides = "" if buffer.strides is None else f" in strides {_listed(buffer.strides)}"
    return f"{buffer.dtype}{_listed(buffer.shape)}{strides} in {buffer.scope}"


def _listed(extents: Sequence[PrimExpr]) -> str:
    return f"({', '.join(map(text, extents))})"
