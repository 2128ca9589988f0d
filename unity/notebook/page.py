"""HTML for ``_repr_html_``, in one look: the parts of a display, and the page that holds them.

Comes in: texts and numbers, which are escaped here. Goes out: HTML that brings its style along.
Colours are the page's own, mixed with transparent grey, so that a display fits light pages and dark
ones. Only the colours of programs differ: they are dark where the notebook (JupyterLab, VS Code)
says that it is, else where the browser prefers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TypeAlias

_LIGHT, _DARK = "friendly", "monokai"
_WHERE_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast")
_WHERE_TOLD = ":not([data-jp-theme-light]):not(.vscode-light)"
_STYLE = """
.unity-shown { overflow-x: auto; }
.unity-shown table { border-collapse: collapse; color: inherit; font-size: 0.9em; }
.unity-shown caption { caption-side: top; color: inherit; text-align: left; font-weight: 600; }
.unity-shown th, .unity-shown td { padding: 0.2em 0.7em; text-align: left; color: inherit;
  vertical-align: top; border-bottom: 1px solid rgba(128, 128, 128, 0.3); background: none; }
.unity-shown th { border-bottom: 2px solid rgba(128, 128, 128, 0.6); }
.unity-shown td.number { text-align: right; font-variant-numeric: tabular-nums; }
.unity-shown td.share { background: linear-gradient(90deg, rgba(80, 140, 230, 0.35) var(--part),
  transparent var(--part)); }
.unity-shown pre { color: inherit; background: none; line-height: 1.35; }
"""


@dataclass(frozen=True, slots=True)
class Share:
    """A number that is a part of something, with a bar behind it."""

    text: str
    part: float


Cell: TypeAlias = "str | int | float | Share"
"""What a table holds: text, a number (which stands at the right), or a share."""


def share(part: float) -> Share:
    """A part of a whole, from 0 to 1.

    >>> share(0.25).text
    '25.0%'
    """
    return Share(f"{part:.1%}", min(max(part, 0.0), 1.0))


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], title: str = "") -> str:
    """A table.

    >>> table(("kernel", "calls"), [("a < b", 3)])  # doctest: +ELLIPSIS
    '<table><thead>...<td>a &lt; b</td><td class="number">3</td></tr></tbody></table>'
    """
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def note(text: str) -> str:
    """A line of text."""
    return f"<p>{escape(text)}</p>"


def program(source: str) -> str:
    """A program in Python, with its words coloured."""
    from pygments import highlight  # only a notebook needs it
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    made = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<style>{_code_style()}</style><pre class="unity-code">{made}</pre>'


def page(*parts: str) -> str:
    """The display of some parts, with the style that they need."""
    return f'<style>{_STYLE}</style><div class="unity-shown">{"".join(parts)}</div>'


def _cell(value: Cell) -> str:
    match value:
        case Share(text, part):
            return f'<td class="number share" style="--part: {part:.1%}">{escape(text)}</td>'
        case str():
            return f"<td>{escape(value)}</td>"
        case _:
            return f'<td class="number">{escape(str(value))}</td>'


@cache
def _code_style() -> str:
    """Colours of the words of programs, by where they are shown."""
    light = _rules(_LIGHT, ".unity-code")
    dark = "\n".join(_rules(_DARK, f"{where} .unity-code") for where in _WHERE_DARK)
    asked = _rules(_DARK, f"body{_WHERE_TOLD} .unity-code")
    return f"{light}\n{dark}\n@media (prefers-color-scheme: dark) {{\n{asked}\n}}"


def _rules(style: str, where: str) -> str:
    """The rules of a style for words; not those for lines and backgrounds."""
    from pygments.formatters import HtmlFormatter

    made = HtmlFormatter(style=style).get_style_defs(where)
    wanted = f"{where} ."
    rules = [line for line in made.splitlines() if line.startswith(wanted)]
    return "\n".join(r for r in rules if not r.startswith(f"{where} .err"))
