"""The bytecode's interpreter in Python: to debug, trace, profile, and run what native code can't.

Each call has its own frame and arena, so one program may run in several threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import numpy as np

from unity.errors import UnityError, takes_inputs
from unity.ir.arrays.aligned import aligned_empty
from unity.ir.dtype import Array, dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.effects import Replies, assertion_error, print_values
from unity.runtime.bytecode.sizes import Size, evaluate, slots_of
from unity.runtime.check import Binder, Value
from unity.runtime.failure import CalledFrom

Kernel: TypeAlias = Callable[[Sequence[Array], Sequence[int]], int]
"""Runs a kernel on tensors and sizes; 0, or 1 + the index of the assert that failed."""
Host: TypeAlias = Callable[..., object]
_FAILURES = {-1: "out of memory", -2: "an access is out of bounds"}


@dataclass(frozen=True, slots=True)
class Event:
    """An instruction that has run: where, what it computed, how long it took in seconds."""

    function: str
    index: int
    instruction: bc.Instruction
    label: str
    seconds: float
    values: tuple[Value, ...]


OnEvent: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Closure:
    """A function value: its code and what it captured."""

    function: int
    registers: tuple[Value, ...]
    slots: tuple[int | None, ...]


@dataclass(slots=True)
class _Frame:
    code: bc.FunctionCode
    registers: list[Value]
    slots: list[int | None]


@dataclass(frozen=True, slots=True)
class VM:
    """A program with what it needs to run.

    Attributes:
        kernels: One callable for each kernel of the program.
        constants: Their data, never written to.
        hosts: The Python functions.
        trace: Called after each instruction.
        printer: What prints values as a format says.
        replies: What calls gave that are not to be made again, if there were any.
    """

    program: bc.Program
    kernels: Sequence[Kernel]
    constants: Sequence[Array] = ()
    hosts: Sequence[Host] = ()
    trace: OnEvent | None = field(default=None)
    printer: Callable[[str, Sequence[object]], None] = print_values
    replies: Replies | None = None

    def run(self, name: str, args: Sequence[Value]) -> Value:
        """Call a function by name on plain arrays, numbers, shapes and tuples of them.

        Raises:
            UnityError: The arguments don't match, a check in the program fails, calls nest too
                deeply, or memory does not suffice.
        """
        index = next(i for i, f in enumerate(self.program.functions) if f.name == name)
        return self.call(index, args, "input")

    def call(self, index: int, args: Sequence[Value], what: str) -> Value:
        """Call a function by its index; see `run`. `what` is what messages call an argument."""
        name = self.program.functions[index].name
        try:
            return self._call(index, args, (), (), what)
        except MemoryError as error:  # of what numpy copies, or a Python function makes
            raise UnityError(f"no memory for what {name} computes: {error}") from None
        except RecursionError:
            pass  # its traceback has a thousand lines
        raise UnityError(
            f"{name}: calls of graph functions nest too deeply",
            hint="a function that calls itself must come to an end; a loop (while, R.scan) has no "
            "such limit",
        )

    def _call(
        self,
        index: int,
        args: Sequence[Value],
        captured: Sequence[Value],
        captured_slots: Sequence[int | None],
        what: str,
    ) -> Value:
        code = self.program.functions[index]
        frame = _Frame(code, [None] * len(code.registers), [None] * len(code.symbols))
        frame.registers[: len(captured)] = captured
        frame.slots[: len(captured_slots)] = captured_slots
        bind_arguments(code, args, frame.slots, what)
        for param, value in zip(code.params, args, strict=True):
            _assign(frame.registers, param.registers, value)
        return self._loop(frame)

    def _loop(self, frame: _Frame) -> Value:
        code, pc = frame.code.code, 0
        while True:
            instruction = code[pc]
            if isinstance(instruction, bc.Return):
                return _read(frame.registers, instruction.value)
            if self.trace is None:
                pc = self._step(frame, instruction, pc)
                continue
            started = time.perf_counter()
            following = self._step(frame, instruction, pc)
            seconds = time.perf_counter() - started
            values = tuple(_read(frame.registers, r) for r in _touched(instruction))
            label = frame.code.labels[pc]
            self.trace(Event(frame.code.name, pc, instruction, label, seconds, values))
            pc = following

    def _step(self, frame: _Frame, instruction: bc.Instruction, pc: int) -> int:
        """Run one instruction; the index of the next."""
        regs, slots = frame.registers, frame.slots
        match instruction:
            case bc.CallKernel():
                self._kernel(frame, instruction, frame.code.labels[pc])
            case bc.CallHost(dst, host, args, destination, where):
                with CalledFrom(where):
                    result = self.hosts[host](*(_read(regs, a) for a in args))
                if not destination:
                    _require_parts(dst, result, frame.code.labels[pc])
                    _assign(regs, dst, _hosted(result))
            case bc.CallFunction(dst, function, args, where):
                values, callee = [_read(regs, a) for a in args], self.program.functions[function]
                given = self.replies(frame.code.name, callee.name) if self.replies else None
                if given is None:
                    with CalledFrom(where if callee.name.startswith(bc.EXTERN) else ""):
                        given = self._call(function, values, (), (), self.argument(function))
                _assign(regs, dst, given)
            case bc.MakeClosure(dst, function, captured, captured_slots):
                regs[dst] = Closure(
                    function,
                    tuple(regs[r] for r in captured),
                    tuple(slots[s] for s in captured_slots),
                )
            case bc.CallClosure(dst, closure, args):
                made = regs[closure]
                if not isinstance(made, Closure):
                    raise _no_function(made, frame.code.labels[pc])
                values = [_read(regs, a) for a in args]
                what = self.argument(made.function)
                _assign(
                    regs, dst, self._call(made.function, values, made.registers, made.slots, what)
                )
            case bc.RunScan(dst, closure, state, inputs):
                stacked = self._scan(frame, closure, state, inputs)
                _assign(regs, dst, stacked or self._scanned_nothing(frame, dst, state))
            case bc.AllocTensor(dst, shape, name):
                label = frame.code.labels[pc]
                what = _output_name(frame.code, dst) or label
                regs[dst] = _empty(_extents(shape, slots, label), name, what, frame)
            case bc.AllocArena(dst, size):
                regs[dst] = _aligned(max(evaluate(size, slots), 0), frame)
            case bc.View(dst, arena, offset, shape, name):
                start, sizes = (
                    evaluate(offset, slots),
                    _extents(shape, slots, frame.code.labels[pc]),
                )
                regs[dst] = _view(_array(regs[arena]), start, sizes, name, frame)
            case bc.Reshape(dst, src, shape):
                sizes = _extents(shape, slots, frame.code.labels[pc])
                held = _array(regs[src])
                if math.prod(sizes) != held.size:
                    label = frame.code.labels[pc]
                    was = f"{held.size} elements of shape {held.shape}"
                    raise UnityError(f"{label}: {was} don't fit {tuple(sizes)}")
                regs[dst] = held.reshape(sizes)
            case bc.Element(dst, src, index):
                regs[dst] = _array(regs[src])[evaluate(index, slots), ...]
            case bc.Fill(dst, src):
                _array(regs[dst])[...] = _array(regs[src])
            case bc.SetSlot(slot, size):
                slots[slot] = evaluate(size, slots)
            case bc.LoadConst(dst, constant):
                regs[dst] = self.constants[constant]
            case bc.Move(dst, src):
                regs[dst] = regs[src]
            case bc.Copy(dst, src):
                regs[dst] = _copied(regs[src])
            case bc.Update(targets, sources):
                values = [_copied(regs[r]) for r in sources]
                for target, value in zip(targets, values, strict=True):
                    regs[target] = value
            case bc.MakeShape(dst, dims):
                regs[dst] = _sizes(dims, slots)
            case bc.ReadShape(dst, src):
                regs[dst] = _read_shape(_array(regs[src]), frame.code.labels[pc])
            case bc.MakeScalar(dst, value, name):
                regs[dst] = (
                    value if isinstance(value, float | bool) else _number(value, slots, name)
                )
            case bc.StoreScalar(dst, src):
                number = regs[src]
                assert isinstance(number, bool | int | float), number
                _array(regs[dst])[()] = number
            case bc.ReadScalar(dst, src):
                regs[dst] = _array(regs[src]).item()
            case bc.MakeLiteral(dst, text, is_dtype):
                regs[dst] = dtype(text).numpy if is_dtype else text
            case bc.Match(tree, spec, binds, known, name, where, rule):
                for slot in binds:  # in a loop it may have the last round's value
                    slots[slot] = None
                binder = Binder(frame.code.symbols, slots)
                with CalledFrom(where):
                    if rule:
                        told = f"{name}: {rule}{binder.text_of('; got ', known, spec)}"
                        _require(binder, _read(regs, tree), spec, told)
                    else:
                        binder.match(_read(regs, tree), spec, name + binder.text_of(" of ", known))
                        binder.finish()
            case bc.Print(values, text, where):
                with CalledFrom(where):
                    self.printer(text, [_read(regs, v) for v in values])
            case bc.Assert(condition, values, text, where):
                if not bool(regs[condition]):
                    raise assertion_error(where, text, [_read(regs, v) for v in values])
            case bc.Jump(target):
                return target
            case bc.Branch(condition, otherwise):
                return pc + 1 if bool(regs[condition]) else otherwise
            case bc.Return():
                raise AssertionError("a return ends the loop")
            case _:
                assert_never(instruction)
        return pc + 1

    def _kernel(self, frame: _Frame, call: bc.CallKernel, label: str) -> None:
        arrays = [_array(frame.registers[r]) for r in call.args]
        failed = self.kernels[call.kernel](arrays, _sizes(call.sizes, frame.slots))
        if failed:
            with CalledFrom(call.where):
                raise kernel_error(self.program.kernels[call.kernel], failed, label)

    def _apply(self, made: Closure, args: Sequence[Value]) -> Value:
        what = self.argument(made.function)
        return self._call(made.function, args, made.registers, made.slots, what)

    def _scan(
        self, frame: _Frame, closure: bc.Reg, state: Sequence[bc.Tree], inputs: Sequence[bc.Tree]
    ) -> tuple[Value, ...] | None:
        """The last state, then the stacked outputs; None if there is nothing to scan."""
        made = frame.registers[closure]
        assert isinstance(made, Closure)
        carried = [_read(frame.registers, s) for s in state]
        arrays = [_array(_read(frame.registers, i)) for i in inputs]
        stacks: list[list[Array]] = []
        for i in range(len(arrays[0]) if arrays else 0):
            args = [*carried, *(np.asarray(a[i], order="C") for a in arrays)]
            result = self._apply(made, args)
            assert isinstance(result, tuple)
            carried = list(result[: len(carried)])
            stacks.append([_array(r) for r in result[len(carried) :]])
        if not stacks:
            return None
        return (*carried, *(np.stack(column) for column in zip(*stacks, strict=True)))

    def _scanned_nothing(
        self, frame: _Frame, dst: bc.Tree, state: Sequence[bc.Tree]
    ) -> tuple[Value, ...]:
        """The initial state and empty stacks, whose shapes are those of their registers."""
        assert isinstance(dst, tuple)
        values = [_copied(_read(frame.registers, s)) for s in state]
        for register in dst[len(state) :]:
            assert isinstance(register, int)
            spec = frame.code.registers[register]
            assert isinstance(spec, bc.TensorSpec)
            if spec.shape is None or spec.dtype is None:
                raise UnityError("a scan over no elements whose outputs have no known shape")
            values.append(np.empty(_sizes(spec.shape, frame.slots), dtype(spec.dtype).numpy))
        return tuple(values)

    def argument(self, function: int) -> str:
        """What messages call an argument of a function that the program calls."""
        return f"call of {self.program.functions[function].name}: argument"


def _read_shape(vector: Array, label: str) -> tuple[int, ...]:
    """What a vector of integers holds.

    Raises:
        UnityError: It holds something else; the type of some is known only now.
    """
    if vector.ndim != 1 or vector.dtype != np.int64:
        raise UnityError(
            f"{label}: a shape is read from an int64 vector, "
            f"got {vector.dtype} of shape {vector.shape}",
            hint="convert with astype",
        )
    return tuple(vector.tolist())


def kernel_error(kernel: bc.KernelInfo, failed: int, label: str) -> UnityError:
    """The error of a kernel that returned 1 + the index of a failed assert."""
    message = _FAILURES.get(failed, f"failed with code {failed}")
    if 0 < failed <= len(kernel.messages):
        message = kernel.messages[failed - 1]
    return UnityError(f"kernel {kernel.name} (computing {label or 'a value'}): {message}")


def bind_arguments(
    code: bc.FunctionCode, args: Sequence[Value], slots: list[int | None], what: str = "input"
) -> Binder:
    """Match a call's arguments with the parameters, binding the function's slots.

    Raises:
        UnityError: Their number, a dtype, rank, size or a declared fact is wrong.
    """
    if len(args) != len(code.params):
        inputs = takes_inputs(code.name, [q.name for q in code.params])
        raise UnityError(f"{inputs}, got {len(args)}")
    binder = Binder(code.symbols, slots)
    for param, value in zip(code.params, args, strict=True):
        binder.match(value, param.spec, f"{what} {param.name!r}")
    binder.finish()
    return binder


def _require(binder: Binder, value: Value, spec: bc.Spec, told: str) -> None:
    """Match a value, or raise what is told of it."""
    try:
        binder.match(value, spec, "")
        binder.finish()
    except UnityError:
        raise UnityError(told) from None


def _sizes(sizes: Sequence[Size], slots: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(evaluate(s, slots) for s in sizes)


def _no_function(value: Value, label: str) -> UnityError:
    return UnityError(
        f"{label}: calls a function that it is given, got {type(value).__name__}",
        hint="functions of the program are passed between its functions; one of Python is called "
        "by name: unity.register_function and R.call_packed",
    )


def _extents(sizes: Sequence[Size], slots: Sequence[int | None], label: str) -> tuple[int, ...]:
    shape = _sizes(sizes, slots)
    if min(shape, default=0) < 0:
        raise UnityError(
            f"{label} would have the shape {shape}", hint="the inputs are too small for it"
        )
    return shape


def _require_extents(frame: _Frame) -> None:
    """Refuse sizes by which a tensor to come would have less than nothing: the arena lacks that.

    Raises:
        UnityError: There is one.
    """
    for i, label in zip(frame.code.code, frame.code.labels, strict=True):
        if isinstance(i, bc.View) and all(
            frame.slots[s] is not None for size in i.shape for s in slots_of(size)
        ):
            _extents(i.shape, frame.slots, label)


def _number(value: Size, slots: Sequence[int | None], name: str) -> int | float:
    number = evaluate(value, slots)
    return float(number) if dtype(name).is_float else number


def _array(value: Value) -> Array:
    assert isinstance(value, np.ndarray), value
    return value


def _copied(value: Value) -> Value:
    return np.array(value, copy=True) if isinstance(value, np.ndarray) else value


def _empty(shape: tuple[int, ...], name: str, label: str, frame: _Frame) -> Array:
    try:
        return np.empty(shape, dtype(name).numpy)
    except (MemoryError, ValueError):
        size = math.prod(shape) * dtype(name).numpy.itemsize
        raise UnityError(
            f"no memory for {label}: {name}{list(shape)} takes {_bytes_text(size)}{_given(frame)}"
        ) from None


def _bytes_text(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size} bytes"


def _output_name(code: bc.FunctionCode, register: int) -> str | None:
    """How a message calls the result that a register holds, if it holds one."""
    returned = code.code[-1]
    if not isinstance(returned, bc.Return):
        return None
    if returned.value == register:
        names = code.output_names
        return f"the output {names[0]!r}" if len(names) == 1 else "the output"
    if not isinstance(returned.value, tuple) or register not in returned.value:
        return None
    k = returned.value.index(register)
    return f"the output {code.output_names[k]!r}" if k < len(code.output_names) else f"output {k}"


def _hosted(value: Value) -> Value:
    """What a Python function returned, arrays in the layout that kernels expect."""
    if isinstance(value, tuple):
        return tuple(_hosted(v) for v in value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value, order="C")
    return value


def _require_parts(dst: bc.Tree, value: Value, label: str) -> None:
    """Refuse what a Python function returned in place of a tuple.

    Raises:
        UnityError: It has other parts.
    """
    if not isinstance(dst, tuple):
        return
    parts = value if isinstance(value, tuple) else None
    if parts is None or len(parts) != len(dst):
        got = type(value).__name__ if parts is None else f"{len(parts)}"
        raise UnityError(f"the result of {label}: expected a tuple of {len(dst)}, got {got}")
    for to, part in zip(dst, parts, strict=True):
        _require_parts(to, part, label)


def _given(frame: _Frame) -> str:
    """What a function's symbols are, for a message: sizes follow from them."""
    bound = zip(frame.code.symbols, frame.slots, strict=True)
    known = ", ".join(f"{s.name} = {value}" for s, value in bound if value is not None)
    return f", with {known}" if known else ""


