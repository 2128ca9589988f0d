"""The bytecode: what an executable holds beside its kernels' machine code and its constants' data.

A `Program` is plain data (JSON through `unity.runtime.program_json`). A function has registers
(tensors, scalars, shapes, arenas, closures) and symbol slots (sizes, int64). Tuples never live in
registers: where one crosses a call or a return, it is a tree of registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias, assert_never

from unity.runtime.host_forms import NO_FORMS, HostForms
from unity.runtime.records import Index, Range
from unity.runtime.sizes import Size

Reg: TypeAlias = Index
Tree: TypeAlias = Index | tuple["Tree", ...]
"""A register, or a tuple of trees."""
Rank: TypeAlias = Annotated[int, Range(0, 64)]  # numpy's limit
Arguments: TypeAlias = Annotated[int, Range(0, 1 << 16)]
EXTERN = "extern."
"""How names begin of functions that do nothing but call one of the host."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor of known or unknown dtype and shape; of an unknown shape the rank may be known."""

    dtype: str | None
    shape: tuple[Size, ...] | None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """A tuple of sizes as a value."""

    dims: tuple[Size, ...] | None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A number; `value` when it is known as a size."""

    dtype: str
    value: Size | None = None


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """Several values."""

    fields: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class ObjectSpec:
    """Anything: an arena, a closure, an opaque value."""


Spec: TypeAlias = TensorSpec | ShapeSpec | ScalarSpec | TupleSpec | ObjectSpec


@dataclass(frozen=True, slots=True)
class CallKernel:
    """Run a kernel on tensors (inputs, then destinations) and sizes.

    `where` is the call's place in the program, if it is known.
    """

    kernel: Index
    args: tuple[Reg, ...]
    sizes: tuple[Size, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class CallHost:
    """Call a Python function of the host table.

    With `destination` it is ``fn(*args)`` and writes into its last arguments; without, its result
    goes to `dst`. `where` is the call's place in the program, if it is known.
    """

    dst: Tree
    host: Index
    args: tuple[Tree, ...]
    destination: bool = False
    where: str = ""


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call another function of the program; `where` is the call's place, if it is known."""

    dst: Tree
    function: Index
    args: tuple[Tree, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class MakeClosure:
    """A function value: the first registers and slots of its frame are copied from here."""

    dst: Reg
    function: Index
    registers: tuple[Reg, ...]
    slots: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class CallClosure:
    """Call a function value."""

    dst: Tree
    closure: Reg
    args: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class RunScan:
    """Run a closure over the leading axis of `inputs`, carrying `state`.

    For loops over what has an unknown shape; the others are loops of instructions. Each round takes
    the state and one slice of each input, and gives the next state, then outputs,
    which are stacked. `dst` is the last state, then the stacks.
    """

    dst: Tree
    closure: Reg
    state: tuple[Tree, ...]
    inputs: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class AllocTensor:
    """A fresh tensor, which may leave the function."""

    dst: Reg
    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class AllocArena:
    """Working memory for this call."""

    dst: Reg
    bytes: Size


@dataclass(frozen=True, slots=True)
class View:
    """A tensor inside an arena."""

    dst: Reg
    arena: Reg
    offset: Size
    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same storage under another shape."""

    dst: Reg
    src: Reg
    shape: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One slice of a tensor along its leading axis; it shares the tensor's storage."""

    dst: Reg
    src: Reg
    index: Size
    shape: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    """Copy a tensor's content into the storage of another."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class SetSlot:
    """Give a slot a value: a loop's counter."""

    slot: Index
    value: Size


@dataclass(frozen=True, slots=True)
class LoadConst:
    """A constant of the program."""

    dst: Reg
    constant: Index


@dataclass(frozen=True, slots=True)
class Move:
    """Another name for the same value."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class Copy:
    """A fresh tensor with the same content, so that no result is also an argument or a constant."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class Update:
    """All at once, give loop state the values of other registers, by copy.

    Copies, so that what the body computes may lie in the same place in every round.
    """

    dst: tuple[Reg, ...]
    src: tuple[Reg, ...]


@dataclass(frozen=True, slots=True)
class MakeShape:
    """A shape value."""

    dst: Reg
    dims: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class ReadShape:
    """A shape value of what an int64 vector holds."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class MakeScalar:
    """A number: a size, or a literal."""

    dst: Reg
    value: Size | float | bool
    dtype: str


@dataclass(frozen=True, slots=True)
class StoreScalar:
    """Put a number into a tensor of rank 0 that is there."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class ReadScalar:
    """The number in a tensor of rank 0."""

    dst: Reg
    src: Reg


@dataclass(frozen=True, slots=True)
class MakeLiteral:
    """A text, or a dtype by its name, as an opaque value."""

    dst: Reg
    text: str
    is_dtype: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Check a value against a spec and bind the slots in `binds`.

    `known` is what the compiler knows of the value, so that native code need not look at it;
    `name` is what messages call the value: ``"match_cast 'y'"``, ``"the result of f"``; `where` is
    the place in the program, if it is known; `rule` says what is demanded of the sizes that `known`
    is made of, in place of what was expected and got.
    """

    value: Tree
    spec: Spec
    binds: tuple[Index, ...]
    known: Spec
    name: str
    where: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Print:
    """Print values as a format says; `where` is the place in the program, if it is known."""

    values: tuple[Tree, ...]
    format: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Assert:
    """Stop with an error unless a scalar (a number or a bool tensor of rank 0) is true."""

    condition: Reg
    values: tuple[Tree, ...]
    format: str
    where: str


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to an instruction."""

    target: Index


@dataclass(frozen=True, slots=True)
class Branch:
    """Go to `otherwise` if the scalar (a number or a bool tensor of rank 0) is false."""

    condition: Reg
    otherwise: Index


@dataclass(frozen=True, slots=True)
class Return:
    """Leave the function."""

    value: Tree


Instruction: TypeAlias = (
    CallKernel
    | CallHost
    | CallFunction
    | MakeClosure
    | CallClosure
    | RunScan
    | AllocTensor
    | AllocArena
    | View
    | Reshape
    | Element
    | Fill
    | SetSlot
    | LoadConst
    | Move
    | Copy
    | Update
    | MakeShape
    | ReadShape
    | MakeScalar
    | StoreScalar
    | ReadScalar
    | MakeLiteral
    | Match
    | Print
    | Assert
    | Jump
    | Branch
    | Return
)


@dataclass(frozen=True, slots=True)
class SymbolInfo:
    """A symbol: its name, inclusive range and divisor. Its slot is its index."""

    name: str
    min: Index = 0
    max: Index | None = None
    multiple_of: Annotated[int, Range(1)] = 1


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter: its name, what it must be and the registers it fills."""

    name: str
    spec: Spec
    registers: Tree


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """A function of the program.

    Attributes:
        captured: How many leading registers, and `captured_slots` how many slots, a closure brings.
        registers: What each register holds.
        labels: For each instruction the name of what it computes, for traces and profiles.
        aliases: Pairs (result, parameter): the result is the parameter's own tensor, written over.
        input_names: What the imported model calls its inputs, if it was imported; `output_names`
            its outputs.
        forms: What a caller gives and gets in place of some of its tensors.
    """

    name: str
    params: tuple[ParamInfo, ...]
    result: Spec
    symbols: tuple[SymbolInfo, ...]
    registers: tuple[Spec, ...]
    code: tuple[Instruction, ...]
    labels: tuple[str, ...]
    captured: Index = 0
    captured_slots: Index = 0
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    aliases: tuple[tuple[Index, Index], ...] = ()
    forms: HostForms = NO_FORMS

    @property
    def given_away(self) -> frozenset[int]:
        """The parameters whose tensors a call may write over."""
        return frozenset(param for _, param in self.aliases)


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A kernel: its name, its numbers of buffers and sizes, and what its asserts say.

    Attributes:
        engine: The external engine that runs it; its sizes are the dims of all its buffers.
        symbol: The function that it is linked by, if not by its name; equal kernels have one.
    """

    name: str
    buffers: Arguments
    sizes: Arguments
    messages: tuple[str, ...] = ()
    engine: str = ""
    symbol: str = ""

    @property
    def function(self) -> str:
        """The linker's name of its function."""
        return self.symbol or self.name


@dataclass(frozen=True, slots=True)
class ConstantInfo:
    """A constant: its data is kept beside the program."""

    name: str
    dtype: str
    shape: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Functions and the tables they index.

    Attributes:
        hosts: Names of the Python functions that `CallHost` calls; they are kept beside it.
    """

    functions: tuple[FunctionCode, ...]
    kernels: tuple[KernelInfo, ...] = ()
    constants: tuple[ConstantInfo, ...] = ()
    hosts: tuple[str, ...] = ()
    version: int = 1

    def function(self, name: str) -> FunctionCode:
        """The function of a name; it must exist."""
        return next(f for f in self.functions if f.name == name)


def leaves(tree: Tree) -> Iterator[Reg]:
    """The registers of a tree, left to right."""
    if isinstance(tree, int):
        yield tree
    else:
        for part in tree:
            yield from leaves(part)


def leaf_specs(spec: Spec) -> Iterator[Spec]:
    """What a value is made of that may be a tuple, left to right."""
    if isinstance(spec, TupleSpec):
        for field in spec.fields:
            yield from leaf_specs(field)
    else:
        yield spec


def spec_sizes(spec: Spec) -> tuple[Size, ...]:
    """The sizes in a spec, in order."""
    match spec:
        case TensorSpec(_, sizes) | ShapeSpec(sizes):
            return sizes or ()
        case ScalarSpec(_, value):
            return () if value is None else (value,)
        case TupleSpec(fields):
            return tuple(s for f in fields for s in spec_sizes(f))
        case ObjectSpec():
            return ()
        case _:
            assert_never(spec)


def literal_of(code: FunctionCode, register: Reg) -> MakeLiteral | None:
    """The text or dtype that a register holds; None if something else is in it."""
    made = (i for i in code.code if isinstance(i, MakeLiteral) and i.dst == register)
    return next(made, None)
