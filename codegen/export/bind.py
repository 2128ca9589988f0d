"""Inputs checked and symbols bound, before anything of an exported function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from unity.codegen import dlpack
from unity.codegen.vm.native.body import fact_conditions
from unity.codegen.vm.native.layout import Layout
from unity.codegen.vm.native.values import load_value
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.sizes import Size, Slot, definitions, size_text

from .function import CFunction
from .messages import Messages
from .names import leaf_name


def bind_text(index: int, layout: Layout, messages: Messages) -> str:
    """``i32 unity_c_bind_K(ptr inputs, ptr slots, ptr data, ptr numbers)``, for the function K.

    Scalars are put into `numbers`, a word for each input, as native code takes them.

    Args:
        index: The function's index in the program.
        layout: Its plan.
        messages: Added to.
    """
    binder = _Binder(messages, layout)
    binder.t.block("entry")
    for k, (spec, path) in enumerate(zip(layout.inputs, layout.paths, strict=True)):
        tensor = binder.t.load("ptr", "%inputs", k, "ptr")
        what = f"input {leaf_name(layout.code, path)}"
        match spec:
            case bc.TensorSpec():
                binder.tensor_input(k, tensor, spec, what)
            case bc.ShapeSpec():
                binder.shape_input(k, tensor, spec.dims or (), what)
            case bc.ScalarSpec():
                binder.scalar_input(k, tensor, spec, what)
            case bc.ObjectSpec():
                raise AssertionError(f"{what} is an object, which no library is exported with")
            case _:
                assert_never(spec)
    binder.finish()
    params = "ptr %inputs, ptr %slots, ptr %data, ptr %numbers"
    return binder.finished(f"define internal i32 @unity_c_bind_{index}({params})")


class _Binder(CFunction):
    """State while inputs are checked: the symbols bound so far, and the sizes to compare then."""

    def __init__(self, messages: Messages, layout: Layout) -> None:
        super().__init__(messages)
        self.symbols = layout.code.symbols
        self.bound: set[int] = set()
        self.later: list[tuple[Size, str, str]] = []

    def tensor_input(self, k: int, tensor: str, spec: bc.TensorSpec, what: str) -> None:
        """An input whose axes have sizes."""
        t = self.t
        self.tensor(tensor, spec, what)
        t.store("ptr", self.data(tensor), "%data", k)
        shape = t.load("ptr", tensor, dlpack.SHAPE)
        for axis, size in enumerate(spec.shape or ()):
            self.size(size, t.load("i64", shape, axis, "i64"), f"{what} axis {axis}")

    def shape_input(self, k: int, tensor: str, dims: Sequence[Size], what: str) -> None:
        """An input that is a shape: a tensor of int64, whose elements are sizes."""
        t = self.t
        self.tensor(tensor, bc.TensorSpec("int64", (len(dims),)), what)
        count = t.load("i64", t.load("ptr", tensor, dlpack.SHAPE), 0, "i64")
        self.require(
            t.let(f"icmp eq i64 {count}, {len(dims)}"), f"{what} has not {len(dims)} sizes"
        )
        data = self.data(tensor)
        t.store("ptr", "null", "%data", k)
        for i, size in enumerate(dims):
            self.size(size, t.load("i64", data, i, "i64"), f"{what}[{i}]")

    def scalar_input(self, k: int, tensor: str, spec: bc.ScalarSpec, what: str) -> None:
        """An input that is a scalar: a tensor without axes."""
        t, kind = self.t, dtype(spec.dtype)
        self.tensor(tensor, bc.TensorSpec(spec.dtype, (), 0), what)
        number = load_value(t, kind, self.data(tensor))
        t.store("double" if kind.is_float else "i64", number, "%numbers", k)
        t.store("ptr", t.at("%numbers", k, "i64"), "%data", k)
        if spec.value is not None:
            self.size(spec.value, number, what)

    def size(self, size: Size, actual: str, where: str) -> None:
        """Bind a symbol, or keep a size to be compared when all are bound."""
        t = self.t
        if not isinstance(size, Slot) or size.index in self.bound:
            self.later.append((size, actual, where))
            return
        self.bound.add(size.index)
        self.require(t.let(f"icmp sge i64 {actual}, 0"), f"{where} is negative")
        self.bind(size.index, actual, where)

    def bind(self, slot: int, value: str, where: str) -> None:
        """Give a symbol its value, which has what is declared of it."""
        t, info = self.t, self.symbols[slot]
        t.store("i64", value, "%slots", slot)
        t.sizes[Slot(slot)] = value
        for _, condition in fact_conditions(t, value, info):
            self.require(condition, f"{where}: {info.name} must be {_facts(info)}")

    def finish(self) -> None:
        """Bind what only expressions tell, and compare what is left."""
        names = [s.name for s in self.symbols]
        for told in definitions([size for size, _, _ in self.later], self.bound):
            size, actual, where = self.later[told.place]
            natural = self.t.let(f"icmp sge i64 {actual}, 0")
            self.require(natural, f"{where} is negative")
            value, conditions = self.t.told(told, actual)
            for condition in conditions:
                wanted = f"{where} is not {size_text(size, names)}, whatever {names[told.slot]} is"
                self.require(condition, wanted)
            self.bind(told.slot, value, where)
        for size, actual, where in self.later:
            same = self.t.let(f"icmp eq i64 {self.t.size(size)}, {actual}")
            self.require(same, f"{where} is not {size_text(size, names)}")
        self.t.do("ret i32 0")


def _facts(info: bc.SymbolInfo) -> str:
    parts = [
        f"at least {info.min}" if info.min > 0 else "",
        f"at most {info.max}" if info.max is not None else "",
        f"a multiple of {info.multiple_of}" if info.multiple_of > 1 else "",
    ]
    return ", ".join(part for part in parts if part)
