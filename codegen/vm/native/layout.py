"""Where native code keeps the tensors of a function: given outputs, or places in one arena.

Decides also whether a function can be native code at all: it can if all its values are tensors
whose sizes follow from the inputs' shapes, numbers, objects that it is given and tuples of them,
and nothing calls back into Python but to print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from unity.codegen.vm.native.traced import with_dims
from unity.codegen.vm.native.values import with_tensors
from unity.ir.dtype import HANDLE, dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import spec_sizes
from unity.runtime.bytecode.sizes import (
    Size,
    SizeOp,
    Slot,
    combine,
    definitions_of,
    may_be_negative,
    product,
    slots_of,
)

Input: TypeAlias = bc.TensorSpec | bc.ShapeSpec | bc.ScalarSpec | bc.ObjectSpec
SCALARS = frozenset(
    {"int64", "int32", "int16", "int8", "uint32", "uint16", "uint8", "float64", "float32", "bool"}
)
"""Dtypes of scalars that entries read of Python's numbers, and that native code moves."""


class NotNativeError(Exception):
    """Why a function stays bytecode."""


@dataclass(slots=True)
class Layout:
    """The plan of one function.

    Attributes:
        inputs: What is given in the end, in order: the parameters, of tuples their fields.
            `paths` tells where each is (a parameter's index, then fields'), `given` its register.
        outputs: The specs of the results, in order, of tuples their fields; `results` their
            registers, `values` those that are scalars or objects, held by tensors (`values.py`).
        direct: Registers that are an output's memory, with the output's index.
        lengths: Extents of tensors that might turn out negative, and must not.
        places: What lies in the arena, by register or instruction: its bytes, in order.
        known: Slots that are expressions of others, from checks inside the function (`know`).
        resolved: What sizes are in terms of the others (`resolve`), as far as that was asked.
        read: Slots whose values are read from tensors while the function runs.
        late: What lies in memory of its own, as sizes that are read decide how large it is
            (`late.py`): its bytes, by register or instruction, in order.
        late_outputs: Outputs of which that is so: the caller copies them from where they lie.
        late_lengths: As `lengths`, of sizes that are read.
        traced: Loop state of unknown shape, with the slots that hold its dims (`traced.py`).
        interpreted: Whether the bytecode interpreter runs it, for others that are native.
    """

    code: bc.FunctionCode
    inputs: tuple[Input, ...] = ()
    paths: tuple[tuple[int, ...], ...] = ()
    given: tuple[bc.Reg, ...] = ()
    outputs: tuple[bc.TensorSpec, ...] = ()
    results: tuple[bc.Reg, ...] = ()
    values: frozenset[int] = frozenset()
    direct: dict[bc.Reg, int] = field(default_factory=dict)
    lengths: dict[Size, None] = field(default_factory=dict)
    places: dict[str, Size] = field(default_factory=dict)
    known: dict[int, Size] = field(default_factory=dict)
    resolved: dict[Size, Size] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    late: dict[str, Size] = field(default_factory=dict)
    late_outputs: frozenset[int] = frozenset()
    late_lengths: dict[Size, None] = field(default_factory=dict)
    traced: Mapping[bc.Reg, tuple[int, ...]] = field(default_factory=dict)
    interpreted: bool = False
    _order: dict[str, int] = field(default_factory=dict)

    def know(self, slot: int, size: Size) -> None:
        """A slot is an expression of others, if it isn't one already."""
        if slot not in self.known:
            self.known[slot] = size
            self.resolved.clear()

    def reserve(self, place: str, size: Size) -> None:
        """Reserve arena space, once for a place; memory of its own where sizes are read."""
        if self.is_late(size):
            self.late.setdefault(place, size)
        elif place not in self.places:
            self._order[place] = len(self.places)
            self.places[place] = size

    def is_late(self, size: Size) -> bool:
        """Whether it is known only where a tensor has been read."""
        return any(s in self.read for s in slots_of(resolve(self, size)))

    def offset_slot(self, place: str) -> int:
        """The slot, after the symbols' own, that holds a place's offset in the arena."""
        return len(self.code.symbols) + self._order[place]

    @property
    def slots(self) -> int:
        """How many slots there are: the symbols' and one for each place."""
        return len(self.code.symbols) + len(self.places)


