"""A program: functions of instructions, and the tables that these index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from unity.runtime.host_forms import NO_FORMS, HostForms
from unity.runtime.records import Index, Range

from .instructions import Instruction, MakeLiteral, Reg, Tree
from .specs import Spec

Arguments: TypeAlias = Annotated[int, Range(0, 1 << 16)]
EXTERN = "extern."
"""How names begin of functions that do nothing but call one of the host."""


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


def literal_of(code: FunctionCode, register: Reg) -> MakeLiteral | None:
    """The text or dtype that a register holds; None if something else is in it."""
    made = (i for i in code.code if isinstance(i, MakeLiteral) and i.dst == register)
    return next(made, None)
