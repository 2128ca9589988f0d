"""A place among tokens: what stands there, what may follow, and errors that point at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from unity.errors import Span, UnityError

from .lexer import END, NUMBER, Text, Tokens


@dataclass(slots=True)
class Cursor:
    """Where a parser is.

    Attributes:
        source: The text.
        tokens: Its tokens.
        at: The token that is next.
        types: The declared types that were named so far, each with its first place.
    """

    source: Text
    tokens: Tokens
    at: int = 0
    types: dict[str, Span] = field(default_factory=dict[str, Span])

    @property
    def kind(self) -> str:
        """What kind of token is next."""
        return self.tokens.kinds[self.at]

    @property
    def text(self) -> str:
        """What the next token says."""
        return self.tokens.texts[self.at]

    def following(self) -> str:
        """What the token behind the next one says."""
        texts = self.tokens.texts
        return texts[min(self.at + 1, len(texts) - 1)]

    def take(self, text: str) -> bool:
        """Step over the next token if it says this."""
        if self.tokens.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, where: str) -> None:
        """Step over a token that must be there.

        Raises:
            UnityError: Another one is.
        """
        if not self.take(text):
            raise self.unexpected(f"{text!r} {where}")

    def word(self, kind: str, wanted: str) -> str:
        """Step over a token of a kind, and give what it says.

        Raises:
            UnityError: It is of another kind.
        """
        if self.tokens.kinds[self.at] != kind:
            raise self.unexpected(wanted)
        self.at += 1
        return self.tokens.texts[self.at - 1]

    def cast_number(self) -> str:
        """Step over ``(1)`` behind a dtype, as in ``int64(1)``; what the number says.

        Raises:
            UnityError: It is not written so.
        """
        self.expect("(", "behind a dtype")
        said = self.word(NUMBER, "a number")
        self.expect(")", "behind a number")
        return said

    def give_back(self, kind: str, text: str) -> None:
        """Go back to the last token, of which only its end is left to read."""
        self.at -= 1
        self.tokens.starts[self.at] = self.tokens.end(self.at) - len(text)
        self.tokens.kinds[self.at], self.tokens.texts[self.at] = kind, text

    def unexpected(self, wanted: str) -> UnityError:
        """The error that the next token is not what must stand here."""
        found = "the end" if self.kind == END else repr(self.text[:60])
        hint = "the file may be cut short" if self.kind == END else None
        return self.error(f"expected {wanted}, found {found}", hint)

    def error(self, message: str, hint: str | None = None) -> UnityError:
        """An error at the next token, to be raised."""
        tokens = self.tokens
        return self.source.error(tokens.starts[self.at], tokens.end(self.at), message, hint)

    def span(self, first: int) -> Span:
        """From a token to the last one that was stepped over."""
        last = max(first, self.at - 1)
        return self.source.span(self.tokens.starts[first], self.tokens.end(last))
