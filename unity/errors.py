"""Errors that reach a user: what went wrong, where, and what to do about it.

The lowest file of the tree: every layer raises these, so it imports nothing of ours.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType

_WIDEST = 240
"""How long a line may be that errors show whole."""
_MOST_CALLS = 4
"""How many calls of macros by macros errors show all of."""
FULL_TRACEBACKS = os.environ.get("UNITY_TRACEBACK") == "full"
"""Whether errors keep the frames of ours; the environment's UNITY_TRACEBACK=full says so."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where something comes from: a stretch of source text, or a node of a model's graph.

    Attributes:
        file: The source file, or the model's name.
        line: The first line, counted from 1; 0 for a node.
        column: The first column, counted from 0.
        end_line: The last line.
        end_column: The column behind the last one.
        node: What a node of a model is called, with its operator; empty for text.
        called: Where the macro is called whose text it is; None for text that is no macro's.
        rule: What a check there demands of sizes, in words; empty where the check says it itself.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    node: str = ""
    called: Span | None = None
    rule: str = ""

    @classmethod
    def of_node(cls, model: str, node: str) -> Span:
        """The place of a node in a model.

        >>> str(Span.of_node("resnet.onnx", "conv1 (Conv)"))
        'resnet.onnx: conv1 (Conv)'
        """
        return cls(model, 0, 0, 0, 0, node)

    def __str__(self) -> str:
        """The place as ``file:line:column``, both counted from 1, or ``model: node``."""
        if self.node:
            return f"{self.file}: {self.node}"
        return f"{self.file}:{self.line}:{self.column + 1}"


def place_of(span: Span | None) -> str:
    """Where something is written, in one line; empty if it is not known.

    >>> place_of(Span("m.py", 3, 4, 3, 9, called=Span("m.py", 8, 4, 8, 12)))
    'm.py:3:5 (called at m.py:8:5)'
    """
    if span is None:
        return ""
    calls = _calls(span)
    return f"{span} (called at {calls[-1]})" if calls else str(span)


def _calls(span: Span) -> list[Span]:
    """Where the macro is called that a place is in, where the one that calls it, and so on."""
    found: list[Span] = []
    while span.called is not None:
        span = span.called
        found.append(span)
    return found


def index_count(name: str, dims: int, got: int) -> str:
    """What is said of an access with another number of indices than there are dims.

    >>> index_count("a", 1, 2)
    'a has 1 dim, got 2 indices'
    """
    has = "1 dim" if dims == 1 else f"{dims} dims"
    return f"{name} has {has}, got {'1 index' if got == 1 else f'{got} indices'}"


def takes_inputs(function: str, names: Sequence[str]) -> str:
    """What a function takes, for the message of a call with other inputs.

    >>> takes_inputs("main", ["x"]), takes_inputs("main", ["x", "y"])
    ('main takes 1 input (x)', 'main takes 2 inputs (x, y)')
    """
    inputs = "1 input" if len(names) == 1 else f"{len(names)} inputs"
    return f"{function} takes {inputs} ({', '.join(names)})"


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
        self.frames: TracebackType | None = None
        """Where in Unity it was raised, if its traceback was cut: see `trim_frames`."""

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


class InternalError(UnityError):
    """A mistake of ours: something broke that holds for every program, whatever the user wrote."""


def trim_frames(error: UnityError, entry: CodeType) -> None:
    """Cut the frames of ours off an error that leaves the public interface.

    Its traceback then ends at the user's call. What is cut is kept as `UnityError.frames`; with
    ``UNITY_TRACEBACK=full`` in the environment nothing is cut.

    Args:
        error: The error, caught in a function of the public interface.
        entry: The code of that function; an inner call of one is left to the outermost.
    """
    if FULL_TRACEBACKS or isinstance(error, InternalError) or _within(entry):
        return
    error.frames, error.__traceback__ = error.__traceback__, None
    error.__suppress_context__ = True


def _within(entry: CodeType) -> bool:
    """Whether a public function is running outside the one that asks."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        if frame.f_code is entry:
            return True
        frame = frame.f_back
    return False


def render(span: Span, message: str) -> list[str]:
    """The lines of a message: its place, source line and caret; then those of calls."""
    lines, calls = [f"{span}: {message}", *_line_of(span)], _calls(span)
    for k, called in enumerate(calls):
        if len(calls) <= _MOST_CALLS or k in (0, len(calls) - 1):
            lines += [f"called at {called}:", *_line_of(called)]
        elif k == 1:
            lines.append(f"... {len(calls) - 2} calls between")
    return lines


def _line_of(span: Span) -> list[str]:
    """The line of a place, with a caret below."""
    lines: list[str] = []
    if span.node:
        return lines
    source = linecache.getline(span.file, span.line).rstrip("\n")
    if source:
        end = span.end_column if span.end_line == span.line else len(source)
        shown, cut = _around(source, span.column)
        column = span.column - cut
        carets = "^" * max(1, min(end - cut, len(shown)) - column)
        prefix = f"{span.line:>5} | "
        lines.append(prefix + shown)
        lines.append(" " * (len(prefix) + column) + carets)
    return lines


def _around(source: str, column: int) -> tuple[str, int]:
    """A line, or of a long one (a program may be one) the part around a column; and its shift.

    >>> _around("short", 2)
    ('short', 0)
    >>> shown, shift = _around("x" * 1000, 500)
    >>> len(shown), shown[500 - shift], shown[:4]
    (160, 'x', '...x')
    """
    if len(source) <= _WIDEST:
        return source, 0
    start = max(0, min(column - 60, len(source) - 160))
    part = source[start : start + 160]
    part = "..." + part[3:] if start else part
    return (part[:-3] + "..." if start + 160 < len(source) else part), start
