"""Whether a program that was read from a file can be run: all that it refers to is there.

`records` has seen to the types. Here registers, slots, kernels, constants, functions and targets of
jumps are looked up, and every register and slot is seen to be set before it is read, however
control gets there. What compiling makes always passes; what doesn't would fail at a call, or be
read as something else.

Kernels and native functions are machine code, of which nothing can be known: they are trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

from unity.errors import UnityError
from unity.ir.dtype import NAMES
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import spec_sizes
from unity.runtime.bytecode.sizes import Size, SizeOp, Slot, definitions, slots_of, untold

_Item = TypeVar("_Item")
_WORDS: dict[type[bc.Spec], str] = {
    bc.TensorSpec: "tensor", bc.ShapeSpec: "shape", bc.ScalarSpec: "number", bc.TupleSpec: "tuple",
    bc.ObjectSpec: "arena or closure",
}  # fmt: skip
_DEEPEST = 200
"""Levels of a size, a spec or a tree of registers; they are walked recursively."""


class MalformedError(UnityError):
    """A program that none of Unity's passes makes."""


def verify_program(program: bc.Program) -> None:
    """See that a program refers to nothing that is not there.

    Raises:
        MalformedError: It does; the message says which instruction.
    """
    _require_different("functions", [f.name for f in program.functions])
    _require_different("kernels", [k.name for k in program.kernels])
    for constant in program.constants:
        _dtype(constant.dtype, f"the constant {constant.name!r}")
    for code in program.functions:
        _Function(program, code).verify()


