"""Matching values with specs: binds symbols, checks the rest, and says exactly what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype, scalar_fault
from unity.runtime.bytecode import (
    ObjectSpec,
    ScalarSpec,
    ShapeSpec,
    Spec,
    SymbolInfo,
    TensorSpec,
    TupleSpec,
)
from unity.runtime.bytecode.sizes import Size, Slot, definitions, evaluate, size_text, slots_of

Value: TypeAlias = object
"""An array, a number, a shape (tuple of int), an arena, a closure, or a tuple of values."""


@dataclass(slots=True)
class Binder:
    """Binds a frame's slots from values, then checks the sizes that are expressions.

    Attributes:
        symbols: Names and facts of the slots.
        slots: The frame's slots, filled in place.
        origins: For each slot, where its value came from.
    """

    symbols: Sequence[SymbolInfo]
    slots: list[int | None]
    origins: dict[int, str] = field(default_factory=dict)
    _later: list[tuple[str, Size, int]] = field(default_factory=list)

    def match(self, value: Value, spec: Spec, where: str) -> None:
        """Match one value; sizes that can't be judged yet are kept for `finish`.

        Raises:
            UnityError: The value is not what the spec says.
        """
        match spec:
            case TensorSpec():
                self._tensor(value, spec, where)
            case ShapeSpec(dims, rank):
                shape = _shape_value(value, where)
                expected = rank if dims is None else len(dims)
                if expected is not None and len(shape) != expected:
                    raise UnityError(f"{where}: expected a shape of {expected} sizes, got {shape}")
                for i, (size, actual) in enumerate(zip(dims or (), shape, strict=False)):
                    self.size(size, actual, where if len(shape) == 1 else f"{where}[{i}]")
            case ScalarSpec(name, known):
                _check_scalar(value, name, where)
                if known is not None and isinstance(value, int | np.integer):
                    self.size(known, int(value), where)
            case TupleSpec(fields):
                if not isinstance(value, tuple) or len(value) != len(fields):
                    raise UnityError(
                        f"{where}: expected a tuple of {len(fields)}, got {_kind(value)}"
                    )
                for i, (part, sub) in enumerate(zip(value, fields, strict=True)):
                    self.match(part, sub, f"{where}[{i}]")
            case ObjectSpec():
                pass
            case _:
                assert_never(spec)

    def size(self, size: Size, actual: int, where: str) -> None:
        """Match one size.

        Raises:
            UnityError: It differs, or breaks what is declared of the symbol.
        """
        match size:
            case int():
                if size != actual:
                    raise UnityError(f"{where}: expected {size}, got {actual}")
            case Slot(index):
                known = self.slots[index]
                if known is None:
                    self._check_facts(index, actual, where)
                    self.slots[index] = actual
                    self.origins[index] = where
                elif known != actual:
                    name = self.symbols[index].name
                    origin = self.origins.get(index, "before")
                    raise UnityError(
                        f"{where}: symbol {name} is {actual} here but {known} from {origin}"
                    )
            case _:
                self._later.append((where, size, actual))

    def solve(self) -> None:
        """Bind the slots that stand in expressions only, where one tells what they are.

        Raises:
            UnityError: It is one of no size, or breaks what is declared of the symbol.
        """
        sizes = [size for _, size, _ in self._later]
        if all(self.slots[slot] is not None for size in sizes for slot in slots_of(size)):
            return
        known = {k for k, value in enumerate(self.slots) if value is not None}
        for told in definitions(sizes, known):
            where, size, actual = self._later[told.place]
            slope, value = evaluate(told.slope, self.slots), None
            if slope > 0:
                value = evaluate(replace(told, slope=slope).value(actual), self.slots)
                self.slots[told.slot] = value
            if value is None or value < 0 or evaluate(size, self.slots) != actual:
                names = [s.name for s in self.symbols]
                wanted, given = size_text(size, names), self._given(slots_of(size), told.slot)
                raise UnityError(
                    f"{where}: expected {wanted}{given}, got {actual}, "
                    f"which does not tell a size {names[told.slot]}"
                )
            self._check_facts(told.slot, value, where)
            self.origins[told.slot] = where

    def finish(self) -> None:
        """Bind what only expressions tell, and check the sizes that are expressions.

        Raises:
            UnityError: One differs.
        """
        self.solve()
        for where, size, actual in self._later:
            expected = evaluate(size, self.slots)
            if expected != actual:
                names = [s.name for s in self.symbols]
                wanted = f"{size_text(size, names)} = {expected}{self._given(slots_of(size))}"
                raise UnityError(f"{where}: expected {wanted}, got {actual}")
        self._later.clear()

    def text_of(self, before: str, *sizes: Spec) -> str:
        """Of what a check of sizes is made, with its values: ``" of n = 4 and m = 3"``."""
        dims = [size for s in sizes if isinstance(s, ShapeSpec) for size in s.dims or ()]
        slots = sorted({slot for size in dims for slot in slots_of(size)})
        known = [s for s in slots if self.slots[s] is not None]
        told = [f"{self.symbols[s].name} = {self.slots[s]}" for s in known]
        return f"{before}{' and '.join(told)}" if told else ""

    def _given(self, slots: Iterable[int], but: int | None = None) -> str:
        """What slots are and where that comes from: `` (n = 4 from input 'x' axis 0)``."""
        told = [
            f"{self.symbols[i].name} = {self.slots[i]} from {self.origins.get(i, 'before')}"
            for i in sorted(set(slots) - {but})
        ]
        return f" ({', '.join(told)})" if told else ""

    def _tensor(self, value: Value, spec: TensorSpec, where: str) -> None:
        if not isinstance(value, np.ndarray):
            raise UnityError(f"{where}: expected a tensor, got {_kind(value)}")
        array: Array = value
        if spec.dtype is not None and array.dtype != dtype(spec.dtype).numpy:
            raise UnityError(
                f"{where}: expected dtype {spec.dtype}, got {array.dtype}",
                hint="Unity does not convert silently; convert the array first",
            )
        rank = spec.rank if spec.shape is None else len(spec.shape)
        if rank is not None and array.ndim != rank:
            wanted = "" if spec.shape is None else f" {self.shape_text(spec.shape)}"
            raise UnityError(
                f"{where}: expected rank {rank}{wanted}, "
                f"got rank {array.ndim} with shape {array.shape}"
            )
        for axis, (size, actual) in enumerate(zip(spec.shape or (), array.shape, strict=False)):
            self.size(size, actual, f"{where} axis {axis}")

    def shape_text(self, shape: Sequence[Size]) -> str:
        """A shape over the symbols' names."""
        names = [s.name for s in self.symbols]
        return (
            "("
            + ", ".join(size_text(s, names) for s in shape)
            + ("," if len(shape) == 1 else "")
            + ")"
        )

    def _check_facts(self, index: int, actual: int, where: str) -> None:
        info = self.symbols[index]
        for broken, limit in (
            (actual < info.min, f"at least {info.min}"),
            (info.max is not None and actual > info.max, f"at most {info.max}"),
            (actual % info.multiple_of != 0, f"a multiple of {info.multiple_of}"),
        ):
            if broken:
                raise UnityError(f"{where}: symbol {info.name} is {actual}, but it must be {limit}")


def _shape_value(value: Value, where: str) -> tuple[int, ...]:
    if isinstance(value, tuple | list):
        numbers = tuple(int(v) for v in value if isinstance(v, int | np.integer))
        if len(numbers) == len(value):
            return numbers
    raise UnityError(f"{where}: expected a shape (a tuple of integers), got {_kind(value)}")


def _check_scalar(value: Value, name: str, where: str) -> None:
    fault = scalar_fault(dtype(name), value)
    if fault is not None:
        raise UnityError(f"{where}: {fault}")


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {value.shape}"
    return (
        f"{type(value).__name__} {value!r}"
        if isinstance(value, int | float)
        else type(value).__name__
    )
