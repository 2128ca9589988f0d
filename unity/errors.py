"""Errors that reach a user: what went wrong, where, and what to do about it.

The lowest file of the tree: every layer raises these, so it imports nothing of ours.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text: 1-based lines, 0-based columns, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class UnityError(Exception):
    """A mistake in what the user gave us.

    Args:
        message: What was got and what was expected, in one sentence.
        span: The place in the user's source, if there is one.
        hint: What to do about it.
    """

    def __init__(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        """Render as ``file:line:column: message`` with the source line, a caret and the hint."""
        lines = [self.message]
        if self.span is not None:
            lines = render(self.span, self.message)
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UnsupportedError(UnityError):
    """Something valid that Unity does not implement; lists every gap at once.

    Args:
        message: What could not be done.
        gaps: Each missing thing (an operator, an attribute, an instruction), one a line.
        span: The place in the user's source, if there is one.
        hint: What to do about it.
    """

    def __init__(
        self,
        message: str,
        gaps: Sequence[str] = (),
        span: Span | None = None,
        hint: str | None = None,
    ) -> None:
        full = "\n".join([message, *(f"  - {gap}" for gap in gaps)])
        super().__init__(full, span, hint)
        self.gaps = tuple(gaps)


def render(span: Span, message: str) -> list[str]:
    """The lines of a message at a place: position, source line and caret."""
    lines = [f"{span.file}:{span.line}:{span.column + 1}: {message}"]
    source = linecache.getline(span.file, span.line).rstrip("\n")
    if source:
        end = span.end_column if span.end_line == span.line else len(source)
        carets = "^" * max(1, end - span.column)
        prefix = f"{span.line:>5} | "
        lines.append(prefix + source)
        lines.append(" " * (len(prefix) + span.column) + carets)
    return lines
