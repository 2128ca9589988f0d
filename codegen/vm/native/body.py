"""The native function of one bytecode function: kernels called directly, between blocks."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import assert_never

from unity.codegen.vm.native import late
from unity.codegen.vm.native.call import declare_frame, write_call
from unity.codegen.vm.native.layout import Layout, byte_count, read_shape, resolve, staged
from unity.codegen.vm.native.overflow import computed_fit, divisors, late_sizes, small_bits
from unity.codegen.vm.native.printing import declare_table, table_words, write_print
from unity.codegen.vm.native.text import Text
from unity.codegen.vm.native.values import read_value, store_value
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import spec_sizes
from unity.runtime.bytecode.sizes import Definition, Size, Slot, combine, definitions_of, slots_of
from unity.runtime.native_info import FAILED, INTERRUPTED

LARGEST_READ = 1 << 31
"""Sizes read from tensors are below, so that products of two don't overflow; others are left to the
bytecode."""


def run_text(
    index: int,
    layout: Layout,
    program: bc.Program,
    kernels: set[str],
    layouts: Mapping[int, Layout] | None = None,
) -> str:
    """The text of ``unity_run_<index>``; adds the kernels it calls to `kernels`.

    Args:
        index: The function's in the program.
        layout: Its plan.
        program: The program.
        kernels: Added to.
        layouts: The plans of functions that it may call.
    """
    body = Body(index, layout, program, kernels, layouts or {})
    lines = body.write()
    header = (
        f"define internal i64 @unity_run_{index}(ptr noalias %inputs, ptr noalias %outputs, "
        "ptr noalias %slots, ptr %arena, ptr %poll) nounwind {"
    )
    return "\n".join([header, *lines, "}"])


class Body:
    """State while a function is written."""

    def __init__(
        self,
        index: int,
        layout: Layout,
        program: bc.Program,
        kernels: set[str],
        layouts: Mapping[int, Layout],
    ) -> None:
        self.index = index
        self.layout, self.program, self.kernels = layout, program, kernels
        self.layouts = layouts
        self.code = layout.code
        self.t = Text(known=layout.known)
        calls = [i for i in self.code.code if isinstance(i, bc.CallKernel | bc.CallFunction)]
        self.polls = len(calls) > 1
        self.sizes = late_sizes(layout)
        self.small_bits = small_bits(self.sizes)
        inputs = (s for spec in layout.inputs for s in spec_sizes(spec))
        self.bound = {i for s in inputs for i in slots_of(s)}
        self.bound.update(slot for slots in layout.traced.values() for slot in slots)

    def write(self) -> list[str]:
        """All blocks."""
        t = self.t
        t.block("entry")
        if self.layout.late:
            t.do(f"%late = {late.table(t)}")
        for r, spec in enumerate(self.code.registers):
            t.do(f"%r{r} = alloca {_kind(spec)}")
        for at, i in enumerate(self.code.code):
            if isinstance(i, bc.CallFunction):
                declare_frame(t, at, self.layouts[i.function])
                if self.layouts[i.function].interpreted:
                    declare_table(t, at, table_words(self.layout, i.args))
            if isinstance(i, bc.Print):
                declare_table(t, at, table_words(self.layout, i.values))
            if isinstance(i, bc.ReadShape):
                t.do(f"%shape{at} = alloca [{read_shape(self.code, i.dst) or 1} x i64]")
        for k, (register, given) in enumerate(
            zip(self.layout.given, self.layout.inputs, strict=True)
        ):
            place = t.load("ptr", "%inputs", k, "ptr")
            scalar = isinstance(given, bc.ScalarSpec)
            self.set(register, t.load(_kind(given), place) if scalar else place)
        targets = {
            i.target if isinstance(i, bc.Jump) else i.otherwise
            for i in self.code.code
            if isinstance(i, bc.Jump | bc.Branch)
        }
        open_block = True
        for at, instruction in enumerate(self.code.code):
            if at in targets:
                if open_block:
                    t.do(f"br label %b{at}")
                t.block(f"b{at}")
            open_block = self.step(at, instruction)
        t.block("failed")
        t.do(f"ret i64 {FAILED}")
        t.block("interrupted")
        t.do(f"ret i64 {INTERRUPTED}")
        return t.lines

    def get(self, register: bc.Reg) -> str:
        """A register's value."""
        return self.t.let(f"load {_kind(self.code.registers[register])}, ptr %r{register}")

    def set(self, register: bc.Reg, value: str) -> None:
        """Give a register a value."""
        self.t.do(f"store {_kind(self.code.registers[register])} {value}, ptr %r{register}")

    def place(self, name: str) -> str:
        """The address of a place in the arena."""
        return self.t.at("%arena", self.t.size(Slot(self.layout.offset_slot(name))))

    def storage(self, at: int, register: bc.Reg) -> str:
        """Where a register's fresh tensor goes."""
        if register in self.layout.direct:
            return self.t.load("ptr", "%outputs", self.layout.direct[register], "ptr")
        return self.memory(at, f"r{register}")

    def memory(self, at: int, name: str, size: str | None = None) -> str:
        """The address of a place in the arena, or in memory of its own of so many bytes."""
        if name not in self.layout.late:
            return self.place(name)
        place = self.t.at("%late", late.offset(self.layout, name), "i64")
        if size is None:
            size = self.t.size(resolve(self.layout, self.layout.late[name]))
        found = self.t.let(f"call ptr @unity_room(ptr {place}, i64 {size})")
        self.goto_unless(self.t.let(f"icmp ne ptr {found}, null"), "failed", at, f"room.{name}")
        return found

    def copy(self, to: str, source: str, register: bc.Reg) -> None:
        """Copy as many bytes as a register's tensor has."""
        self.move(to, source, self.bytes_of(register))

    def bytes_of(self, register: bc.Reg) -> str:
        """As many as a register's tensor has."""
        spec = self.code.registers[register]
        assert isinstance(spec, bc.TensorSpec)
        return self.t.size(resolve(self.layout, byte_count(spec)))

    def move(self, to: str, source: str, size: str) -> None:
        """Copy some bytes."""
        self.t.do(
            f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)"
        )

    def goto_unless(self, condition: str, label: str, at: int, tag: str) -> None:
        """Leave for `label` unless the condition holds."""
        following = f"n{at}.{tag}"
        self.t.do(f"br i1 {condition}, label %{following}, label %{label}")
        sizes = dict(self.t.sizes)
        self.t.block(following)
        self.t.sizes.update(sizes)  # the block before is this one's only predecessor

    def step(self, at: int, i: bc.Instruction) -> bool:
        """One instruction; whether what follows is reached by falling through."""
        t = self.t
        match i:
            case bc.CallKernel():
                self.kernel(at, i)
            case bc.AllocTensor(dst):
                self.set(dst, self.storage(at, dst))
            case bc.AllocArena(dst):
                self.set(dst, self.memory(at, f"i{at}"))
            case bc.View(dst, arena, offset):
                self.set(dst, t.at(self.get(arena), t.size(offset)))
            case bc.Reshape(dst, src):
                self.set(dst, self.get(src))
            case bc.Move(dst, src):
                self.set(dst, self.get(src))
                self.trace({dst: self.dims(src)} if dst in self.layout.traced else {})
            case bc.Element(dst, src, index):
                spec = self.code.registers[dst]
                assert isinstance(spec, bc.TensorSpec)
                offset = combine("mul", index, byte_count(spec))
                self.set(dst, t.at(self.get(src), t.size(offset)))
            case bc.Fill(dst, src):
                self.copy(self.get(dst), self.get(src), dst)
            case bc.SetSlot(slot, value):
                t.store("i64", t.size(value), "%slots", slot)
                t.sizes.clear()
            case bc.LoadConst(dst, constant):
                self.set(dst, t.load("ptr", "@unity_constants", constant, "ptr"))
            case bc.Copy(dst, src):
                target = self.storage(at, dst)
                self.copy(target, self.get(src), dst)
                self.set(dst, target)
            case bc.Update(targets, sources):
                self.update(at, targets, sources)
            case bc.MakeScalar(dst, value, _):
                self.set(dst, self.scalar(dst, value))
            case bc.StoreScalar(dst, src):
                store_value(self, dst, src)
            case bc.ReadScalar(dst, src):
                self.set(dst, read_value(self, src))
            case bc.ReadShape(dst, src):
                self.read_shape(at, dst, src)
            case bc.Match(int(value), bc.ShapeSpec(tuple(dims)), binds, bc.ShapeSpec(None)):
                self.match_read(at, value, dims, binds)
            case bc.Match(
                _, bc.TensorSpec(_, tuple(dims)), binds, bc.TensorSpec(_, tuple(known))
            ) if set(binds) & self.layout.read:
                actual = [t.size(resolve(self.layout, s)) for s in known]
                self.bind(at, dims, actual, binds, small=False)
            case bc.Match(int(value), bc.ScalarSpec(_, wanted), binds):
                dims = () if wanted is None else (wanted,)
                self.bind(at, dims, [self.get(value)] * len(dims), binds, small=True)
            case bc.Match(_, spec, binds, known):
                self.match(at, spec, binds, known)
            case bc.Assert(condition):
                self.goto_unless(self.truth(condition), "failed", at, "holds")
            case bc.Jump(target):
                t.do(f"br label %b{target}")
                return False
            case bc.Branch(condition, otherwise):
                self.branch(at, condition, otherwise)
            case bc.Return():
                for k, register in enumerate(self.layout.results):
                    self.give(k, register)
                t.do("ret i64 0")
                return False
            case bc.CallFunction():
                write_call(self, at, i)
            case bc.Print(values):
                write_print(self, at, values)
            case bc.CallHost() | bc.MakeClosure() | bc.CallClosure() | bc.RunScan():
                raise AssertionError("not native")
            case bc.MakeLiteral(dst):
                self.set(dst, "null")  # only functions of the host look at it
            case bc.MakeShape():
                pass  # its dims are known wherever it is used
            case _:
                assert_never(i)
        return True

    def kernel(self, at: int, call: bc.CallKernel) -> None:
        """A kernel's call, its result's check, and now and then a look for signals."""
        name = self.program.kernels[call.kernel].function
        self.kernels.add(name)
        args = [f"ptr {self.get(r)}" for r in call.args]
        args += [f"i64 {self.t.size(s)}" for s in call.sizes]
        code = self.t.let(f"call i32 @{name}({', '.join(args)})")
        self.goto_unless(self.t.let(f"icmp eq i32 {code}, 0"), "failed", at, "ok")
        if self.polls:
            due = self.t.let("call i1 @unity_poll(ptr %poll)")
            calm = self.t.let(f"xor i1 {due}, true")
            self.goto_unless(calm, "interrupted", at, "calm")

    def update(self, at: int, targets: tuple[bc.Reg, ...], sources: tuple[bc.Reg, ...]) -> None:
        """Give loop state its next values, as if all at once."""
        values = [self.get(s) for s in sources]
        tensors = [isinstance(self.code.registers[r], bc.TensorSpec) for r in targets]
        pairs = list(zip(targets, sources, strict=True))
        sizes = [self.bytes_of(s) if tensors[k] else "" for k, s in enumerate(sources)]
        dims = {r: self.dims(s) for r, s in pairs if r in self.layout.traced}
        if staged(self.code, targets, sources):
            for k, target in enumerate(targets):
                if tensors[k]:
                    beside = self.memory(at, f"n{target}", sizes[k])
                    self.move(beside, values[k], sizes[k])
                    values[k] = beside
        for k, target in enumerate(targets):
            if tensors[k]:
                own = self.memory(at, f"r{target}", sizes[k])
                self.move(own, values[k], sizes[k])
                values[k] = own
            self.set(target, values[k])
        self.trace(dims)

    def dims(self, register: bc.Reg) -> list[str]:
        """The extents of a register's tensor."""
        spec = self.code.registers[register]
        assert isinstance(spec, bc.TensorSpec)
        return [self.t.size(self.resolved(s)) for s in spec.shape or ()]

    def resolved(self, size: Size) -> Size:
        """A size in terms of the inputs' symbols and what is read."""
        return resolve(self.layout, size)

    def trace(self, dims: Mapping[bc.Reg, list[str]]) -> None:
        """Set the slots that hold the dims of loop state."""
        for register, extents in dims.items():
            for slot, extent in zip(self.layout.traced[register], extents, strict=True):
                self.t.store("i64", extent, "%slots", slot)
        if dims:
            self.t.sizes.clear()

    def scalar(self, register: bc.Reg, value: Size | float | bool) -> str:
        """A literal or a size as a register's value."""
        kind = _kind(self.code.registers[register])
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, float):
            return "0x" + struct.pack(">d", value).hex().upper()
        number = self.t.size(value)
        return self.t.let(f"sitofp i64 {number} to double") if kind == "double" else number

    def match(self, at: int, spec: bc.Spec, binds: tuple[int, ...], known: bc.Spec) -> None:
        """Compare the sizes that the check does not itself define."""
        wanted, actual = _sizes(spec), [self.t.size(s) for s in _sizes(known)]
        for told in definitions_of(binds, wanted):
            self.value_of(at, told, actual[told.place])
        for axis, (expected, found) in enumerate(zip(wanted, actual, strict=True)):
            size = self.t.size(expected)
            if size != found:
                same = self.t.let(f"icmp eq i64 {size}, {found}")
                self.goto_unless(same, "failed", at, f"axis{axis}")
        for slot in binds:
            self.facts(at, self.code.symbols[slot], self.t.size(Slot(slot)), str(slot))

    def value_of(self, at: int, told: Definition, actual: str) -> str:
        """What a slot is by the actual value of a size; leaves where it can't be any number."""
        value, conditions = self.t.told(told, actual)
        for k, condition in enumerate(conditions):
            self.goto_unless(condition, "failed", at, f"told{told.slot}.{k}")
        return value

    def read_shape(self, at: int, dst: bc.Reg, src: bc.Reg) -> None:
        """Keep a vector's elements: its storage may be another's before they are looked at."""
        rank = read_shape(self.code, dst)
        assert rank is not None
        source, kept = self.get(src), f"%shape{at}"
        for k in range(rank):
            self.t.store("i64", self.t.load("i64", source, k, "i64"), kept, k)
        self.set(dst, kept)

    def match_read(
        self, at: int, value: bc.Reg, dims: tuple[Size, ...], binds: tuple[int, ...]
    ) -> None:
        """Compare a shape that was read with sizes; some of them tell symbols' values."""
        of = self.get(value)
        actual = [self.t.load("i64", of, axis, "i64") for axis in range(len(dims))]
        self.bind(at, dims, actual, binds, small=True)

    def bind(
        self,
        at: int,
        dims: tuple[Size, ...],
        actual: Sequence[str],
        binds: tuple[int, ...],
        *,
        small: bool,
    ) -> None:
        """Compare sizes; those that tell a symbol's value, maybe only if they are small."""
        t = self.t
        for told in definitions_of(binds, dims):
            found = actual[told.place]
            if small:
                fits = t.let(f"icmp ult i64 {found}, {LARGEST_READ}")
                self.goto_unless(fits, "failed", at, f"small{told.slot}")
            t.store("i64", self.value_of(at, told, found), "%slots", told.slot)
            t.sizes.clear()
        for axis, (expected, found) in enumerate(zip(dims, actual, strict=True)):
            same = t.let(f"icmp eq i64 {t.size(expected)}, {found}")
            self.goto_unless(same, "failed", at, f"axis{axis}")
        for slot in binds:
            self.facts(at, self.code.symbols[slot], t.size(Slot(slot)), str(slot))
        self.bound.update(binds)
        self.possible(at, binds)

    def possible(self, at: int, read: Sequence[int]) -> None:
        """Leave where a size cannot be, or may be too large, by those that were read just now."""
        t, layout = self.t, self.layout

        def due(size: Size) -> bool:
            slots = {*slots_of(resolve(layout, size))}
            return not slots.isdisjoint(read) and slots <= self.bound

        sizes = [s for s in self.sizes if due(s)]
        every = "0"
        for slot in sorted({i for s in sizes for i in slots_of(s)}):
            every = t.let(f"or i64 {every}, {t.size(Slot(slot))}")
        if sizes:
            small = t.let(f"icmp ult i64 {every}, {1 << self.small_bits}")
            self.require_fits(at, small, sizes)
        for k, divisor in enumerate(divisors(sizes)):
            some = t.let(f"icmp ne i64 {t.size(divisor)}, 0")
            self.goto_unless(some, "failed", at, f"divisor{k}")
        for k, size in enumerate(filter(due, layout.late_lengths)):
            natural = t.let(f"icmp sge i64 {t.size(size)}, 0")
            self.goto_unless(natural, "failed", at, f"length{k}")

    def require_fits(self, at: int, small: str, sizes: Sequence[Size]) -> None:
        """Leave where sizes are too large, which is looked at where symbols are not small."""
        t = self.t
        before = dict(t.sizes)
        t.do(f"br i1 {small}, label %fitting{at}, label %large{at}")
        t.block(f"large{at}")
        t.sizes.update(before)
        fits = computed_fit(t, sizes)
        t.do(f"br i1 {fits}, label %fitting{at}, label %failed")
        t.block(f"fitting{at}")
        t.sizes.update(before)  # both blocks before are behind that one

    def facts(self, at: int, info: bc.SymbolInfo, value: str, tag: str) -> None:
        """What is declared of a symbol that a check or a call binds."""
        for kind, condition in fact_conditions(self.t, value, info):
            self.goto_unless(condition, "failed", at, f"{kind}{tag}")

    def truth(self, condition: bc.Reg) -> str:
        """Whether a scalar is true."""
        spec, value = self.code.registers[condition], self.get(condition)
        if isinstance(spec, bc.TensorSpec):
            value = self.t.let(f"load i8, ptr {value}")
            return self.t.let(f"icmp ne i8 {value}, 0")
        if _kind(spec) == "double":
            return self.t.let(f"fcmp une double {value}, 0.0")
        return self.t.let(f"icmp ne {_kind(spec)} {value}, 0")

    def branch(self, at: int, condition: bc.Reg, otherwise: int) -> None:
        """To the next instruction if the condition holds."""
        true = self.truth(condition)
        self.t.do(f"br i1 {true}, label %n{at}.then, label %b{otherwise}")
        self.t.block(f"n{at}.then")

    def give(self, output: int, register: bc.Reg) -> None:
        """Copy a result that was not computed where the caller wants it, or tell where it is."""
        if output in dict(self.code.aliases):
            return
        if output in self.layout.late_outputs:
            self.t.store("ptr", self.get(register), "%outputs", output)
            return
        wanted = self.t.load("ptr", "%outputs", output, "ptr")
        if self.is_direct(register, output):
            return
        self.copy(wanted, self.get(register), register)

    def is_direct(self, register: bc.Reg, output: int) -> bool:
        """Whether a result lies in its output's memory."""
        writers = {i.dst: i.src for i in self.code.code if isinstance(i, bc.Reshape)}
        while register not in self.layout.direct and register in writers:
            register = writers[register]
        return self.layout.direct.get(register) == output


def fact_conditions(t: Text, value: str, info: bc.SymbolInfo) -> list[tuple[str, str]]:
    """What must hold of a symbol's value, as conditions with a tag each."""
    found: list[tuple[str, str]] = []
    if info.min > 0:
        found.append(("min", t.let(f"icmp sge i64 {value}, {info.min}")))
    if info.max is not None:
        found.append(("max", t.let(f"icmp sle i64 {value}, {info.max}")))
    if info.multiple_of > 1:
        rest = t.let(f"srem i64 {value}, {info.multiple_of}")
        found.append(("mod", t.let(f"icmp eq i64 {rest}, 0")))
    return found


def _kind(spec: bc.Spec) -> str:
    """The LLVM type of a register."""
    match spec:
        case bc.ScalarSpec(name):
            return "double" if dtype(name).is_float else "i64"
        case _:
            return "ptr"


def _sizes(of: bc.Spec) -> tuple[Size, ...]:
    """The sizes of a tensor or of a shape."""
    assert isinstance(of, bc.TensorSpec | bc.ShapeSpec)
    return (of.shape if isinstance(of, bc.TensorSpec) else of.dims) or ()
