"""Lines of text at the current indentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_INDENT = "    "
_WIDTH = 100


class Lines:
    """Collects lines; `block` indents those added inside it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._prefix = ""

    def add(self, line: str) -> None:
        """One line."""
        self._lines.append(self._prefix + line if line else "")

    def definition(self, name: str, params: Sequence[str], end: str) -> str:
        """The header of a function, one parameter a line if it is wide."""
        header = f"def {name}({', '.join(params)}){end}"
        if len(self._prefix) + len(header) <= _WIDTH or not params:
            return header
        inner = "".join(f"{self._prefix}{_INDENT}{param},\n" for param in params)
        return f"def {name}(\n{inner}{self._prefix}){end}"

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A header and an indented suite, ``pass`` if nothing is added to it."""
        self.add(header)
        count, outer = len(self._lines), self._prefix
        self._prefix = outer + _INDENT
        yield
        if len(self._lines) == count:
            self.add("pass")
        self._prefix = outer

    def __len__(self) -> int:
        """How many there are."""
        return len(self._lines)

    def text(self) -> str:
        """All lines, each ended."""
        return "".join(f"{line}\n" for line in self._lines)
