"""Writing LLVM IR as text: one function's instructions, with scoped reuse of equal pure ones.

Values are strings, a register's name or a constant; an instruction is one appended line. This is
sixteen times faster than building instruction objects, and what is emitted is what one reads.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from unity.errors import UnityError
from unity.ir.prim_expr import PrimExpr
from unity.machine.machine import MACHINE, Machine

from .abilities import Abilities
from .types import I64, Ty


@dataclass(slots=True)
class Unit:
    """An LLVM module under construction.

    Attributes:
        abilities: What the target can do.
        attributes: Text of the attributes every function carries.
        machine: What things take there.
        functions: Text of the functions by name, in order.
        metadata: Text of the numbered metadata nodes.
    """

    abilities: Abilities
    attributes: str
    machine: Machine = MACHINE
    functions: dict[str, str] = field(default_factory=dict[str, str])
    globals: dict[str, str] = field(default_factory=dict[str, str])
    metadata: list[str] = field(default_factory=list[str])

    def metadata_node(self, text: str) -> str:
        """The name of a new metadata node; ``{self}`` in the text is the name itself."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {text.replace('{self}', name)}")
        return name

    def declare(self, symbol: str, result: str, args: Sequence[str]) -> None:
        """Declare a foreign function.

        Raises:
            UnityError: It was declared in another way.
        """
        line = f"declare {result} @{symbol}({', '.join(args)})"
        if self.globals.setdefault(symbol, line) != line:
            raise UnityError(
                f"{symbol} is called as two functions: {self.globals[symbol]}; {line}",
                hint="pass the same kinds of arguments everywhere",
            )

    def text(self) -> str:
        """The module's text, without layout and triple."""
        return "\n".join((*self.globals.values(), *self.functions.values(), *self.metadata)) + "\n"


def int_text(value: int, type_: Ty) -> str:
    """A constant of an integer type, the same in each lane; reduced to the type's width."""
    half = 1 << (type_.bits - 1)
    if not -half <= value < half:
        value = (value + half) % (2 * half) - half
    text = str(value) if half > 1 else "true" if value & 1 else "false"
    return text if type_.lanes == 1 else f"splat ({type_.element} {text})"


def steps_text(type_: Ty, stride: int = 1) -> str:
    """The constant vector ``0, stride, 2 * stride, ...``."""
    return f"<{', '.join(f'{type_.element} {i * stride}' for i in range(type_.lanes))}>"


def float_text(value: float, type_: Ty) -> str:
    """A constant of a floating type, rounded to it, the same in each lane."""
    if type_.bits == 32 and value == value and abs(value) != float("inf"):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    text = f"0x{struct.pack('>d', value).hex().upper()}"
    return text if type_.lanes == 1 else f"splat ({type_.element} {text})"