def lay_out(
    code: bc.FunctionCode,
    may_call: Callable[[bc.CallFunction], None] | None = None,
) -> Layout:
    """The plan of a function.

    Args:
        code: The function.
        may_call: Raises for a call of a function that can't be native; none can if not given.

    Raises:
        NotNativeError: It can't be native code.
    """
    if code.captured or code.captured_slots:
        raise NotNativeError("it is a closure")
    program, (code, values) = code, with_tensors(code)
    code, traced = with_dims(code)
    layout = Layout(code, traced=traced, values=values)
    layout.read.update(slot for slots in traced.values() for slot in slots)
    found = [
        leaf for k, q in enumerate(code.params) for leaf in _leaves(q, q.spec, q.registers, (k,))
    ]
    layout.inputs = tuple(spec for spec, _, _ in found)
    layout.given = tuple(register for _, register, _ in found)
    layout.paths = tuple(path for _, _, path in found)
    if code.aliases and any(len(path) > 1 for path in layout.paths):
        raise NotNativeError("it writes over its inputs, and takes tuples")
    returns = [i for i in code.code if isinstance(i, bc.Return)]
    assert len(returns) == 1
    value = returns[0].value
    layout.results = tuple(bc.leaves(value))
    if code.aliases and isinstance(value, tuple) and not all(isinstance(v, int) for v in value):
        raise NotNativeError("it writes over its inputs, and gives tuples of tuples")
    for instruction in code.code:
        _learn(layout, instruction, may_call)
    _require_given(program)
    layout.outputs = tuple(
        _resolved(layout, _tensor(code.registers[r], "a result")) for r in layout.results
    )
    late = (k for k, o in enumerate(layout.outputs) if any(map(layout.is_late, o.shape or ())))
    layout.late_outputs = frozenset(late)
    _choose_direct(layout)
    for index, instruction in enumerate(code.code):
        _place(layout, index, instruction)
    for spec in (*code.registers, *layout.outputs):
        if isinstance(spec, bc.TensorSpec):
            extents = (resolve(layout, s) for s in spec.shape or ())
            for size in filter(may_be_negative, extents):
                lengths = layout.late_lengths if layout.is_late(size) else layout.lengths
                lengths[size] = None
    entry = {s for spec in layout.inputs for size in spec_sizes(spec) for s in slots_of(size)}
    needed = [
        *layout.lengths,
        *layout.places.values(),
        *layout.late_lengths,
        *layout.late.values(),
        *(s for o in layout.outputs for s in spec_sizes(o)),
    ]
    for size in needed:
        if not set(slots_of(resolve(layout, size))) <= entry | layout.read:
            raise NotNativeError("a size depends on data")
    return layout


def _require_given(code: bc.FunctionCode) -> None:
    """Refuse to give a text or a dtype of the program's own.

    Raises:
        NotNativeError: It does.
    """
    own = literals(code)
    for i in code.code:
        if isinstance(i, bc.Return) and not own.isdisjoint(bc.leaves(i.value)):
            raise NotNativeError("it gives a text or a dtype")


def literals(code: bc.FunctionCode) -> set[bc.Reg]:
    """What may hold a text or a dtype of the program's own, of which native code has no object."""
    own: set[bc.Reg] = set()
    known = -1
    while known < len(own):
        known = len(own)
        for i in code.code:
            match i:
                case bc.MakeLiteral(dst):
                    own.add(dst)
                case bc.Move(dst, src) if src in own:
                    own.add(dst)
                case bc.Update(targets, sources):
                    own.update(t for t, s in zip(targets, sources, strict=True) if s in own)
                case _:
                    pass
    return own