def _aligned(size: int, frame: _Frame) -> Array:
    try:
        return aligned_empty((size,), np.uint8)
    except (MemoryError, ValueError):
        raise UnityError(
            f"no memory for the intermediate results: they take {_bytes_text(size)}{_given(frame)}"
        ) from None


def _view(arena: Array, offset: int, shape: tuple[int, ...], name: str, frame: _Frame) -> Array:
    storage = dtype(name).numpy
    size = math.prod(shape) * storage.itemsize
    if offset + size > arena.nbytes:
        _require_extents(frame)
    assert offset + size <= arena.nbytes, f"a view ends at {offset + size} of {arena.nbytes} bytes"
    return np.ndarray(shape, storage, arena, offset)


def _read(registers: Sequence[Value], tree: bc.Tree) -> Value:
    return registers[tree] if isinstance(tree, int) else tuple(_read(registers, t) for t in tree)


def _assign(registers: list[Value], tree: bc.Tree, value: Value) -> None:
    if isinstance(tree, int):
        registers[tree] = value
        return
    assert isinstance(value, tuple), value
    assert len(value) == len(tree), value
    for part, sub in zip(tree, value, strict=True):
        _assign(registers, part, sub)


def _touched(instruction: bc.Instruction) -> tuple[bc.Tree, ...]:
    """The registers whose values a trace shows: a kernel's arguments, else what was computed."""
    match instruction:
        case bc.CallKernel(_, args):
            return args
        case bc.CallHost(dst, _, args, destination):
            return args if destination else (dst,)
        case bc.Update(dst):
            return dst
        case bc.Jump() | bc.Return() | bc.Branch() | bc.Match() | bc.SetSlot():
            return ()
        case bc.Print(values) | bc.Assert(_, values):
            return values
        case _:
            return (instruction.dst,)
