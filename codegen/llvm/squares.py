"""Rectangles transposed in registers, 16 bytes at a time: what every instruction set shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .emitter import Emitter
from .types import Ty

_PIECE = 16
"""Bytes within which all instruction sets interleave two registers in one instruction."""


@dataclass(frozen=True, slots=True)
class Squares:
    """Columns of `lanes` lines written as lines, as many at a time as fit in 16 bytes.

    Attributes:
        em: Where to.
        element: The type of an element in memory.
        size: Its bytes.
        lanes: How many lines are read: the length of those written.
    """

    em: Emitter
    element: Ty
    size: int
    lanes: int

    @property
    def side(self) -> int:
        """How many columns are done together."""
        return _PIECE // self.size

    def emit(self, lines: Sequence[str], first: int, results: Sequence[str]) -> None:
        """Columns from `first` on of the lines at some addresses, each to an address of its own."""
        side, width = self.side, len(results)
        squares = 1 << (-(-self.lanes // side) - 1).bit_length()
        rows = [self._row(lines[m::side], first, width, squares) for m in range(side)]
        half, wide = side // 2, side * squares
        for _ in range(side.bit_length() - 1):
            rows = [
                self._shuffle(wide, a, b, self._interleaved(squares, begin))
                for a, b in zip(rows[:half], rows[half:], strict=True)
                for begin in (0, half)
            ]
        for row, address in zip(rows, results, strict=False):
            kept = row
            if self.lanes < wide:
                kept = self._shuffle(wide, row, "poison", list(range(self.lanes)))
            self.em.do(f"store {self._vector(self.lanes)} {kept}, ptr {address}, align {self.size}")

    def _row(self, lines: Sequence[str], first: int, width: int, squares: int) -> str:
        """Pieces of lines side by side; what there is no line for is poison."""
        parts = [self._piece(line, first, width) for line in lines]
        parts += ["poison"] * (squares - len(parts))
        lanes = self.side
        while len(parts) > 1:
            both = list(range(2 * lanes))
            parts = [
                self._shuffle(lanes, a, b, both) if a != "poison" else a
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            lanes *= 2
        return parts[0]

    def _piece(self, line: str, first: int, width: int) -> str:
        address = self.em.address(line, str(first), self.element)
        value = self.em.effect(f"load {self._vector(width)}, ptr {address}, align {self.size}")
        if width == self.side:
            return value
        lanes = [i if i < width else None for i in range(self.side)]
        return self._shuffle(width, value, "poison", lanes)

    def _interleaved(self, squares: int, begin: int) -> list[int]:
        """Half of each square of one register with the same half of another's."""
        side, total = self.side, self.side * squares
        places = [s * side + begin + i for s in range(squares) for i in range(side // 2)]
        return [p + register for p in places for register in (0, total)]

    def _vector(self, lanes: int) -> str:
        return f"<{lanes} x {self.element.text}>"

    def _shuffle(self, of: int, a: str, b: str, lanes: Sequence[int | None]) -> str:
        order = ", ".join("i32 poison" if i is None else f"i32 {i}" for i in lanes)
        return self.em.pure(
            f"shufflevector {self._vector(of)} {a}, {self._vector(of)} {b}, "
            f"<{len(lanes)} x i32> <{order}>"
        )