def resolve(layout: Layout, size: Size) -> Size:
    """The size in terms of the inputs' symbols."""
    if isinstance(size, int):
        return size
    found = layout.resolved.get(size)
    if found is None:
        match size:
            case Slot(index):
                known = layout.known.get(index)
                found = size if known is None else resolve(layout, known)
            case SizeOp(op, a, b):
                found = combine(op, resolve(layout, a), resolve(layout, b))
            case _:
                assert_never(size)
        layout.resolved[size] = found
    return found


def byte_count(spec: bc.TensorSpec) -> Size:
    """The bytes a tensor takes."""
    assert spec.shape is not None
    assert spec.dtype is not None
    return combine("mul", product(spec.shape), dtype(spec.dtype).bytes)


def staged(code: bc.FunctionCode, targets: Sequence[bc.Reg], sources: Sequence[bc.Reg]) -> bool:
    """Whether loop state may be another's source, so that values are copied aside first."""
    pairs = [(t, s) for t, s in zip(targets, sources, strict=True) if _is_tensor(code, t)]
    return len(pairs) > 1 and not all(_lies_apart(code, s, t) for t, s in pairs)


def _is_tensor(code: bc.FunctionCode, register: bc.Reg) -> bool:
    return isinstance(code.registers[register], bc.TensorSpec)


def _lies_apart(code: bc.FunctionCode, register: bc.Reg, state: bc.Reg) -> bool:
    """Whether a register's tensor has storage that no loop state has but a given one."""
    known, left = {state}, [register]
    while left:
        one = left.pop()
        if one in known:
            continue
        known.add(one)
        writers = [i for i in code.code if one in _written(i)]
        moved = [i.src for i in writers if isinstance(i, bc.Move)]  # by the branches of an If
        match writers:
            case [bc.AllocTensor() | bc.Copy() | bc.View() | bc.LoadConst()]:
                pass
            case [bc.Reshape(_, src) | bc.Element(_, src)]:
                left.append(src)
            case [_, *_] if len(moved) == len(writers):
                left += moved
            case _:
                return False
    return True


def _written(i: bc.Instruction) -> tuple[bc.Reg, ...]:
    """The registers that an instruction, one of native code, writes."""
    match i:
        case bc.Update(dst):
            return dst
        case (
            bc.AllocTensor(dst) | bc.Copy(dst) | bc.View(dst) | bc.LoadConst(dst) | bc.Move(dst)
            | bc.Reshape(dst) | bc.Element(dst) | bc.MakeShape(dst) | bc.ReadShape(dst)
        ):  # fmt: skip
            return (dst,)
        case _:
            return ()


def _leaves(
    param: bc.ParamInfo, spec: bc.Spec, tree: bc.Tree, path: tuple[int, ...]
) -> Iterator[tuple[Input, bc.Reg, tuple[int, ...]]]:
    """What a parameter is made of: each with its register and where it is."""
    match spec, tree:
        case bc.TupleSpec(fields), tuple():
            for k, (field_spec, part) in enumerate(zip(fields, tree, strict=True)):
                yield from _leaves(param, field_spec, part, (*path, k))
        case bc.ShapeSpec(tuple()), int():
            yield spec, tree, path
        case bc.ScalarSpec(name), int() if name in SCALARS:
            yield spec, tree, path
        case bc.ObjectSpec(), int():
            yield spec, tree, path
        case _:
            assert isinstance(tree, int)
            yield _tensor(spec, f"input {param.name}"), tree, path


def _tensor(spec: bc.Spec, what: str) -> bc.TensorSpec:
    if not isinstance(spec, bc.TensorSpec):
        raise NotNativeError(f"{what} is no tensor")
    if spec.shape is None or spec.dtype is None:
        raise NotNativeError(f"{what} has no known shape or dtype")
    return spec


