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
    check_lanes,
    compile_expr,
    compile_index,
    masked,
    out_of_bounds,
)
from unity.interpreter.storage import fresh, fresh_strided
from unity.ir.empty_reduction import init_of_empty
from unity.ir.prim_expr import Imm, Intrinsic
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
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
        case Evaluate(Intrinsic("prefetch")):  # the element may lie outside its buffer
            return _sequence([])
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
        extents = [max(0, n(frame)) for n in shape]  # of less than nothing, there is nothing
        if buffer.strides is None:
            frame[slot] = fresh(extents, dtype)
        else:
            frame[slot] = fresh_strided(extents, [n(frame) for n in strides], dtype)

    return run


def _loop(s: For, slots: Slots) -> Run:
    begin, extent = compile_expr(s.begin, slots), compile_expr(s.extent, slots)
    slot = slots.define(s.var)
    instead = init_of_empty(s)
    empty = None if instead is None else compile_stmt(instead, slots)
    body = compile_stmt(s.body, slots)

    def run(frame: Frame) -> None:
        first, count = begin(frame), extent(frame)
        if empty is not None and count <= 0:
            empty(frame)
        for i in range(first, first + count):
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
    if all(i.dtype.lanes == 1 for i in s.indices):
        return _scalar_store(s, slots)
    slot, index_of = slots.of(buffer), compile_index(buffer, s.indices, slots)
    value = compile_expr(s.value, slots)
    keep = None if s.predicate is None else compile_expr(s.predicate, slots)

    def store(frame: Frame) -> None:
        array, index, active = frame[slot], index_of(frame), active_lanes(keep, frame)
        held = value(frame)
        if active is not None:
            index, held = masked(index, active), np.broadcast_to(held, active.shape)[active]
        check_lanes(buffer.name, array, index)
        array[index] = held

    return store


def _scalar_store(s: Store, slots: Slots) -> Run:
    name, slot = s.buffer.name, slots.of(s.buffer)
    if s.value.dtype.lanes > 1:
        raise UnityError(f"a vector is stored in one element of {name!r}", s.span)
    index_of, value = compile_index(s.buffer, s.indices, slots), compile_expr(s.value, slots)
    keep = None if s.predicate is None else compile_expr(s.predicate, slots)

    def store(frame: Frame) -> None:
        if keep is not None and not keep(frame):
            return
        array, index, held = frame[slot], index_of(frame), value(frame)
        try:
            if not index or min(index) >= 0:
                array[index] = held
                return
        except IndexError:
            pass
        except ValueError:  # numpy's word for a write to a read-only array
            raise UnityError(f"the kernel writes to {name!r}, which it only may read") from None
        raise out_of_bounds(name, array, index)

    return store


def _block(s: Block, slots: Slots) -> Run:
    keep = None if s.predicate is None else compile_expr(s.predicate, slots)
    binders = [_binder(axis, s, slots) for axis in s.axes]
    allocations = [_allocate(buffer, slots) for buffer in s.allocations]
    init = None if s.init is None else compile_stmt(s.init, slots)
    body = compile_stmt(s.body, slots)

    def run(frame: Frame) -> None:
        if keep is not None and not keep(frame):
            return
        first = True
        for bind in binders:
            if not bind(frame):
                first = False
        for allocate in allocations:
            allocate(frame)
        if init is not None and first:
            init(frame)
        body(frame)

    return run


def _binder(axis: BlockAxis, block: Block, slots: Slots) -> Callable[[Frame], bool]:
    """Binds an axis, which must be in its domain; tells whether the init may run there."""
    value = compile_expr(axis.value, slots)
    begin = compile_expr(axis.domain.begin, slots)
    extent = compile_expr(axis.domain.extent, slots)
    slot, reduces = slots.define(axis.var), axis.kind == "R"

    def bind(frame: Frame) -> bool:
        at, low = value(frame), begin(frame)
        if not low <= at < low + extent(frame):
            raise outside(at, low, extent(frame))
        frame[slot] = at
        return not reduces or at == low

    def outside(at: int, low: int, size: int) -> UnityError:
        return UnityError(
            f"block {block.name!r}: axis {axis.var.name!r} is {at}, "
            f"outside its domain [{low}, {low + size})",
            block.span,
        )

    domain = axis.domain
    if not isinstance(domain.begin, Imm) or not isinstance(domain.extent, Imm):
        return bind
    first, size = int(domain.begin.value), int(domain.extent.value)

    def bind_constant(frame: Frame) -> bool:  # the same, without evaluating the domain
        at = value(frame)
        if not first <= at < first + size:
            raise outside(at, first, size)
        frame[slot] = at
        return not reduces or bool(at == first)

    return bind_constant
