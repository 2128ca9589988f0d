"""The instructions of a function, and the trees of registers that they take and give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from unity.runtime.records import Index

from .sizes import Size
from .specs import Spec

Reg: TypeAlias = Index
Tree: TypeAlias = Index | tuple["Tree", ...]
"""A register, or a tuple of trees."""


def leaves(tree: Tree) -> Iterator[Reg]:
    """The registers of a tree, left to right."""
    if isinstance(tree, int):
        yield tree
    else:
        for part in tree:
            yield from leaves(part)


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
