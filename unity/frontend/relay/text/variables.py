"""Variables where they are bound: ``%x {virtual_device=...}: Tensor[(1), float32]``."""

from __future__ import annotations

from .. import syntax
from .cursor import Cursor
from .lexer import LOCAL, NAME
from .metadata import Metadata
from .names import Names, bound_name
from .types import listed, type_of
from .values import named_attribute


def variable(
    cursor: Cursor, names: Names, metadata: Metadata, ignored: list[syntax.Ignored], wanted: str
) -> syntax.Var:
    """A name, and the attributes and the type that may follow it.

    Args:
        cursor: Where it begins.
        names: What is known there.
        metadata: What ``meta`` stands for.
        ignored: Gets its attributes: a variable of ours has none.
        wanted: What messages say is expected.

    Raises:
        UnityError: No variable stands there.
    """
    first = cursor.at
    text = cursor.word(LOCAL, wanted)[1:]
    name = bound_name(text, cursor.text)
    span = cursor.span(first)
    if cursor.take("{"):
        given: dict[str, syntax.AttrValue] = {}
        listed(
            cursor,
            "}",
            lambda: named_attribute(cursor, metadata, given, {}),
            "after the attributes of a variable",
        )
        ignored += (syntax.Ignored("variables", key, value, span) for key, value in given.items())
    found: syntax.Type | None = None
    if len(name) < len(text):  # no blank before the type: its first word was taken for a name
        cursor.give_back(NAME, text[len(name) + 1 :])
        found = type_of(cursor, names.types)
    elif cursor.take(":"):
        found = type_of(cursor, names.types)
    return syntax.Var(name, found, span)
