"""The module after each pass, as files: texts to compare, and a page that shows the differences."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from unity.ir.module import IRModule
from unity.script import print_module

from ..passes import Context, Pass

_CONTEXT = 3
_MOST_LINES = 4000
"""Of a difference shown on the page; the files hold all."""


@dataclass(slots=True)
class Trace:
    """Writes ``000_input.py``, ``001_Normalize.py`` ... and ``index.html`` into a folder.

    A pass that changed nothing gets no file. The page lists the passes in order, each with what it
    changed, folded.

    Attributes:
        folder: Made if it is not there.
    """

    folder: Path
    _last: list[str] = field(default_factory=list[str])
    _parts: list[str] = field(default_factory=list[str])
    _count: int = 0

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Write the input, once."""
        if not self._count and not self._last:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._last = print_module(module).splitlines()
            self._write("input", self._last)

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Write the result, and the page as it is so far: a later pass may fail."""
        self._count += 1
        lines = print_module(module).splitlines()
        title = f"{self._count:03} {html.escape(repr(step))}"
        if lines == self._last:
            self._parts.append(f"<p class=same>{title}: no change</p>")
        else:
            name = self._write(step.name, lines)
            changed = "\n".join(_marked(self._last, lines))
            self._parts.append(
                f"<details><summary>{title} <a href={name}>{name}</a></summary>"
                f"<pre>{changed}</pre></details>"
            )
        self._last = lines
        page = _PAGE.format(body="\n".join(self._parts))
        (self.folder / "index.html").write_text(page, encoding="utf-8")

    def _write(self, name: str, lines: list[str]) -> str:
        file = f"{self._count:03}_{name}.py"
        (self.folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file


def _marked(old: list[str], new: list[str]) -> Iterator[str]:
    """A difference's lines, those that came and went in colours."""
    shown = 0
    for line in difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""):
        if line.startswith(("---", "+++")):
            continue
        shown += 1
        if shown > _MOST_LINES:
            yield "... (the files hold the rest)"
            return
        kind = {"+": "new", "-": "old", "@": "at"}.get(line[:1])
        text = html.escape(line)
        yield f"<span class={kind}>{text}</span>" if kind else text


_PAGE = """<!doctype html>
<meta charset=utf-8><title>passes</title>
<style>
body {{ font: 14px sans-serif; margin: 2em }} pre {{ font-size: 12px; overflow-x: auto }}
.new {{ background: #dfd }} .old {{ background: #fdd }} .at, .same {{ color: #888 }}
</style>
{body}
"""
