"""Prim expressions, each compiled once to a Python closure over the frame of a kernel's run.

A frame is a list: slot 0 holds the mask of active lanes (None: all), then one slot per variable,
symbol and buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.interpreter.scalar import COMPARE, Held, binary, caster, hold, holder
from unity.interpreter.storage import flat_view
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import (
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
    match e:
        case PrimVar() | SizeVar():
            slot = slots.of(e)
            return lambda frame: frame[slot]
        case Imm(value, dtype):
            constant = hold(value, dtype)
            return lambda frame: constant
        case Binary(op, a, b):
            _same_dtype(op, a, b)
            dtype = a.dtype.with_lanes(max(a.dtype.lanes, b.dtype.lanes))
            left, right, function = (
                compile_expr(a, slots),
                compile_expr(b, slots),
                binary(op, dtype),
            )
            return lambda frame: function(left(frame), right(frame))
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
                return _vector_select(test, yes, no)
            return lambda frame: yes(frame) if test(frame) else no(frame)
        case Cast(dtype, value):
            inner, convert = compile_expr(value, slots), caster(value.dtype, dtype)
            return lambda frame: convert(inner(frame))
        case Load():
            return _load(e, slots)
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


def _same_dtype(what: str, a: PrimExpr, b: PrimExpr) -> None:
    if a.dtype.element != b.dtype.element:
        raise UnityError(f"{what!r} joins values of {a.dtype} and {b.dtype}")


def _vector_select(test: Eval, yes: Eval, no: Eval) -> Eval:
    """Each branch runs with the lanes of the other masked, so that it loads nothing for them."""

    def select(frame: Frame) -> Held:
        condition, outer = test(frame), frame[MASK]
        frame[MASK] = condition if outer is None else condition & outer
        then = yes(frame)
        frame[MASK] = ~condition if outer is None else ~condition & outer
        orelse = no(frame)
        frame[MASK] = outer
        return np.where(condition, then, orelse)

    return select


def _intrinsic(e: Intrinsic, slots: Slots) -> Eval:
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


def _load(e: Load, slots: Slots) -> Eval:
    buffer, dtype = e.buffer, e.dtype
    slot, place = slots.of(buffer), compile_indices(buffer, e.indices, slots)
    keep = None if e.predicate is None else compile_expr(e.predicate, slots)
    zero = hold(0, dtype)
    if dtype.lanes > 1:
        return _vector_load(slot, place, keep, buffer)
    read = holder(dtype)

    def load(frame: Frame) -> Held:
        if keep is not None and not keep(frame):
            return zero
        array, index = place(frame[slot], frame)
        return read(array[index])

    return load


def _vector_load(slot: int, place: Place, keep: Eval | None, buffer: Buffer) -> Eval:
    def load(frame: Frame) -> Held:
        active = active_lanes(keep, frame)
        array, index = place(frame[slot], frame, active)
        if active is None:
            return array[index]
        result = np.zeros(active.shape, buffer.dtype.numpy)
        result[active] = array[masked(index, active)]
        return result

    return load


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


Place: TypeAlias = Callable[..., tuple[npt.NDArray[Any], tuple[Held, ...]]]
"""(array, frame, active lanes or None) -> the array to index and a checked index."""


def compile_indices(buffer: Buffer, indices: Sequence[PrimExpr], slots: Slots) -> Place:
    """The closure that evaluates and checks an index.

    One index into a buffer of another rank is an offset into its storage, the lowered form.
    """
    parts = [compile_expr(i, slots) for i in indices]
    flat = len(parts) == 1 and len(buffer.shape) != 1
    if not flat and len(parts) != len(buffer.shape):
        raise UnityError(
            f"buffer {buffer.name!r} of rank {len(buffer.shape)} has {len(parts)} indices"
        )
    vector = any(i.dtype.lanes > 1 for i in indices)

    def place(
        array: npt.NDArray[Any], frame: Frame, active: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[Any], tuple[Held, ...]]:
        if flat:
            array = flat_view(array)
        index = tuple([part(frame) for part in parts])
        if vector:
            checked = index if active is None else masked(index, active)
            inside = all(
                np.all((i >= 0) & (i < n)) for i, n in zip(checked, array.shape, strict=True)
            )
        else:
            inside = all(0 <= i < n for i, n in zip(index, array.shape, strict=True))
        if not inside:
            shown = ", ".join(str(i) for i in index)
            raise UnityError(
                f"buffer {buffer.name!r} of shape {array.shape} is indexed by [{shown}]"
            )
        return array, index

    return place
