"""A kernel at a call from another kernel: its body over what the call gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from unity.arith.analyzer import Analyzer
from unity.errors import UnityError
from unity.ir.prim_expr import Compare, Not, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.signature import sizes_of
from unity.ir.stmt import Assert, Buffer, Let, PrimFunc, Seq, Stmt
from unity.ir.visit import (
    bound_in,
    prim_loads,
    substitute_prim,
    substitute_stmt,
    temporaries,
    with_shape,
)

from .pointed import Pointer, Seen, count, must_hold, seen_through
from .printer import text

Given: TypeAlias = Buffer | Pointer | PrimExpr
Sizes: TypeAlias = dict[PrimVar | SizeVar, PrimExpr]


def inlined(
    name: str,
    callee: PrimFunc,
    args: Sequence[Given],
    visible: Collection[PrimVar] = (),
    known: Analyzer | None = None,
) -> Stmt:
    """What a call of a kernel does, with variables and memory of its own.

    Args:
        name: The callee's, for errors.
        callee: The kernel that is called.
        args: For each of its buffers one of that dtype, shape, strides and scope, or memory: a
            buffer of as many elements in another shape, or one from some element on, with as many
            elements behind it at least. An expression for each scalar and size.
        visible: Variables of the caller that regions of blocks may be over.
        known: What is known of the caller's variables.

    Raises:
        UnityError: They don't fit.
    """
    if len(args) != len(callee.params):
        raise UnityError(f"{name} takes {len(callee.params)} arguments, got {len(args)}")
    known = Analyzer() if known is None else known
    args, lets = _read_now(args)
    pairs = list(zip(callee.params, args, strict=True))
    sizes: Sizes = {}
    for param, arg in pairs:
        if isinstance(param, Buffer) and isinstance(arg, Buffer | Pointer):
            _note_sizes(param, arg, sizes)
        elif isinstance(param, SizeVar) and not isinstance(arg, Buffer | Pointer):
            sizes[param] = arg
            if prim_loads(arg):  # the memory may change during the call
                sizes[param] = read = PrimVar(param.name, arg.dtype)
                lets.append((read, arg))
    for param, arg in pairs:
        if isinstance(param, Buffer) and isinstance(arg, Buffer | Pointer):
            _note_count(param, arg, sizes)
    buffers: dict[Buffer, Buffer] = {}
    parts: dict[Buffer, Seen] = {}
    checks: list[Stmt] = []
    for param, arg in pairs:
        if isinstance(param, Buffer):
            given = _fitting(name, param, arg, sizes, known)
            if isinstance(given, Buffer):
                buffers[param] = given
            else:
                buffers[param] = given.own
                parts[given.own] = given
                checks += _checks(name, given, known)
        elif isinstance(arg, Buffer | Pointer) or arg.dtype != param.dtype:
            got = str(arg.dtype) if not isinstance(arg, Buffer | Pointer) else _named(arg)
            raise UnityError(f"{name}: {param.name!r} is {param.dtype}, got {got}")
        elif isinstance(param, PrimVar):
            lets.append((replace(param), arg))
            sizes[param] = lets[-1][0]
    for var in bound_in(callee.body):
        sizes[var] = replace(var)
    for own in temporaries(callee.body):
        buffers[own] = replace(with_shape(own, lambda e: substitute_prim(e, sizes)))
    body = substitute_stmt(callee.body, sizes, buffers)
    if parts:
        allowed = {*visible, *(var for var, _ in lets)}
        body = seen_through(body, parts, allowed, known)
    if checks:
        body = Seq((*checks, body))
    for var, value in reversed(lets):
        body = Let(var, value, body)
    return body


def _read_now(args: Sequence[Given]) -> tuple[list[Given], list[tuple[PrimVar, PrimExpr]]]:
    """What is given, where a pointer's indices are read before the call changes memory."""
    lets: list[tuple[PrimVar, PrimExpr]] = []
    found: list[Given] = []
    for arg in args:
        if not isinstance(arg, Pointer) or not any(map(prim_loads, arg.at)):
            found.append(arg)
            continue
        at: list[PrimExpr] = []
        for index in arg.at:
            if prim_loads(index):
                lets.append((PrimVar("at", index.dtype), index))
                index = lets[-1][0]
            at.append(index)
        found.append(Pointer(arg.buffer, tuple(at)))
    return found, lets


def _pointer(arg: Buffer | Pointer) -> Pointer:
    """The memory of what is given."""
    return arg if isinstance(arg, Pointer) else Pointer(arg, tuple(imm(0) for _ in arg.shape))


def _begins(arg: Buffer | Pointer) -> Buffer | None:
    """The buffer that what is given is, or is the beginning of."""
    if isinstance(arg, Buffer):
        return arg
    return arg.buffer if all(index == imm(0) for index in arg.at) else None


