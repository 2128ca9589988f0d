"""Where a function's text is: its syntax tree, and spans and errors by absolute position."""

from __future__ import annotations

import ast
import io
import linecache
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType

from unity.errors import Span, UnityError

_TEXTS_KEPT = 16
_remembered: dict[str, None] = {}
"""The names of texts whose lines errors can show, the oldest first."""


@dataclass(frozen=True, slots=True)
class Copied:
    """Lines of a definition that is put in place where it is called, behind those of a source.

    Attributes:
        behind: How many lines are before them.
        file: Where they are from.
        before: How many lines are before them there.
        called: Where the definition is called.
    """

    behind: int
    file: str
    before: int = 0
    called: Span | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file (or a notebook cell, or a text) as lines.

    Attributes:
        file: Its name.
        lines: Its lines, and behind them those of definitions that are called in it.
        copies: Which those are, in order.
    """

    file: str
    lines: tuple[str, ...]
    copies: tuple[Copied, ...] = ()

    def with_called(
        self, other: Source, node: ast.FunctionDef, call: ast.expr
    ) -> tuple[Source, int]:
        """The source with a definition's lines behind its own, and how far those are moved.

        Args:
            other: Where the definition is.
            node: It.
            call: What calls it, in this source.
        """
        found, behind = other.span(node), len(self.lines)
        assert found is not None
        copied = Copied(behind, found.file, found.line - 1, self.span(call))
        lines = (*self.lines, *other.lines[node.lineno - 1 : node.end_lineno])
        return Source(self.file, lines, (*self.copies, copied)), behind + 1 - node.lineno

    def span(self, node: ast.AST) -> Span | None:
        """The stretch a node takes."""
        if not isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
            return None
        end_line = node.end_lineno or node.lineno
        k = bisect_left(self.copies, node.lineno, key=lambda c: c.behind)
        found = self.copies[k - 1] if k else Copied(0, self.file)
        moved = found.behind - found.before
        return Span(
            found.file,
            node.lineno - moved,
            self._column(node.lineno, node.col_offset),
            end_line - moved,
            self._column(end_line, node.end_col_offset or node.col_offset),
            called=found.called,
        )

    def error(self, node: ast.AST, message: str, hint: str | None = None) -> UnityError:
        """An error at a node, to be raised."""
        return UnityError(message, self.span(node), hint)

    def refuse_else(self, loop: ast.For | ast.While) -> None:
        """Refuse a loop with ``else``.

        Raises:
            UnityError: It has one.
        """
        if not loop.orelse:
            return
        word = "for" if isinstance(loop, ast.For) else "while"
        raise self.error(
            loop.orelse[0],
            f"{word} ... else is not part of the language",
            "write these statements behind the loop; where a break skips them, let a variable "
            "tell of it and ask that by an if",
        )

    def plain_params(self, node: ast.FunctionDef, word: str) -> list[ast.arg]:
        """The parameters of a definition, which must be plain.

        Args:
            node: The definition.
            word: What it is, ``function``.

        Raises:
            UnityError: One has a default, a star, or can't be given by position and by keyword.
        """
        given = node.args
        rest = [*given.posonlyargs, *given.kwonlyargs, *given.defaults]
        rest += [a for a in (given.vararg, given.kwarg) if a is not None]
        if rest:
            raise self.error(
                rest[0],
                f"a {word}'s parameters are plain: no *, no defaults",
                "callers give each; what is the same in all calls may be a name outside",
            )
        return given.args

    def _column(self, line: int, offset: int) -> int:
        """Python counts UTF-8 bytes; people count characters."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def items_of(node: ast.expr, count: int) -> Sequence[ast.expr]:
    """Where the items of a sequence are written; the whole of it for each, if they are not."""
    written = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return written if len(written) == count else [node] * count


def of_text(text: str, file: str = "") -> tuple[Source, ast.Module]:
    """The source of a text given as a string; errors show its lines.

    Args:
        text: The text.
        file: Where it is from, which errors name; empty for a text that is in no file.

    Raises:
        UnityError: The text is not Python.
    """
    name = file or f"<script {hash(text) & 0xFFFFFFFF:08x}>"
    lines = text.splitlines(keepends=True)
    remember(name, text)
    return Source(name, tuple(lines)), _tree(name, text)


def of_function(function: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The source of a function and its definition, in a file, a notebook cell or a doctest.

    Raises:
        UnityError: Python does not know the text (it came from a bare ``exec`` or ``python -c``).
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise UnityError(
            f"the source text of {function.__name__!r} is not available ({code.co_filename})",
            hint="write it in a file or a notebook, or give the text to script.parse",
        )
    tree = _tree(code.co_filename, "".join(lines))
    for node in _functions(tree):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if first == code.co_firstlineno and node.name == code.co_name:
            if isinstance(node, ast.AsyncFunctionDef):
                source = Source(code.co_filename, tuple(lines))
                raise source.error(node, f"{node.name!r} is async", "use a plain def")
            return Source(code.co_filename, tuple(lines)), node
    raise UnityError(
        f"can't find {function.__name__!r} at {code.co_filename}:{code.co_firstlineno}",
        hint="if the file changed since it was imported, start Python anew",
    )


def of_class(definition: type, function: FunctionType) -> tuple[Source, ast.ClassDef]:
    """The source of a class and its definition, known by one of its functions.

    Raises:
        UnityError: Python does not know the text.
    """
    source, inner = of_function(function)
    tree = _tree(source.file, "".join(source.lines))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and inner in node.body:
            return source, node
    raise source.error(inner, f"{definition.__name__!r} does not hold {function.__name__!r}")


def defined_later(source: Source, function: ast.FunctionDef, name: str) -> ast.FunctionDef | None:
    """The graph function of a name that is defined below another one, in the same suite."""
    own = source.copies[0].behind if source.copies else None
    tree = _tree(source.file, "".join(source.lines[:own]))
    suites = (getattr(node, "body", None) for node in ast.walk(tree))
    suite = next((s for s in suites if isinstance(s, list) and function in s), [])
    for node in suite:
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == name
            and node.lineno > function.lineno
        ):
            called = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            if [ast.unparse(d).rpartition(".")[2] for d in called] == ["function"]:
                return node
    return None


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@lru_cache(maxsize=32)
def _tree(file: str, text: str) -> ast.Module:
    try:
        tree = compile(text, file, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        line, column = error.lineno or 1, (error.offset or 1) - 1
        span = Span(file, line, column, error.end_lineno or line, error.end_offset or column + 1)
        raise UnityError(f"not Python: {error.msg}", span) from None
    assert isinstance(tree, ast.Module)
    return tree


def remember(name: str, text: str) -> None:
    """Let errors show the lines of a text that is no file; those of the latest few are kept.

    Args:
        name: What spans call it.
        text: All of it.
    """
    _remembered.pop(name, None)
    _remembered[name] = None
    while len(_remembered) > _TEXTS_KEPT:
        oldest = next(iter(_remembered))
        del _remembered[oldest]
        linecache.cache.pop(oldest, None)
    lines = io.StringIO(text, newline=None).readlines()
    linecache.cache[name] = (len(text), None, lines, name)