def _resolved(layout: Layout, spec: bc.TensorSpec) -> bc.TensorSpec:
    assert spec.shape is not None
    return bc.TensorSpec(spec.dtype, tuple(resolve(layout, s) for s in spec.shape), spec.rank)


def _learn(
    layout: Layout,
    instruction: bc.Instruction,
    may_call: Callable[[bc.CallFunction], None] | None,
) -> None:
    """Refuse what is not native, and take in what checks tell of slots."""
    match instruction:
        case bc.CallHost():
            raise NotNativeError("it calls Python")
        case bc.CallFunction(dst) if may_call is not None:
            may_call(instruction)
            for register in bc.leaves(dst):
                match layout.code.registers[register]:
                    case bc.ObjectSpec():
                        pass
                    case bc.ScalarSpec(name) if name in SCALARS:
                        pass
                    case spec:
                        _tensor(spec, "a result of a call")
        case bc.CallFunction():
            raise NotNativeError("it calls other graph functions")
        case bc.MakeClosure() | bc.CallClosure() | bc.RunScan():
            raise NotNativeError("it makes or calls closures")
        case bc.Print(values):
            require_told(layout.code, values, "it prints what has no known dtype or shape")
        case bc.Assert() if layout.code.aliases:  # the bytecode tells what failed, from the start
            raise NotNativeError("it asserts, and writes over its inputs")
        case bc.Match(_, bc.TensorSpec() as spec, binds, bc.TensorSpec() as known, _):
            if known.shape is None or known.dtype != spec.dtype:
                raise NotNativeError("it checks a tensor of unknown shape")
            if any(map(layout.is_late, known.shape)) and binds:
                layout.read.update(binds)  # what the sizes are now
                return
            _learn_sizes(layout, spec.shape or (), known.shape, binds)
        case bc.ReadShape(_, src):
            if _length(_tensor(layout.code.registers[src], "what a shape is read from")) is None:
                raise NotNativeError("it reads a shape of unknown rank")
        case bc.Match(int(value), bc.ShapeSpec() as expected, binds, bc.ShapeSpec(None), _):
            if expected.dims is None or read_shape(layout.code, value) != len(expected.dims):
                raise NotNativeError("it checks an unknown shape")
            if binds and layout.code.aliases:  # what is too large is done again by the bytecode
                raise NotNativeError("it reads sizes, and writes over its inputs")
            layout.read.update(binds)
        case bc.Match(_, bc.ShapeSpec() as expected, binds, bc.ShapeSpec() as found, _):
            if expected.dims is None or found.dims is None:
                raise NotNativeError("it checks an unknown shape")
            _learn_sizes(layout, expected.dims, found.dims, binds)
        case bc.Match(int(value), bc.ScalarSpec(name, wanted), binds):
            number = layout.code.registers[value]
            if not isinstance(number, bc.ScalarSpec) or number.dtype != name:
                raise NotNativeError("it checks a number of unknown dtype")
            if binds and layout.code.aliases:  # what is too large is done again by the bytecode
                raise NotNativeError("it reads sizes, and writes over its inputs")
            layout.read.update(binds if wanted is not None else ())
        case bc.Match():
            raise NotNativeError("it checks a value that is neither tensor, shape nor number")
        case bc.StoreScalar(register) | bc.ReadScalar(_, register):
            held = _tensor(layout.code.registers[register], "a number's tensor")
            if held.dtype not in (*SCALARS, HANDLE.name):
                raise NotNativeError(f"it moves a number that is {held.dtype}")
        case _:
            pass


def _learn_sizes(
    layout: Layout, expected: Sequence[Size], actual: Sequence[Size], binds: Sequence[int]
) -> None:
    """Take in what slots are that a check of some sizes against others binds."""
    for told in definitions_of(binds, expected):
        layout.know(told.slot, told.value(actual[told.place]))


