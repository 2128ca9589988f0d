"""Statements, each compiled once to a Python closure that runs it in a frame.

Loops of every kind run in order; a parallel or thread-bound loop means the same as a serial one
(kernels whose threads communicate through barriers are not interpreted).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

import numpy as np

from unity.errors import UnityError
from unity.interpreter.expr import (
    Eval,
    Frame,
    Slots,
    active_lanes,
    compile_expr,
    compile_indices,
    masked,
)
from unity.interpreter.storage import fresh, fresh_strided
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)

Run: TypeAlias = Callable[[Frame], None]


def compile_stmt(s: Stmt, slots: Slots) -> Run:
    """The closure that runs a statement.

    Raises:
        UnityError: The statement is ill-formed (dtypes, ranks, undefined names).
    """
    match s:
        case Seq(stmts):
            return _sequence([compile_stmt(each, slots) for each in stmts])
        case For():
            return _loop(s, slots)
        case Block():
            return _block(s, slots)
        case Store():
            return _store(s, slots)
        case IfThen(condition, then, orelse):
            test, yes = compile_expr(condition, slots), compile_stmt(then, slots)
            no = compile_stmt(orelse or Seq(()), slots)
            return lambda frame: yes(frame) if test(frame) else no(frame)
        case Let(var, value, body):
            if var.dtype != value.dtype:
                raise UnityError(f"{var.name!r} of {var.dtype} is bound to a {value.dtype}", s.span)
            evaluate = compile_expr(value, slots)
            slot = slots.define(var)
            return _sequence([_assign(slot, evaluate), compile_stmt(body, slots)])
        case Allocate(buffer, body):
            return _sequence([_allocate(buffer, slots), compile_stmt(body, slots)])
        case PrimWhile(condition, body):
            return _while(compile_expr(condition, slots), compile_stmt(body, slots))
        case Assert():
            return _assert(s, slots)
        case Evaluate(value):
            evaluate = compile_expr(value, slots)

            def discard(frame: Frame) -> None:
                evaluate(frame)

            return discard
        case _:
            assert_never(s)


def _sequence(runs: list[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]

    def run(frame: Frame) -> None:
        for each in runs:
            each(frame)

    return run


def _assign(slot: int, evaluate: Eval) -> Run:
    def run(frame: Frame) -> None:
        frame[slot] = evaluate(frame)

    return run


def _allocate(buffer: Buffer, slots: Slots) -> Run:
    shape = [compile_expr(n, slots) for n in buffer.shape]
    strides = [compile_expr(n, slots) for n in buffer.strides or ()]
    slot, dtype = slots.define(buffer), buffer.dtype

    def run(frame: Frame) -> None:
        extents = [n(frame) for n in shape]
        if buffer.strides is None:
            frame[slot] = fresh(extents, dtype)
        else:
            frame[slot] = fresh_strided(extents, [n(frame) for n in strides], dtype)

    return run


def _loop(s: For, slots: Slots) -> Run:
    begin, extent = compile_expr(s.begin, slots), compile_expr(s.extent, slots)
    slot = slots.define(s.var)
    body = compile_stmt(s.body, slots)

    def run(frame: Frame) -> None:
        first = begin(frame)
        for i in range(first, first + extent(frame)):
            frame[slot] = i
            body(frame)

    return run


def _while(test: Eval, body: Run) -> Run:
    def run(frame: Frame) -> None:
        while test(frame):
            body(frame)

    return run


def _assert(s: Assert, slots: Slots) -> Run:
    test = compile_expr(s.condition, slots)

    def run(frame: Frame) -> None:
        if not np.all(test(frame)):
            raise UnityError(s.message, s.span)

    return run


def _store(s: Store, slots: Slots) -> Run:
    buffer = s.buffer
    if s.value.dtype.element != buffer.dtype:
        raise UnityError(
            f"a value of {s.value.dtype} is stored in {buffer.name!r} of {buffer.dtype}", s.span
        )
    slot, place = slots.of(buffer), compile_indices(buffer, s.indices, slots)
    value = compile_expr(s.value, slots)
    keep = None if s.predicate is None else compile_expr(s.predicate, slots)
    lanes = max((i.dtype.lanes for i in s.indices), default=1)
    if lanes == 1 and s.value.dtype.lanes > 1:
        raise UnityError(f"a vector is stored in one element of {buffer.name!r}", s.span)

    def store(frame: Frame) -> None:
        if keep is not None and not keep(frame):
            return
        array, index = place(frame[slot], frame)
        array[index] = value(frame)

    def store_vector(frame: Frame) -> None:
        active = active_lanes(keep, frame)
        array, index = place(frame[slot], frame, active)
        held = value(frame)
        if active is None:
            array[index] = held
        else:
            array[masked(index, active)] = np.broadcast_to(held, active.shape)[active]

    return store if lanes == 1 else store_vector


def _block(s: Block, slots: Slots) -> Run:
    keep = None if s.predicate is None else compile_expr(s.predicate, slots)
    axes = []
    for axis in s.axes:
        begin, extent = (compile_expr(e, slots) for e in (axis.domain.begin, axis.domain.extent))
        axes.append((axis, compile_expr(axis.value, slots), begin, extent))
    slot_of = [slots.define(axis.var) for axis in s.axes]
    allocations = [_allocate(buffer, slots) for buffer in s.allocations]
    init = None if s.init is None else compile_stmt(s.init, slots)
    body = compile_stmt(s.body, slots)

    def run(frame: Frame) -> None:
        if keep is not None and not keep(frame):
            return
        first = True
        for slot, (axis, value, begin, extent) in zip(slot_of, axes, strict=True):
            at, low, size = value(frame), begin(frame), extent(frame)
            if not low <= at < low + size:
                raise UnityError(
                    f"block {s.name!r}: axis {axis.var.name!r} is {at}, "
                    f"outside its domain [{low}, {low + size})",
                    s.span,
                )
            frame[slot] = at
            first = first and (axis.kind != "R" or at == low)
        for allocate in allocations:
            allocate(frame)
        if init is not None and first:
            init(frame)
        body(frame)

    return run
