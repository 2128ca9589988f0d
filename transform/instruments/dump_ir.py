"""The module after each pass, as files: texts to compare, and pages that show the differences."""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.script import print_module

from ..passes import Context, Pass
from ..source import Source

_CONTEXT = 3
_MOST_LINES = 4000
"""Of differences shown on a page; the files hold all."""
Parts = Mapping[str, tuple[str, ...]]
"""The lines of each function of a module's text; those of no function under ``""``."""


@public_class
@dataclass(slots=True)
class DumpIR:
    """Writes ``000_input.py``, ``001_Normalize.py`` ... and ``index.html`` into a folder.

    A pass that changed nothing gets no file. The index lists the passes in order, each with how
    much it changed and a page of the differences, function by function.

    Attributes:
        folder: Made if it is not there.
    """

    folder: Path
    _last: str = field(default="", init=False)
    _file: str = field(default="", init=False)
    _parts: Parts = field(default_factory=dict[str, "tuple[str, ...]"], init=False)
    _rows: list[str] = field(default_factory=list[str], init=False)
    _count: int = field(default=0, init=False)

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Write the input, once."""
        if not self._file:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unwritable(self.folder, error) from error
            self._last = print_module(module)
            self._parts = _functions(self._last)
            self._write("input", self._last)
            self._rows.append(_row("0", "input", f"<a href='{self._file}'>text</a>"))

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Write the result, and the index as it is so far: a later pass may fail."""
        self._count += 1
        text = print_module(module)
        title = html.escape(Source().text(step))
        if text == self._last:
            self._rows.append(_row(str(self._count), title, "<i>no change</i>"))
        else:
            earlier = self._file
            self._write(step.name, text)
            parts = _functions(text)
            self._rows.append(_row(str(self._count), title, self._page(title, parts, earlier)))
            self._last, self._parts = text, parts
        index = f"<h1>Passes</h1><table>{''.join(self._rows)}</table>"
        self._put("index.html", _PAGE + index)

    def _write(self, name: str, text: str) -> None:
        self._file = f"{self._count:03}_{name}.py"
        self._put(self._file, text)

    def _put(self, name: str, text: str) -> None:
        """A file of the folder.

        Raises:
            UnityError: It can't be written.
        """
        try:
            (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self.folder / name, error) from error

    def _page(self, title: str, parts: Parts, earlier: str) -> str:
        """Write the page of a pass; what the index says of it."""
        came, went, shown = 0, 0, list[str]()
        room = _MOST_LINES
        changed = [n for n in {**self._parts, **parts} if self._parts.get(n) != parts.get(n)]
        for name in changed:
            lines = list(_difference(self._parts.get(name, ()), parts.get(name, ())))
            new = sum(line.startswith("+") for line in lines)
            old = sum(line.startswith("-") for line in lines)
            came, went = came + new, went + old
            body = "\n".join(map(_marked, lines[: max(0, room)]))
            rest = "" if len(lines) <= room else "\n... (the files hold the rest)"
            room -= len(lines)
            opened = " open" if len(changed) == 1 else ""
            shown.append(
                f"<details{opened}><summary>{html.escape(name) or '(the module)'} "
                f"{_counts(new, old)}</summary><pre>{body}{rest}</pre></details>"
            )
        page = self._file.removesuffix(".py") + ".html"
        links = [("all passes", "index.html"), ("before", earlier), ("after", self._file)]
        head = " ".join(f"<a href='{file}'>{text}</a>" for text, file in links)
        content = f"{_PAGE}<p>{head}</p><h1>{title}</h1>{''.join(shown)}"
        self._put(page, content)
        functions = "1 function" if len(changed) == 1 else f"{len(changed)} functions"
        texts = f"<a href='{page}'>differences</a> <a href='{self._file}'>text</a>"
        return f"{texts} in {functions} {_counts(came, went)}"


def _functions(text: str) -> Parts:
    """A module's text by function: decorators and all."""
    parts: dict[str, tuple[str, ...]] = {}
    for block in re.split(r"\n\n\n", text):
        name = re.search(r"^def (\w+)\(", block, re.MULTILINE)
        parts["" if name is None else name[1]] = tuple(block.splitlines())
    return parts


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """The lines of a unified difference, without its head."""
    for i, line in enumerate(difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")):
        if i > 1:
            yield line


def _marked(line: str) -> str:
    kind = {"+": "new", "-": "old", "@": "at"}.get(line[:1])
    text = html.escape(line)
    return f"<span class={kind}>{text}</span>" if kind else text


def _counts(new: int, old: int) -> str:
    return f"<span class=new>+{new}</span> <span class=old>-{old}</span>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


_PAGE = """<!doctype html>
<meta charset=utf-8><title>passes</title>
<style>
body { font: 14px sans-serif; margin: 2em } pre { font-size: 12px; overflow-x: auto }
h1 { font-size: 16px } td { padding: 2px 1em 2px 0; vertical-align: top }
td:nth-child(2) { font-family: monospace; max-width: 50em; overflow-wrap: anywhere }
.new { background: #dfd } .old { background: #fdd } .at, i { color: #888 }
</style>
"""


def _unwritable(path: Path, error: OSError) -> UnityError:
    return UnityError(f"the trace can't be written: {path}: {error.strerror or error}")