def _require_different(what: str, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise MalformedError(f"two {what} have one name")


def _dtype(name: str, where: str) -> None:
    if name not in NAMES:
        raise MalformedError(f"{where}: there is no dtype {name!r}")


@dataclass(frozen=True, slots=True)
class _Step:
    """What an instruction reads and what it sets: registers, behind them slots, as bits."""

    needs: int
    gives: int


@dataclass(slots=True)
class _Function:
    """The function that is looked at, and the place in it."""

    program: bc.Program
    code: bc.FunctionCode
    place: str = ""

    def verify(self) -> None:
        """All of it."""
        code = self.code
        self.place = f"function {code.name!r}"
        self._require(len(code.labels) == len(code.code), "labels are missing")
        self._index(code.captured, len(code.registers) + 1, "captured register")
        self._index(code.captured_slots, len(code.symbols) + 1, "captured slot")
        names = [q.name for q in code.params]
        self._require(len(set(names)) == len(names), "two parameters have one name")
        self._require(len(code.input_names) <= len(names), "more input names than parameters")
        for symbol in code.symbols:
            fits = symbol.max is None or symbol.min <= symbol.max
            self._require(fits, f"the symbol {symbol.name!r} has no values")
        for spec in (*code.registers, code.result):
            self._spec(spec)
        for param in code.params:
            self._spec(param.spec)
            self._fits(param.registers, param.spec)
            self._tree(param.registers)
        self._aliases()
        self._forms()
        steps: list[_Step] = []
        for at, instruction in enumerate(code.code):
            self.place = f"{code.name}[{at}] {type(instruction).__name__}"
            steps.append(self._instruction(instruction))
        self._flow(steps)

    def _forms(self) -> None:
        """What callers give and get in place of tensors."""
        code, forms = self.code, self.code.forms
        results = len(code.result.fields) if isinstance(code.result, bc.TupleSpec) else 1
        inputs = (*forms.string_inputs, *(m.index for m in forms.map_inputs))
        outputs = (*forms.string_outputs, *(m.index for m in forms.map_outputs))
        for index in inputs:
            self._index(index, len(code.params), "input")
        for index in outputs:
            self._index(index, results, "result")
        for tree in forms.tree_inputs:
            self._index(tree.index, len(code.params), "input")
            spec = code.params[tree.index].spec
            held = len(spec.fields) if isinstance(spec, bc.TupleSpec) else -1
            fits = tree.is_whole and held == sum(not node for node in tree.nodes)
            self._require(fits, f"the form of the input {tree.index} is not that of its tensors")

    def _aliases(self) -> None:
        """Results that are parameters' own tensors, which sessions go by."""
        code = self.code
        results = len(code.result.fields) if isinstance(code.result, bc.TupleSpec) else 1
        self._require(len(code.output_names) <= results, "there are more names than results")
        for result, param in code.aliases:
            self._index(result, results, "result")
            self._index(param, len(code.params), "parameter")
            spec = code.params[param].spec
            known = isinstance(spec, bc.TensorSpec) and spec.shape is not None and bool(spec.dtype)
            self._require(known, f"the parameter {param} is written over, and is no known tensor")

    def _instruction(self, i: bc.Instruction) -> _Step:
        """See that what one instruction refers to is there."""
        gives, needs, computes = tuple(written(i)), tuple(read(i)), sizes(i)
        for register in (*gives, *needs):
            self._index(register, len(self.code.registers), "register")
        for register, kind in held(i):
            found = self.code.registers[register]
            self._require(isinstance(found, kind), f"register {register} is no {_WORDS[kind]}")
        self._sizes(computes)
        self._callees(i)
        self._parts(i)
        binds: Iterable[int] = ()
        slots = {s for size in computes for s in slots_of(size)}
        if isinstance(i, bc.Match):
            binds = i.binds
            checked = spec_sizes(i.spec)
            self._require(not untold(i.binds, checked), "it binds a symbol that no size tells")
            slots.update(s for size in checked for s in slots_of(size) if s not in binds)
        elif isinstance(i, bc.SetSlot):
            binds = (i.slot,)
        slot0 = len(self.code.registers)
        read_slots, set_slots = ((slot0 + s for s in which) for which in (slots, binds))
        return _Step(_bits((*needs, *read_slots)), _bits((*gives, *set_slots)))

    def _callees(self, i: bc.Instruction) -> None:
        """What it calls takes what it is given."""
        match i:
            case bc.CallKernel(kernel, args, given):
                info = self._at(self.program.kernels, kernel, "kernel")
                takes, got = (info.buffers, info.sizes), (len(args), len(given))
                self._require(got == takes, f"{info.name} takes {takes}, got {got}")
            case bc.CallHost(_, host):
                self._at(self.program.hosts, host, "host function")
            case bc.CallFunction(_, function, args):
                callee = self._at(self.program.functions, function, "function")
                count = len(callee.params)
                self._require(len(args) == count, f"{callee.name} takes {count}, got {len(args)}")
                self._require(not callee.captured, f"{callee.name} is a closure")
            case bc.MakeClosure(_, function, registers, slots):
                callee = self._at(self.program.functions, function, "function")
                fits = len(registers) == callee.captured and len(slots) == callee.captured_slots
                self._require(fits, f"{callee.name} captures something else")
                self._slots(slots)
            case bc.RunScan(dst, _, state):
                enough = isinstance(dst, tuple) and len(dst) >= len(state)
                self._require(enough, "it gives less than its state")
            case _:
                pass

    def _parts(self, i: bc.Instruction) -> None:
        """Its dtypes, specs, constants and targets are there."""
        match i:
            case bc.View(_, _, offset, _, name):
                self._require(not (isinstance(offset, int) and offset < 0), "it begins before it")
                _dtype(name, self.place)
            case bc.AllocTensor(_, _, name) | bc.MakeScalar(_, _, name):
                _dtype(name, self.place)
            case bc.MakeLiteral(_, name, True):
                _dtype(name, self.place)
            case bc.SetSlot(slot):
                self._slots((slot,))
            case bc.LoadConst(_, constant):
                self._at(self.program.constants, constant, "constant")
            case bc.Update(dst, src):
                self._require(len(dst) == len(src), "it has as many targets as sources")
            case bc.Match(value, spec, binds, known):
                self._spec(spec)
                self._spec(known)
                self._fits(value, spec)
                self._slots(binds)
            case bc.Jump(target) | bc.Branch(_, target):
                self._index(target, len(self.code.code), "instruction")
            case bc.Return(value):
                self._fits(value, self.code.result)
            case _:
                pass

    def _flow(self, steps: Sequence[_Step]) -> None:
        """What is read was set before, and control ends in a return."""
        code, slot0 = self.code, len(self.code.registers)
        first = _bits(r for q in code.params for r in bc.leaves(q.registers))
        checked = [size for q in code.params for size in spec_sizes(q.spec)]
        told = [d.slot for d in definitions(checked, known=range(code.captured_slots))]
        slots = {*range(code.captured_slots), *told}
        all_told = slots.issuperset(s for size in checked for s in slots_of(size))
        self._require(all_told, "there is a symbol that no size of a parameter tells")
        first |= _bits(slot0 + s for s in slots)
        first |= _bits(range(code.captured))
        known: dict[int, int] = {}
        waiting = [(0, first)]
        while waiting:
            at, given = waiting.pop()
            before = known.get(at)
            if before is not None:
                if before & given == before:
                    continue
                given &= before
            known[at] = given
            self.place = f"{code.name}[{at}]"
            self._require(at < len(steps), "control runs past the last instruction")
            lacks = steps[at].needs & ~given
            if lacks:
                place = lacks.bit_length() - 1
                what = f"register {place}" if place < slot0 else f"symbol {place - slot0}"
                raise MalformedError(f"{self.place}: {what} is not set before it is read")
            given |= steps[at].gives
            match code.code[at]:
                case bc.Return():
                    continue
                case bc.Jump(target):
                    waiting.append((target, given))
                    continue
                case bc.Branch(_, otherwise):
                    waiting.append((otherwise, given))
                case _:
                    pass
            waiting.append((at + 1, given))

    def _spec(self, spec: bc.Spec, depth: int = 0) -> None:
        self._require(depth < _DEEPEST, "a type is nested too deeply")
        match spec:
            case bc.TensorSpec(name, shape):
                if name is not None:
                    _dtype(name, self.place)
                self._sizes(shape or ())
            case bc.ShapeSpec(dims):
                self._sizes(dims or ())
            case bc.ScalarSpec(name, value):
                _dtype(name, self.place)
                self._sizes(() if value is None else (value,))
            case bc.TupleSpec(fields):
                for part in fields:
                    self._spec(part, depth + 1)
            case bc.ObjectSpec():
                pass
            case _:
                assert_never(spec)

    def _fits(self, tree: bc.Tree, spec: bc.Spec) -> None:
        """Tuples are trees of registers, of as many branches."""
        if isinstance(spec, bc.TupleSpec):
            parts = tree if isinstance(tree, tuple) else ()
            fits = isinstance(tree, tuple) and len(parts) == len(spec.fields)
            self._require(fits, "a tuple has another number of registers")
            for part, field in zip(parts, spec.fields, strict=True):
                self._fits(part, field)
        else:
            self._require(not isinstance(tree, tuple), "registers for a tuple, which it is not")

    def _tree(self, tree: bc.Tree) -> None:
        for register in bc.leaves(tree):
            self._index(register, len(self.code.registers), "register")

    def _sizes(self, sizes: Iterable[Size]) -> None:
        for size in sizes:
            self._size(size, 0)

    def _size(self, size: Size, depth: int) -> None:
        self._require(depth < _DEEPEST, "a size is nested too deeply")
        match size:
            case int():
                pass
            case Slot(index):
                self._slots((index,))
            case SizeOp(op, a, b):
                self._require(b != 0 or op not in ("floordiv", "floormod"), "a division by 0")
                self._size(a, depth + 1)
                self._size(b, depth + 1)
            case _:
                assert_never(size)

    def _slots(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._index(slot, len(self.code.symbols), "symbol")

    def _at(self, table: Sequence[_Item], index: int, what: str) -> _Item:
        self._index(index, len(table), what)
        return table[index]

    def _index(self, index: int, count: int, what: str) -> None:
        if not 0 <= index < count:
            raise MalformedError(f"{self.place}: {what} {index} of {count}")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise MalformedError(f"{self.place}: {what}")


def _bits(places: Iterable[int]) -> int:
    """A set of small numbers, as the bits of one."""
    found = 0
    for place in places:
        found |= 1 << place
    return found


def sizes(i: bc.Instruction) -> tuple[Size, ...]:
    """The sizes that an instruction computes."""
    match i:
        case bc.CallKernel(_, _, given):
            return given
        case bc.AllocTensor(_, shape) | bc.Reshape(_, _, shape) | bc.MakeShape(_, shape):
            return shape
        case bc.AllocArena(_, size) | bc.SetSlot(_, size):
            return (size,)
        case bc.View(_, _, offset, shape):
            return (offset, *shape)
        case bc.Element(_, _, index):  # its shape is for native code
            return (index,)
        case bc.MakeScalar(_, value):
            return () if isinstance(value, bool | float) else (value,)
        case _:
            return ()


def held(i: bc.Instruction) -> Iterator[tuple[bc.Reg, type[bc.Spec]]]:
    """What registers of an instruction must hold, where it is not told by anything else."""
    match i:
        case bc.CallKernel(_, args):
            yield from ((register, bc.TensorSpec) for register in args)
        case bc.AllocTensor(dst) | bc.LoadConst(dst):
            yield dst, bc.TensorSpec
        case bc.View(dst, arena):
            yield from ((dst, bc.TensorSpec), (arena, bc.ObjectSpec))
        case bc.Reshape(dst, src) | bc.Element(dst, src) | bc.Fill(dst, src):
            yield from ((dst, bc.TensorSpec), (src, bc.TensorSpec))
        case bc.AllocArena(dst) | bc.MakeClosure(dst) | bc.MakeLiteral(dst):
            yield dst, bc.ObjectSpec
        case bc.CallClosure(_, closure) | bc.RunScan(_, closure):
            yield closure, bc.ObjectSpec
        case bc.MakeShape(dst):
            yield dst, bc.ShapeSpec
        case bc.ReadShape(dst, src):
            yield from ((dst, bc.ShapeSpec), (src, bc.TensorSpec))
        case bc.StoreScalar(dst, src):
            yield from ((dst, bc.TensorSpec), (src, bc.ScalarSpec))
        case bc.ReadScalar(dst, src):
            yield from ((dst, bc.ScalarSpec), (src, bc.TensorSpec))
        case bc.MakeScalar(dst):
            yield dst, bc.ScalarSpec
        case _:
            pass


def written(i: bc.Instruction) -> Iterator[bc.Reg]:
    """The registers that an instruction sets."""
    match i:
        case bc.CallHost(dst, _, _, destination):
            yield from () if destination else bc.leaves(dst)
        case bc.CallFunction(dst) | bc.CallClosure(dst) | bc.RunScan(dst):
            yield from bc.leaves(dst)
        case bc.Update(dst):
            yield from dst
        case (
            bc.CallKernel() | bc.Fill() | bc.StoreScalar() | bc.SetSlot() | bc.Match() | bc.Print()
            | bc.Assert() | bc.Jump() | bc.Branch() | bc.Return()
        ):  # fmt: skip
            pass
        case _:
            yield i.dst


def read(i: bc.Instruction) -> Iterator[bc.Reg]:
    """The registers that an instruction reads."""
    match i:
        case bc.CallKernel(_, args):
            yield from args
        case bc.CallHost(_, _, args) | bc.CallFunction(_, _, args):
            yield from bc.leaves(args)
        case bc.MakeClosure(_, _, registers):
            yield from registers
        case bc.CallClosure(_, closure, args):
            yield closure
            yield from bc.leaves(args)
        case bc.RunScan(_, closure, state, inputs):
            yield closure
            yield from bc.leaves((*state, *inputs))
        case bc.View(_, arena):
            yield arena
        case (
            bc.Reshape(_, src) | bc.Element(_, src) | bc.Move(_, src) | bc.Copy(_, src)
            | bc.ReadShape(_, src) | bc.ReadScalar(_, src)
        ):  # fmt: skip
            yield src
        case bc.Fill(dst, src) | bc.StoreScalar(dst, src):
            yield from (dst, src)
        case bc.Update(_, src):
            yield from src
        case bc.Match(value) | bc.Return(value):
            yield from bc.leaves(value)
        case bc.Print(values):
            yield from bc.leaves(values)
        case bc.Assert(condition, values):
            yield condition
            yield from bc.leaves(values)
        case bc.Branch(condition):
            yield condition
        case (
            bc.AllocTensor() | bc.AllocArena() | bc.SetSlot() | bc.LoadConst() | bc.MakeShape()
            | bc.MakeScalar() | bc.MakeLiteral() | bc.Jump()
        ):  # fmt: skip
            pass
        case _:
            assert_never(i)