def require_told(code: bc.FunctionCode, values: Sequence[bc.Tree], otherwise: str) -> None:
    """Refuse values that native code does not know well enough to tell Python of them.

    Raises:
        NotNativeError: One of several texts, or a tensor of unknown shape.
    """
    own = literals(code)
    for register in bc.leaves(tuple(values)):
        match code.registers[register]:
            case bc.TensorSpec(str(), tuple()) | bc.ShapeSpec(tuple()):
                pass
            case bc.ScalarSpec(name) if name in SCALARS:
                pass
            case bc.ObjectSpec() if register not in own or bc.literal_of(code, register):
                pass
            case _:
                raise NotNativeError(otherwise)


def _length(vector: bc.TensorSpec) -> int | None:
    """How many elements a vector has, if that is known."""
    match vector.shape:
        case (int(length),):
            return length
        case _:
            return None


def read_shape(code: bc.FunctionCode, register: bc.Reg) -> int | None:
    """The rank of a shape that one instruction reads from a vector; None if it comes otherwise."""
    match [i for i in code.code if register in _written(i)]:
        case [bc.ReadShape(_, src)]:
            spec = code.registers[src]
            return _length(spec) if isinstance(spec, bc.TensorSpec) else None
        case _:
            return None


def _choose_direct(layout: Layout) -> None:
    """Results that one instruction allocates are computed where the caller wants them."""
    writers: dict[bc.Reg, list[bc.Instruction]] = {}
    looped = in_loops(layout.code.code)
    for index, i in enumerate(layout.code.code):
        match i:
            case bc.AllocTensor(dst) | bc.Copy(dst) if index not in looped:
                writers.setdefault(dst, []).append(i)
            case bc.CallFunction(tree):
                for r in bc.leaves(tree):
                    writers.setdefault(r, []).extend([i] * (2 if index in looped else 1))
            case bc.Reshape(dst) | bc.Move(dst) | bc.LoadConst(dst) | bc.View(dst):
                writers.setdefault(dst, []).append(i)
            case bc.AllocTensor(dst) | bc.Copy(dst):
                writers.setdefault(dst, []).extend((i, i))
            case bc.Update(dst):
                for r in dst:
                    writers.setdefault(r, []).extend((i, i))
            case _:
                pass
    for output, register in enumerate(layout.results):
        while output not in layout.late_outputs and len(writers.get(register, [])) == 1:
            writer = writers[register][0]
            if isinstance(writer, bc.AllocTensor | bc.Copy | bc.CallFunction):
                layout.direct.setdefault(register, output)
            if not isinstance(writer, bc.Reshape):
                break
            register = writer.src


def in_loops(code: tuple[bc.Instruction, ...]) -> set[int]:
    """The instructions that may run more than once in a call."""
    found: set[int] = set()
    for index, i in enumerate(code):
        if isinstance(i, bc.Jump) and i.target <= index:
            found.update(range(i.target, index + 1))
    return found


def _place(layout: Layout, index: int, instruction: bc.Instruction) -> None:
    """Reserve arena space for what an instruction makes."""
    registers = layout.code.registers
    match instruction:
        case bc.AllocArena(_, size):
            layout.reserve(f"i{index}", resolve(layout, size))
        case bc.AllocTensor(dst) | bc.Copy(dst) if dst not in layout.direct:
            spec = _tensor(registers[dst], "a value")
            layout.reserve(f"r{dst}", resolve(layout, byte_count(spec)))
        case bc.CallFunction(tree):
            for r in bc.leaves(tree):
                if isinstance(registers[r], bc.TensorSpec) and r not in layout.direct:
                    size = resolve(layout, byte_count(_tensor(registers[r], "a value")))
                    layout.reserve(f"r{r}", size)
        case bc.Update(targets, sources):
            beside = staged(layout.code, targets, sources)
            tensors = [r for r in targets if isinstance(registers[r], bc.TensorSpec)]
            for r in tensors:
                size = resolve(layout, byte_count(_tensor(registers[r], "loop state")))
                layout.reserve(f"r{r}", size)
                if beside:
                    layout.reserve(f"n{r}", size)
        case _:
            pass
