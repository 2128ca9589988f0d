"""What `print` and `assert` of graph functions do, for all that runs programs.

Native code has its lines printed by a `Printer`, which reads values from where they lie. Where it
fails, the bytecode runs from the start to say what is wrong: it leaves out the lines that were
printed before (`take_printed`), and the calls of Python that were made (`take_given`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc
from unity.runtime.check import Value
from unity.runtime.failure import CalledFrom
from unity.runtime.native_info import NOT_PRINTED


def print_values(format: str, values: Sequence[object]) -> None:
    """Print values; see `text_of`.

    Raises:
        UnityError: The format does not fit them.
    """
    print(text_of(format, values))


def assertion_error(where: str, format: str, values: Sequence[object]) -> UnityError:
    """The error of a condition that does not hold.

    Args:
        where: The place in the program, or what is known of it.
        format: Of the message; empty if there is none.
        values: What it is made of.
    """
    message = text_of(format, values)
    place = f"{where}: " if where else ""
    return UnityError(f"{place}assertion failed" + (f": {message}" if message else ""))


def text_of(format: str, values: Sequence[object]) -> str:
    """Values as a format says; without one with spaces between. Arrays of rank 0 are numbers.

    Raises:
        UnityError: The format does not fit them.

    >>> text_of("{:.2f} of {}", [np.float32(0.125), (2, 3)]), text_of("", [1, "a"])
    ('0.12 of (2, 3)', '1 a')
    """
    plain = [_plain(v) for v in values]
    if not format:
        return " ".join(map(str, plain))
    try:
        return format.format(*plain)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise UnityError(f"the format {format!r} does not fit what is printed: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic) and value.shape == ():
        return value.item()
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


@dataclass(slots=True)
class Replies:
    """What functions gave that native code had the interpreter run, before it failed.

    The bytecode takes it in place of calling them again.

    Attributes:
        given: In the order of the calls.
        native: The names of the functions that are native.
    """

    given: Iterator[Value]
    native: Collection[str]

    def __call__(self, caller: str, callee: str) -> Value | None:
        """What a call gave; None if it was not made. No function gives None."""
        called = caller in self.native and callee not in self.native
        return next(self.given, None) if called else None


class _Pending(threading.local):
    printed = 0
    given: Sequence[Value] = ()


_pending = _Pending()


def take_printed() -> int:
    """How many prints native code made before it failed in this thread; then forgotten."""
    count, _pending.printed = _pending.printed, 0
    return count


def take_given() -> Sequence[Value]:
    """What functions gave it that it had the interpreter run, likewise."""
    given, _pending.given = _pending.given, ()
    return given


def note_given(given: Sequence[Value]) -> None:
    """Keep that for the bytecode: the native function that called is about to give up."""
    _pending.given = given


@dataclass(slots=True)
class Prints:
    """Prints in order, without the first ones: they have been made.

    Attributes:
        skipped: How many are left out.
    """

    skipped: int = 0
    made: int = field(default=0, init=False)

    def __call__(self, format: str, values: Sequence[object]) -> None:
        """Print, unless it has been done."""
        self.made += 1
        if self.made > self.skipped:
            print_values(format, values)


@dataclass(frozen=True, slots=True)
class Printer:
    """What native code of a program calls to print."""

    program: bc.Program

    def __call__(self, function: int, at: int, count: int, table: int) -> None:
        """Print what an instruction says.

        Args:
            function: Its function's index; `NOT_PRINTED` where a call failed.
            at: Its own.
            count: How many prints the call has made, this one among them.
            table: Where the values are told of, in words of 8 bytes.
        """
        if function == NOT_PRINTED:
            _pending.printed = count
            return
        code = self.program.functions[function]
        instruction = code.code[at]
        assert isinstance(instruction, bc.Print)
        reader = Reader(code, table)
        with CalledFrom(instruction.where):
            print_values(instruction.format, [reader.value(v) for v in instruction.values])


@dataclass(slots=True)
class Reader:
    """Reads a table from its begin to its end.

    Attributes:
        code: The function whose registers it tells of.
        at: Where it goes on.
        copies: Whether tensors are copied, so that they may be kept.
    """

    code: bc.FunctionCode
    at: int
    copies: bool = False

    def word(self) -> int:
        """The next word, as an integer."""
        found = ctypes.c_int64.from_address(self.at).value
        self.at += 8
        return found

    def value(self, tree: bc.Tree) -> object:
        """A value."""
        if isinstance(tree, tuple):
            return tuple(self.value(t) for t in tree)
        match self.code.registers[tree]:
            case bc.TensorSpec(str(name), shape, rank):
                data = self.word() & (2**64 - 1)
                dims = [self.word() for _ in range(rank or 0 if shape is None else len(shape))]
                found = array_at(data, dims, dtype(name).numpy)
                return found.copy() if self.copies else found
            case bc.ShapeSpec(dims, rank):
                return tuple(self.word() for _ in range(rank or 0 if dims is None else len(dims)))
            case bc.ScalarSpec(name):
                return self.number(name)
            case _:
                literal = bc.literal_of(self.code, tree)
                if literal is None:
                    given: object = ctypes.cast(self.word(), ctypes.py_object).value
                    return given
                return dtype(literal.text).numpy if literal.is_dtype else literal.text

    def number(self, name: str) -> object:
        """A scalar of a dtype."""
        if dtype(name).is_float:
            number = ctypes.c_double.from_address(self.at).value
            self.at += 8
            return number
        return self.word() if dtype(name).is_int else bool(self.word())


def array_at(data: int, dims: Sequence[int], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array over memory of native code, which must not be kept."""
    size = int(np.prod(dims, dtype=np.int64)) * kind.itemsize
    if size == 0:
        return np.empty(dims, kind)
    memory = memoryview((ctypes.c_uint8 * size).from_address(data)).cast("B")
    return np.frombuffer(memory, kind).reshape(dims)
