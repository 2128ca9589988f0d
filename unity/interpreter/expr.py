"""Prim expressions, each compiled once to a Python closure over the frame of a kernel's run.

A frame is a list: slot 0 holds the mask of active lanes (None: all), then one slot per variable,
symbol and buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.interpreter.scalar import COMPARE, Held, binary, caster, hold, holder
from unity.ir.foreign import ADDRESS_OF, CALL_EXTERN, is_address
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import (
    DIVISIONS,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
)
from unity.ir.stmt import Buffer
from unity.runtime.linking import foreign

Frame: TypeAlias = list[Any]
Eval: TypeAlias = Callable[[Frame], Held]
MASK = 0


class Slots:
    """Gives each variable, symbol and buffer its place in the frame."""

    def __init__(self) -> None:
        self._of: dict[PrimVar | SizeVar | Buffer, int] = {}

    def __len__(self) -> int:
        """The length of a frame."""
        return len(self._of) + 1

    def define(self, name: PrimVar | SizeVar | Buffer) -> int:
        """The slot of something that is bound here (again, if a pass used it twice)."""
        return self._of.setdefault(name, len(self._of) + 1)

    def of(self, name: PrimVar | SizeVar | Buffer) -> int:
        """The slot of something in scope.

        Raises:
            UnityError: Nothing around the use defines it.
        """
        slot = self._of.get(name)
        if slot is None:
            kind = {PrimVar: "variable", SizeVar: "symbol", Buffer: "buffer"}[type(name)]
            raise UnityError(f"the kernel uses the {kind} {name.name!r}, which it never defines")
        return slot


def compile_expr(e: PrimExpr, slots: Slots) -> Eval:
    """The closure that evaluates an expression in a frame.

    Raises:
        UnityError: Operand dtypes differ, an intrinsic or a variable is unknown.
    """
    match e:  # those that kernels have most of stand first
        case Load():
            return _load(e, slots)
        case Binary():
            return _binary(e, slots)
        case PrimVar() | SizeVar():
            slot = slots.of(e)
            return lambda frame: frame[slot]
        case Imm(value, dtype):
            constant = hold(value, dtype)
            return lambda frame: constant
        case Compare(op, a, b):
            _same_dtype(op, a, b)
            left, right, function = compile_expr(a, slots), compile_expr(b, slots), COMPARE[op]
            if max(a.dtype.lanes, b.dtype.lanes) > 1:
                return lambda frame: function(left(frame), right(frame))
            return lambda frame: bool(function(left(frame), right(frame)))
        case Not(a):
            inner = compile_expr(a, slots)
            if a.dtype.lanes > 1:
                return lambda frame: np.logical_not(inner(frame))
            return lambda frame: not inner(frame)
        case Select(condition, then, orelse):
            _same_dtype("select", then, orelse)
            test = compile_expr(condition, slots)
            yes, no = compile_expr(then, slots), compile_expr(orelse, slots)
            if condition.dtype.lanes > 1:
                return _vector_select(test, yes, no, hold(0, e.dtype))
            return lambda frame: yes(frame) if test(frame) else no(frame)
        case Cast(dtype, value):
            inner, convert = compile_expr(value, slots), caster(value.dtype, dtype)
            return lambda frame: convert(inner(frame))
        case Intrinsic():
            return _intrinsic(e, slots)
        case Ramp(base, stride, lanes):
            start, step = compile_expr(base, slots), compile_expr(stride, slots)
            steps, numpy_type = np.arange(lanes), base.dtype.numpy
            return lambda frame: (start(frame) + step(frame) * steps).astype(numpy_type)
        case Broadcast(value, lanes):
            inner, numpy_type = compile_expr(value, slots), value.dtype.numpy
            return lambda frame: np.full(lanes, inner(frame), numpy_type)
        case _:
            assert_never(e)


def _binary(e: Binary, slots: Slots) -> Eval:
    """An operation; a variable or a number beside it is read without a call of its own."""
    op, a, b = e.op, e.a, e.b
    _same_dtype(op, a, b)
    dtype = a.dtype if a.dtype.lanes >= b.dtype.lanes else b.dtype
    function = binary(op, dtype)
    left, right = compile_expr(a, slots), compile_expr(b, slots)
    if op in DIVISIONS and dtype.lanes > 1 and not dtype.is_float:
        return lambda frame: function(left(frame), _divisors(right(frame), frame[MASK]))
    match a, b:
        case ((PrimVar() | SizeVar()), Imm(value)):
            slot, constant = slots.of(a), hold(value, b.dtype)
            return lambda frame: function(frame[slot], constant)
        case ((PrimVar() | SizeVar()), _):
            slot = slots.of(a)
            return lambda frame: function(frame[slot], right(frame))
        case _, (PrimVar() | SizeVar()):
            slot = slots.of(b)
            return lambda frame: function(left(frame), frame[slot])
        case _, Imm(value):
            constant = hold(value, b.dtype)
            return lambda frame: function(left(frame), constant)
        case _:
            return lambda frame: function(left(frame), right(frame))


def _same_dtype(what: str, a: PrimExpr, b: PrimExpr) -> None:
    if a.dtype.element != b.dtype.element:
        raise UnityError(f"{what!r} joins values of {a.dtype} and {b.dtype}")


def _divisors(value: Held, mask: npt.NDArray[np.bool_] | None) -> Held:
    """What lanes divide by: those that are off divide nothing, whatever they hold."""
    return value if mask is None else np.where(mask, value, np.ones_like(value))


def _vector_select(test: Eval, yes: Eval, no: Eval, zero: Held) -> Eval:
    """Each branch runs with the lanes of the other masked, so that it loads nothing for them."""

    def masked_by(mask: npt.NDArray[np.bool_], branch: Eval, frame: Frame) -> Held:
        if not mask.any():
            return zero
        outer = frame[MASK]
        frame[MASK] = mask
        result = branch(frame)
        frame[MASK] = outer
        return result

    def select(frame: Frame) -> Held:
        condition, outer = test(frame), frame[MASK]
        active = np.ones_like(condition) if outer is None else outer
        then = masked_by(condition & active, yes, frame)
        orelse = masked_by(~condition & active, no, frame)
        return np.where(condition, then, orelse)

    return select


def _intrinsic(e: Intrinsic, slots: Slots) -> Eval:
    if e.name == CALL_EXTERN:
        return _foreign_call(e, slots)
    if e.name == ADDRESS_OF:
        return _address(e, slots)
    row = INTRINSICS.get(e.name)
    if row is None:
        raise UnityError(f"unknown intrinsic {e.name!r}", hint=f"known: {', '.join(INTRINSICS)}")
    function, dtype = row.evaluate, e.dtype
    args = [(compile_expr(a, slots), a.dtype.numpy) for a in e.args]
    numpy_type = dtype.numpy

    def call(frame: Frame) -> Held:
        result = function(*[np.asarray(arg(frame), kind)[()] for arg, kind in args])
        return hold(np.asarray(result).astype(numpy_type)[()], dtype)

    return call


def _foreign_call(e: Intrinsic, slots: Slots) -> Eval:
    """The real function, called on the real memory."""
    symbol, returns = str(e.attrs["symbol"]), str(e.attrs["returns"])
    args = [compile_expr(a, slots) for a in e.args]
    kinds = ["address" if is_address(a) else str(a.dtype) for a in e.args]

    def call(frame: Frame) -> Held:
        numbers = [np.asarray(a(frame)).item() for a in args]
        return hold(foreign.call(symbol, returns, numbers, kinds), e.dtype)

    return call


def _address(e: Intrinsic, slots: Slots) -> Eval:
    (element,) = e.args
    assert isinstance(element, Load)
    slot, index_of = slots.of(element.buffer), compile_index(element.buffer, element.indices, slots)

    def address(frame: Frame) -> Held:
        array = frame[slot]
        steps = zip(index_of(frame), array.strides, strict=True)
        return array.ctypes.data + sum(int(i) * step for i, step in steps)

    return address


def _load(e: Load, slots: Slots) -> Eval:
    slot, index_of = slots.of(e.buffer), compile_index(e.buffer, e.indices, slots)
    keep = None if e.predicate is None else compile_expr(e.predicate, slots)
    if e.dtype.lanes > 1:
        return _vector_load(e.buffer, slot, index_of, keep)
    name, read, zero = e.buffer.name, holder(e.buffer.dtype), hold(0, e.buffer.dtype)

    def load(frame: Frame) -> Held:
        if keep is not None and not keep(frame):
            return zero
        array, index = frame[slot], index_of(frame)
        try:
            if not index or min(index) >= 0:
                return read(array[index])
        except IndexError:
            pass
        raise out_of_bounds(name, array, index)

    return load


def _vector_load(buffer: Buffer, slot: int, index_of: IndexOf, keep: Eval | None) -> Eval:
    def load(frame: Frame) -> Held:
        array, index, active = frame[slot], index_of(frame), active_lanes(keep, frame)
        if active is None:
            check_lanes(buffer.name, array, index)
            return array[index]
        check_lanes(buffer.name, array, masked(index, active))
        result = np.zeros(active.shape, buffer.dtype.numpy)
        result[active] = array[masked(index, active)]
        return result

    return load


IndexOf: TypeAlias = Callable[[Frame], tuple[Held, ...]]


def compile_index(buffer: Buffer, indices: Sequence[PrimExpr], slots: Slots) -> IndexOf:
    """The closure that evaluates an index; checking it is the access's part."""
    if len(indices) != len(buffer.shape):
        raise UnityError(
            f"buffer {buffer.name!r} of rank {len(buffer.shape)} has {len(indices)} indices"
        )
    if len(indices) > 1 and all(isinstance(i, PrimVar | SizeVar) for i in indices):
        # the common case, in one step
        return itemgetter(*(slots.of(i) for i in indices if isinstance(i, PrimVar | SizeVar)))
    parts = [compile_expr(i, slots) for i in indices]
    return lambda frame: tuple([part(frame) for part in parts])


def check_lanes(name: str, array: npt.NDArray[Any], index: tuple[Held, ...]) -> None:
    """Refuse an index of which any lane is outside."""
    for i, n in zip(index, array.shape, strict=True):
        if not np.all((i >= 0) & (i < n)):
            raise out_of_bounds(name, array, index)


def out_of_bounds(name: str, array: npt.NDArray[Any], index: tuple[Held, ...]) -> UnityError:
    """The error of an access outside its buffer."""
    shown = ", ".join(str(i) for i in index)
    return UnityError(f"buffer {name!r} of shape {array.shape} is indexed by [{shown}]")


def active_lanes(keep: Eval | None, frame: Frame) -> npt.NDArray[np.bool_] | None:
    """Which lanes an access touches: its predicate, and what an enclosing select leaves."""
    mask: npt.NDArray[np.bool_] | None = frame[MASK]
    if keep is None:
        return mask
    predicate = np.asarray(keep(frame), np.bool_)
    return predicate if mask is None else predicate & mask


def masked(index: tuple[Held, ...], active: npt.NDArray[np.bool_]) -> tuple[Held, ...]:
    """The index of the active lanes alone."""
    return tuple(i[active] if isinstance(i, np.ndarray) else i for i in index)
