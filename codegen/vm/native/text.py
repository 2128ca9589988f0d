"""A small emitter of LLVM IR text for the native VM: names, blocks and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from unity.runtime.bytecode.sizes import Definition, Size, SizeOp, SizeOpName, Slot

_DIRECT: dict[SizeOpName, str] = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}
_PICKS: dict[SizeOpName, str] = {"min": "slt", "max": "sgt"}


@dataclass(slots=True)
class Text:
    """A function being written.

    Attributes:
        known: Slots that are expressions of others.
        sizes: Sizes computed so far in this block.
    """

    lines: list[str] = field(default_factory=list)
    known: Mapping[int, Size] = field(default_factory=dict)
    sizes: dict[Size, str] = field(default_factory=dict)
    _count: int = 0

    def do(self, line: str) -> None:
        """A line without a result."""
        self.lines.append(f"  {line}")

    def let(self, expr: str) -> str:
        """A line with a result; the result's name."""
        name = f"%t{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {expr}")
        return name

    def block(self, label: str) -> None:
        """Begin a block; sizes computed before are not known to be available in it."""
        self.lines.append(f"{label}:")
        self.sizes.clear()

    def at(self, base: str, offset: int | str, element: str = "i8") -> str:
        """A pointer `offset` elements after another."""
        return self.let(f"getelementptr {element}, ptr {base}, i64 {offset}")

    def load(self, kind: str, base: str, offset: int | str = 0, element: str = "i8") -> str:
        """What lies `offset` elements after a pointer."""
        return self.let(f"load {kind}, ptr {self.at(base, offset, element)}")

    def store(self, kind: str, value: str, base: str, index: int) -> None:
        """Store into the `index`-th element of that kind."""
        self.do(f"store {kind} {value}, ptr {self.at(base, index, kind)}")

    def size(self, size: Size) -> str:
        """A size as an operand; slots lie in ``%slots``."""
        match size:
            case int():
                return str(size)
            case Slot(index) if index in self.known:
                return self.size(self.known[index])
            case _:
                if size not in self.sizes:
                    self.sizes[size] = self._size(size)
                return self.sizes[size]

    def told(self, definition: Definition, actual: str) -> tuple[str, list[str]]:
        """What a slot is by the actual value of a size, and the conditions that it is that.

        That the size then has its actual value is for the caller to compare.
        """
        if definition == Definition(definition.slot, definition.place):
            return actual, []
        slope, rest = self.size(definition.slope), self.size(definition.rest)
        ends = (rest, actual) if definition.falling else (actual, rest)
        value = self.operation("floordiv", self.operation("sub", *ends), slope)
        conditions = [self.let(f"icmp sge i64 {value}, 0")]
        if not isinstance(definition.slope, int):
            conditions.append(self.let(f"icmp sgt i64 {slope}, 0"))
        return value, conditions

    def _size(self, size: Slot | SizeOp) -> str:
        match size:
            case Slot(index):
                return self.load("i64", "%slots", index, "i64")
            case SizeOp(op, a, b):
                return self.operation(op, self.size(a), self.size(b))
            case _:
                assert_never(size)

    def operation(self, op: SizeOpName, a: str, b: str) -> str:
        """An operation on two operands, which does not wrap."""
        match op:
            case "add" | "sub" | "mul":
                return self.let(f"{_DIRECT[op]} i64 {a}, {b}")
            case "min" | "max":
                first = self.let(f"icmp {_PICKS[op]} i64 {a}, {b}")
                return self.let(f"select i1 {first}, i64 {a}, i64 {b}")
            case "floordiv" | "floormod":
                return self._divide(op, a, b)
            case _:
                assert_never(op)

    def _divide(self, op: SizeOpName, a: str, b: str) -> str:
        """Rounding down, unlike LLVM: one less where signs differ and something is left.

        Nothing traps: what divides by 0 is not called natively (`overflow`), or a check fails.
        """
        if b.startswith("%"):
            none = self.let(f"icmp eq i64 {b}, 0")
            b = self.let(f"select i1 {none}, i64 1, i64 {b}")
        rest = self.let(f"srem i64 {a}, {b}")
        left = self.let(f"icmp ne i64 {rest}, 0")
        signs = self.let(f"xor i64 {rest}, {b}")
        differ = self.let(f"icmp slt i64 {signs}, 0")
        adjust = self.let(f"and i1 {left}, {differ}")
        if op == "floordiv":
            one = self.let(f"zext i1 {adjust} to i64")
            quotient = self.let(f"sdiv i64 {a}, {b}")
            return self.let(f"sub i64 {quotient}, {one}")
        moved = self.let(f"add i64 {rest}, {b}")
        return self.let(f"select i1 {adjust}, i64 {moved}, i64 {rest}")


def disjoint(t: Text, a: str, a_bytes: str, b: str, b_bytes: str) -> str:
    """Whether two stretches of memory share nothing: the name of a bit."""
    before = t.let(f"icmp ule ptr {t.at(a, a_bytes)}, {b}")
    behind = t.let(f"icmp ule ptr {t.at(b, b_bytes)}, {a}")
    none = [t.let(f"icmp eq i64 {n}, 0") for n in (a_bytes, b_bytes)]
    empty = t.let(f"or i1 {none[0]}, {none[1]}")
    return t.let(f"or i1 {t.let(f'or i1 {before}, {behind}')}, {empty}")
