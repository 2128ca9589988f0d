"""Values of attributes in Relay's text."""

from __future__ import annotations

from collections.abc import Callable

from unity.errors import Span

from ..schema.dtypes import named
from ..syntax import AttrValue, Record
from .cursor import Cursor
from .lexer import END, NAME, STRING
from .literals import number
from .metadata import Metadata
from .types import listed, meta_reference

_WORDS: dict[str, AttrValue] = {"True": True, "False": False, "None": None, "nullptr": None}


def attribute(cursor: Cursor, metadata: Metadata) -> AttrValue:
    """The value of an attribute.

    Raises:
        UnityError: None stands there.
    """
    first = cursor.at
    text = cursor.text
    match cursor.kind:
        case "number":
            value = number(text)
            if value is None:
                raise cursor.error(f"{text[:40]} is no number")
            cursor.at += 1
            return value
        case "string":
            cursor.at += 1
            return text[1:-1]
        case "name" if text == "meta":
            key, index = meta_reference(cursor)
            return metadata.attribute(key, index, cursor.span(first))
        case "name" if cursor.following() == "(" and named(text) is not None:
            cursor.at += 1
            return number(cursor.cast_number())
        case "name":
            cursor.at += 1
            return _object(cursor, text) if cursor.text == "(" else _WORDS.get(text, text)
        case "local":  # an expression that is an argument, too
            cursor.at += 1
            return Record("relay.Expr", (("name", text),))
        case _:
            pass
    one: Callable[[], AttrValue] = lambda: attribute(cursor, metadata)  # noqa: E731
    if cursor.take("["):
        return listed(cursor, "]", one, "after a list")
    if cursor.take("("):
        found = listed(cursor, ")", one, "after a list")
        alone = len(found) == 1 and cursor.tokens.texts[cursor.at - 2] != ","
        return found[0] if alone else found
    if cursor.take("{"):
        return _mapping(cursor, metadata)
    if cursor.take("?"):
        return Record("tir.Any")
    raise cursor.unexpected("the value of an attribute")


def _object(cursor: Cursor, key: str) -> Record:
    """``VirtualDevice(device_type=1, ...)``: an object of TVM's, which is not looked into."""
    depth = 0
    while True:
        if cursor.kind == END:
            raise cursor.unexpected(f"')' after what {key} holds")
        depth += (cursor.text in ("(", "[", "{")) - (cursor.text in (")", "]", "}"))
        cursor.at += 1
        if depth == 0:
            return Record(key)


def _mapping(cursor: Cursor, metadata: Metadata) -> dict[str, AttrValue]:
    def item() -> tuple[str, AttrValue]:
        key = cursor.text
        if cursor.kind not in (NAME, STRING):
            raise cursor.unexpected("a key")
        cursor.at += 1
        if not cursor.take("="):
            cursor.expect(":", "after a key")
        return key.strip('"'), attribute(cursor, metadata)

    return dict(listed(cursor, "}", item, "after a map"))


def named_attribute(
    cursor: Cursor,
    metadata: Metadata,
    given: dict[str, AttrValue],
    places: dict[str, Span],
) -> None:
    """An attribute, ``name=value``, put where those before it are.

    Raises:
        UnityError: None stands there, or one of this name was given.
    """
    first = cursor.at
    name = cursor.text.strip('"')
    if not starts_attribute(cursor):
        raise cursor.unexpected("an attribute, as name=value")
    if name in given:
        raise cursor.error(f"the attribute {name!r} is given twice")
    cursor.at += 2
    given[name] = attribute(cursor, metadata)
    places[name] = cursor.span(first)


def starts_attribute(cursor: Cursor) -> bool:
    """Whether an attribute, ``name=value``, is next."""
    return cursor.kind in (NAME, STRING) and cursor.following() == "="
