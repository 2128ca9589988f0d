"""The tokens of Relay's text, 0.0.4 and 0.0.5, with where each stands.

Names are taken as printers write them, dots and colons included (``%features.0.weight``, ``%x:0``),
although TVM's own parser could not read such ones: whether ``%x.0`` is a name or a projection is
for the parser to say, who knows which names there are. Type and span annotations are comments.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from unity.errors import Span, UnityError

LOCAL, GLOBAL, NAME, NUMBER, STRING, PUNCTUATION, PROJECTION, HEADER, END = (
    "local",
    "global",
    "name",
    "number",
    "string",
    "punctuation",
    "projection",
    "header",
    "end",
)
# Atomic groups, as Python before 3.11.5 matches possessive ones wrongly (`(?:..)*+`, gh-106052).
_SKIP = r"(?>(?:[ \t\n\f]+ | //[^\n]* | /\*(?>(?:[^*/]+ | \*(?!/) | /(?!\*))*)\*/)*)"
_SKIPPED = re.compile(_SKIP, re.VERBOSE)
_TOKEN = re.compile(
    _SKIP
    + r"""
    (?:(?P<comment>/\*)
  | (?P<local>%\w+(?>(?:(?:[./:$-]|::)\w+)*))
  | (?P<global>@\w+(?>(?:(?:[./:$-]|::)\w+)*))
  | (?P<number>-?(?:(?:inf|nan)f(?:16|32|64)?\b
        | [0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?:[iuf][0-9]*)?(?!\w)))
  | (?P<projection>\.[0-9]+)
  | (?P<name>[^\W\d]\w*(?>(?:\.[^\W\d]\w*)*))
  | (?P<string>"[^"]*")
  | (?P<header>\#\[\s*version\s*=\s*"[^"\n]*"\s*\])
  | (?P<punctuation>-> | => | == | != | <= | >= | [-+*/<>=(){}\[\],;:.?&])
  | (?P<end>\Z))
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Text:
    """A text and its places.

    Attributes:
        file: What messages call it.
        text: All of it, lines ended by a line feed alone.
        lines: Where each line starts.
    """

    file: str
    text: str
    lines: list[int] = field(repr=False)

    @classmethod
    def of(cls, file: str, text: str) -> Text:
        """A text with its lines found."""
        return cls(file, text, [0, *(m.end() for m in re.finditer("\n", text))])

    def span(self, start: int, end: int) -> Span:
        """What stands between two places."""
        first = bisect_right(self.lines, start)
        last = bisect_right(self.lines, end)
        return Span(
            self.file, first, start - self.lines[first - 1], last, end - self.lines[last - 1]
        )

    def error(self, start: int, end: int, message: str, hint: str | None = None) -> UnityError:
        """An error at a place, to be raised."""
        return UnityError(message, self.span(start, end), hint)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, side by side; the last one is the end.

    Attributes:
        kinds: What each is.
        texts: What each says as it stands there, a string with its quotes; the end says nothing.
        starts: Where each begins.
    """

    kinds: list[str]
    texts: list[str]
    starts: list[int]

    def end(self, at: int) -> int:
        """Where one ends."""
        return self.starts[at] + len(self.texts[at])


def tokens(source: Text, start: int, end: int) -> Tokens:
    """The tokens of a stretch of text.

    Raises:
        UnityError: Something is none.
    """
    found = Tokens([], [], [])
    text, kinds, texts, starts = source.text, found.kinds, found.texts, found.starts
    while True:
        for token in _TOKEN.finditer(text, start, end):
            if token.start() != start:
                raise _unreadable(source, start, end)
            kind = token.lastgroup or END
            said = token[kind]
            start = token.end()
            if kind == "comment":
                start = _end_of_comment(source, start - 2, end)
                break
            kinds.append(kind)
            texts.append(said)
            starts.append(start - len(said))
            if kind == END:
                return found
        else:
            raise _unreadable(source, start, end)


def _unreadable(source: Text, start: int, end: int) -> UnityError:
    skipped = _SKIPPED.match(source.text, start, end)
    start = skipped.end() if skipped else start
    found = source.text[start]
    if found == '"':
        return source.error(start, start + 1, "a string that does not end")
    if found in "%@":
        return source.error(start, start + 1, f"{found!r} without a name behind it")
    return source.error(start, start + 1, f"{found!r} is no part of Relay's text")


def _end_of_comment(source: Text, start: int, end: int) -> int:
    """Where a comment ends that holds others, or none at all."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(source.text, start, end):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise source.error(start, start + 2, "a comment that does not end")