class Emitter:
    """Instructions of one function, in order."""

    __slots__ = (
        "_count",
        "_known",
        "_log",
        "_own",
        "_read",
        "allocas",
        "block",
        "indices",
        "lines",
        "narrow",
        "unit",
    )

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.narrow: dict[tuple[str, str], str] = {}  # (dtype, what it was widened to) -> bits
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block = "entry"
        self._count = 0
        self.indices: dict[PrimExpr, tuple[str, bool]] = {}  # filled by `note`
        self._known: dict[str, str] = {}
        self._log: list[str | PrimExpr] = []
        self._own: set[str] = set()  # storage of this function, which nothing else points to
        self._read: dict[str, tuple[str, str]] = {}  # (load -> its register, pointer) of the block

    def register(self) -> str:
        """A fresh register's name."""
        self._count += 1
        return f"%t{self._count}"

    def effect(self, text: str) -> str:
        """Emit an instruction that must not be merged with an equal one; the register it gives."""
        self._read.clear()
        return self._emit(text)

    def opaque(self, value: str) -> str:
        """The same 64 bits, as a register that LLVM knows nothing of.

        What was computed of it then is an address with constants behind it, for LLVM. Of a nest of
        counters it made a pointer for each access instead, dozens of them, which all loops of the
        nest kept on the stack: sums of 3d convolutions took twice the time.
        """
        if not self.unit.abilities.wide_registers:
            return value
        return self.effect(f'call i64 asm "", "=r,0"(i64 {value})')

    def add_to(self, t: Ty, x: str, y: str, z: str) -> str | None:
        """``x * y + z`` where `z` was, if that can be told.

        Of a number that is broadcast for one product alone LLVM takes the register instead: no sum
        stays where it is, and where a tile fills all registers a third of them go to the stack
        (3x3 of 512 channels of 7 x 7, AMD Zen 3: 3,300 us, 2,800 so).
        """
        if not self.unit.abilities.ties or t.bits * t.lanes not in (128, 256):
            return None
        kind = {"float": "ps", "double": "pd"}.get(t.element)
        if kind is None:
            return None
        operands = ", ".join(f"{t.text} {v}" for v in (z, x, y))
        return self.pure(f'call {t.text} asm "vfmadd231{kind} $3, $2, $0", "=x,0,x,x"({operands})')

    def _emit(self, text: str) -> str:
        name = self.register()
        self.lines.append(f"  {name} = {text}")
        return name

    def read(self, text: str, pointer: str) -> str:
        """Emit a load; or reuse an equal one of this block, if nothing was written there since.

        Args:
            text: The instruction.
            pointer: The buffer's, as `write` has it.
        """
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = (self._emit(text), pointer)
        return found[0]

    def write(self, text: str, pointer: str) -> None:
        """Emit an instruction that writes to a buffer, and to no other memory."""
        if pointer in self._own:
            gone = [k for k, (_, p) in self._read.items() if p == pointer]
        else:
            gone = [k for k, (_, p) in self._read.items() if p not in self._own]
        for k in gone:
            del self._read[k]
        self.lines.append("  " + text)

    def hint(self, text: str) -> None:
        """Emit an instruction that changes nothing."""
        self.lines.append("  " + text)

    def pure(self, text: str) -> str:
        """Emit an instruction that depends on its operands only; or reuse an equal one."""
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = self._emit(text)
            self._log.append(text)
        return name

    def note(self, e: PrimExpr, index: tuple[str, bool]) -> tuple[str, bool]:
        """Keep in `indices` what an index came to, as long as what follows has its registers."""
        self.indices[e] = index
        self._log.append(e)
        return index

    def first(self, fact: str) -> bool:
        """Whether a fact is new here; it is known to what follows, as pure instructions are."""
        if fact in self._known:
            return False
        self._known[fact] = ""
        self._log.append(fact)
        return True

    def do(self, text: str) -> None:
        """Emit an instruction that gives nothing, but may write anywhere."""
        self._read.clear()
        self.lines.append("  " + text)

    def new_label(self, hint: str) -> str:
        """A fresh block's name."""
        self._count += 1
        return f"{hint}{self._count}"

    def label(self, name: str) -> None:
        """Begin a block."""
        self._read.clear()
        self.lines.append(f"{name}:")
        self.block = name

    def branch(self, label: str) -> None:
        """Go to a block."""
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then: str, orelse: str, suffix: str = "") -> None:
        """Go to one of two blocks."""
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{orelse}{suffix}")

    def mark(self) -> int:
        """A point to `forget` back to: what is emitted after it does not dominate what follows."""
        return len(self._log)

    def forget(self, mark: int) -> None:
        """Make the pure instructions emitted since `mark` unknown again."""
        for key in self._log[mark:]:
            if isinstance(key, str):
                del self._known[key]
            else:
                self.indices.pop(key, None)
        del self._log[mark:]

    def call(self, name: str, result: Ty, *args: tuple[Ty, str], flags: str = "") -> str:
        """Call a pure function or intrinsic of this name."""
        operands = ", ".join(f"{t.text} {v}" for t, v in args)
        return self.pure(f"call {flags}{result.text} @{name}({operands})")

    def intrinsic(self, name: str, type_: Ty, *args: str, flags: str = "") -> str:
        """Call ``llvm.<name>`` overloaded on one type that all operands and the result have."""
        text = type_.text
        operands = ", ".join([f"{text} {v}" for v in args])
        return self.pure(f"call {flags}{text} @llvm.{name}.{type_.suffix}({operands})")

    def alloca(self, type_text: str, count: int, align: int) -> str:
        """Stack storage for the function's whole run.

        Of array type: with a count as an operand, LLVM would not promote it to registers.
        """
        name = self.register()
        self.allocas.append(f"  {name} = alloca [{count} x {type_text}], align {align}")
        self._own.add(name)
        return name

    def address(self, pointer: str, index: str, element: Ty, *, inbounds: bool = True) -> str:
        """The address of an element."""
        if index == "0":
            return pointer
        flag = "inbounds " if inbounds else ""
        return self.pure(f"getelementptr {flag}{element.text}, ptr {pointer}, i64 {index}")

    def splat(self, value: str, type_: Ty) -> str:
        """A vector with the scalar in each lane; the scalar where the type is one."""
        if type_.lanes == 1:
            return value
        if value[0] != "%":
            return f"splat ({type_.element} {value})"
        one = self.pure(f"insertelement {type_.text} poison, {type_.element} {value}, i64 0")
        return self.pure(
            f"shufflevector {type_.text} {one}, {type_.text} poison, "
            f"<{type_.lanes} x i32> zeroinitializer"
        )

    def add(self, a: str, b: str, flags: str = "nsw ") -> str:
        """Sum of two i64, constants folded."""
        if a[0] != "%" and b[0] != "%":
            return int_text(int(a) + int(b), I64)
        if a == "0":
            return b
        if b == "0":
            return a
        return self.pure(f"add {flags}i64 {a}, {b}")

    def mul(self, a: str, b: str, flags: str = "nsw ") -> str:
        """Product of two i64, constants folded."""
        if a[0] != "%" and b[0] != "%":
            return int_text(int(a) * int(b), I64)
        if a == "0" or b == "0":
            return "0"
        if a == "1":
            return b
        if b == "1":
            return a
        return self.pure(f"mul {flags}i64 {a}, {b}")

    def function(self, header: str) -> str:
        """The text of the function; the last block must end with a terminator."""
        return "\n".join((f"{header} {{", "entry:", *self.allocas, *self.lines, "}", ""))