def _note_sizes(param: Buffer, arg: Buffer | Pointer, sizes: Sizes) -> None:
    """The sizes that stand alone in a parameter's shape or strides."""
    whole = _begins(arg)
    if whole is None or len(whole.shape) != len(param.shape):
        return
    for told, got in zip(_extents(param), _extents(whole), strict=False):
        if isinstance(told, SizeVar):
            sizes.setdefault(told, got)


def _note_count(param: Buffer, arg: Buffer | Pointer, sizes: Sizes) -> None:
    """The size of a parameter with one axis that nothing else tells: all elements of a buffer.

    Where it is given one from an element on, that is no more than where it begins.
    """
    whole = _begins(arg)
    match param.shape:
        case (SizeVar() as size,) if whole is not None and whole.strides is None:
            sizes.setdefault(size, count(whole.shape))
        case _:
            pass


def _fitting(name: str, param: Buffer, arg: Given, sizes: Sizes, known: Analyzer) -> Buffer | Seen:
    """The buffer given for a parameter, or the part of one."""
    if not isinstance(arg, Buffer | Pointer):
        raise UnityError(
            f"{name}: {param.name!r} is a buffer, got a value",
            hint="give it a buffer of the caller's, whole, or from an element on: "
            "T.address_of(a[i, 0])",
        )
    told = with_shape(param, lambda e: substitute_prim(e, sizes))
    given, whole = _pointer(arg), _begins(arg)
    kinds = (told.dtype, told.scope) == (given.buffer.dtype, given.buffer.scope)
    if kinds and whole is not None and _is_same(told, whole, known):
        return whole
    open_sizes = [s for e in _extents(param) for s in sizes_of(e) if s not in sizes]
    if open_sizes:
        raise UnityError(
            f"{name}: {param.name!r} is {_shown(told)}, got {_named(arg)}, "
            f"which does not tell {open_sizes[0].name}",
            hint="give it a buffer of as many axes, whole, or let the size be a parameter: "
            f"{open_sizes[0].name}: T.size",
        )
    compact = told.strides is None and given.buffer.strides is None
    groups = told.separators or given.buffer.separators
    as_many = Compare("eq", count(told.shape), count(given.buffer.shape))
    if not (kinds and compact) or groups or (arg is whole and not known.prove(as_many)):
        hint = "a kernel that another calls is given memory of the dtype, strides and scope that "
        hint += "it declares"
        if kinds and compact and not groups:
            hint = "a buffer in another shape has as many elements; one that has more is given by "
            hint += f"where its memory begins: T.address_of({_element(given)})"
        raise UnityError(
            f"{name}: {param.name!r} is {_shown(told)}, got {_shown(given.buffer)}", hint=hint
        )
    return Seen.of(replace(told), given, known)


def _is_same(told: Buffer, arg: Buffer, known: Analyzer) -> bool:
    """Whether two buffers have one shape and lie alike."""
    a, b = _extents(told), _extents(arg)
    if len(told.shape) != len(arg.shape) or len(a) != len(b):
        return False
    return a == b or all(known.prove(Compare("eq", x, y)) for x, y in zip(a, b, strict=True))


def _checks(name: str, seen: Seen, known: Analyzer) -> list[Stmt]:
    """What is not known of the memory that a kernel is given.

    Raises:
        UnityError: It is too small.
    """
    found: list[Stmt] = []
    for condition in must_hold(seen.own, seen.given):
        if known.prove(condition):
            continue
        message = (
            f"{name}: {seen.own.name!r} is {_shown(seen.own)}, which does not lie in "
            f"{seen.given.buffer.name}, {_shown(seen.given.buffer)}, from "
            f"{_element(seen.given)} on"
        )
        if known.prove(Not(condition)):
            raise UnityError(message, hint="give it memory of as many elements at least")
        found.append(Assert(condition, message))
    return found


def _extents(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """Shape and strides."""
    return (*buffer.shape, *(buffer.strides or ()))


def _named(arg: Buffer | Pointer) -> str:
    if isinstance(arg, Buffer):
        return f"the buffer {arg.name}"
    return f"the address of {_element(arg)}"


def _element(given: Pointer) -> str:
    return f"{given.buffer.name}[{', '.join(map(text, given.at)) or '()'}]"


def _shown(buffer: Buffer) -> str:
    strides = "" if buffer.strides is None else f" in strides {_listed(buffer.strides)}"
    return f"{buffer.dtype}{_listed(buffer.shape)}{strides} in {buffer.scope}"


def _listed(extents: Sequence[PrimExpr]) -> str:
    return f"({', '.join(map(text, extents))})"
