"""A module in Relay's text: header, definitions, metadata; or an expression alone, its `main`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache

from unity.errors import UnityError
from unity.ir.dtype import Array

from .. import syntax
from ..saved.objects import Objects
from .cursor import Cursor
from .expressions import Expressions
from .lexer import END, GLOBAL, HEADER, LOCAL, NAME, NUMBER, Text, Tokens, tokens
from .metadata import Metadata
from .names import Names
from .prelude import PRELUDE, with_prelude
from .types import listed, type_of, type_params

_METADATA = re.compile(r"^(?:\#\[metadata\]|METADATA:)[ \t]*$", re.MULTILINE)
_OLD_HEADER = re.compile(r"\s*v([0-9]+\.[0-9]+\.[0-9]+)\b")
_VERSIONS = ("0.0.4", "0.0.5")
_DEFINITIONS = ("def", "type", "extern")


def parse_module(file: str, text: str, constants: Sequence[Array] = ()) -> syntax.Module:
    """Read a module.

    Args:
        file: What messages call the text; `linecache` must know its lines by this name.
        text: The text, lines ended by a line feed alone.
        constants: What stands for ``meta[relay.Constant][i]`` where the text has no metadata.

    Raises:
        UnityError: It is not Relay's text, or something in it is wrong; the place is told.
    """
    source = Text.of(file, text)
    code_end, objects = _metadata(source)
    start, version = _header(source, code_end)
    cursor = Cursor(source, tokens(source, start, code_end))
    if cursor.kind == HEADER:
        version = cursor.text.split('"')[1]
        cursor.at += 1
    if version not in _VERSIONS:
        raise UnityError(
            f"Relay's text of version {version}, expected {' or '.join(_VERSIONS)}",
            source.span(0, max(1, source.text.find("\n"))),
        )
    try:
        return _module(cursor, Metadata.of(objects, constants), version == "0.0.4", prelude())
    except RecursionError:
        raise cursor.error("blocks and calls are nested too deeply here") from None


@cache
def prelude() -> syntax.Module:
    """The prelude, read."""
    source = Text.of("<prelude>", PRELUDE)
    cursor = Cursor(source, tokens(source, 0, len(PRELUDE)))
    return _module(cursor, Metadata(), False, syntax.Module({}))


def _metadata(source: Text) -> tuple[int, Objects | None]:
    """Where the code ends, and the objects behind it."""
    found = _METADATA.search(source.text)
    if found is None:
        return len(source.text), None
    span = source.span(found.start(), found.end())
    try:
        graph = json.loads(source.text[found.end() :])
    except (ValueError, RecursionError) as error:
        reason = f": {error}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnityError(
            f"the metadata section is no JSON{reason}", span, "the file may be cut short"
        ) from None
    return found.start(), Objects.of(f"{source.file} (metadata)", graph)


def _header(source: Text, end: int) -> tuple[int, str]:
    """Where the code starts and its version, if ``v0.0.4`` says it; 0.0.5 has no need of one."""
    found = _OLD_HEADER.match(source.text, 0, end)
    return (found.end(), found[1]) if found else (0, "0.0.5")


def _module(cursor: Cursor, metadata: Metadata, old: bool, lender: syntax.Module) -> syntax.Module:
    if cursor.kind == END:
        raise cursor.error("the text holds no Relay program")
    functions, constructors = _declared(cursor.tokens)
    lent = {*lender.functions, *_constructors(lender)} - functions - constructors
    names = Names(functions, constructors, lent)
    reader = Expressions(cursor, names, metadata, old, [], [])
    found: dict[str, syntax.Function] = {}
    types: dict[str, syntax.TypeDeclaration] = {}
    if cursor.text not in _DEFINITIONS:
        found["main"] = _alone(reader)
    while cursor.kind != END:
        first = cursor.at
        if cursor.take("def"):
            name = cursor.word(GLOBAL, "the name of a function, as @main")[1:]
            if name in found:
                raise UnityError(f"@{name} is defined twice", cursor.span(first))
            found[name] = reader.function(first)
        elif cursor.text in _DEFINITIONS:
            declaration = _type(cursor)
            if declaration.name in types:
                raise UnityError(f"{declaration.name} is declared twice", declaration.span)
            types[declaration.name] = declaration
        else:
            raise cursor.unexpected("def or type")
    for name, span in cursor.types.items():
        if name in lender.types and name not in types:
            names.borrowed.add(name)
        elif name not in types:
            raise UnityError(f"the module has no type {name!r}", span)
    module = syntax.Module(
        found, types, ignored=(*reader.ignored, *metadata.ignored), file=cursor.source.file
    )
    return with_prelude(module, lender, frozenset(names.borrowed))


def _constructors(module: syntax.Module) -> set[str]:
    return {c.name for declared in module.types.values() for c in declared.constructors}


def _declared(found: Tokens) -> tuple[set[str], set[str]]:
    """The functions and the constructors of a module, which are used before they are defined."""
    functions: set[str] = set()
    constructors: set[str] = set()
    depth, in_type = 0, False
    kinds, texts = found.kinds, found.texts
    for at, text in enumerate(texts):
        if kinds[at] in (LOCAL, NUMBER):
            continue
        if text in ("{", "(", "["):
            depth += 1
        elif text in ("}", ")", "]"):
            depth -= 1
            in_type = in_type and (depth > 0 or text != "}")
        elif kinds[at] == GLOBAL and at and texts[at - 1] == "def":
            functions.add(text[1:])
        elif depth == 0 and kinds[at] == NAME:
            in_type = text == "type" or (in_type and text not in _DEFINITIONS)
        elif in_type and depth == 1 and kinds[at] == NAME and texts[at - 1] in ("{", ","):
            constructors.add(text)
    return functions, constructors


def _alone(reader: Expressions) -> syntax.Function:
    """An expression without a definition: `main` of its free variables."""
    body = reader.sequence()
    if reader.cursor.kind != END:
        raise reader.cursor.unexpected("def, or one expression alone")
    if isinstance(body, syntax.Function) and not reader.free:
        return body
    return syntax.Function(tuple(reader.free), body, span=body.span)


def _type(cursor: Cursor) -> syntax.TypeDeclaration:
    first = cursor.at
    extern = cursor.take("extern")
    cursor.expect("type", "here")
    name = cursor.word(NAME, "the name of a type")
    params = type_params(cursor)
    constructors: tuple[syntax.ConstructorDeclaration, ...] = ()
    if not extern or cursor.text == "{":
        cursor.expect("{", "before the constructors of a type")
        constructors = listed(
            cursor, "}", lambda: _constructor(cursor, params), "after a constructor"
        )
    return syntax.TypeDeclaration(name, params, constructors, cursor.span(first))


def _constructor(cursor: Cursor, params: tuple[str, ...]) -> syntax.ConstructorDeclaration:
    first = cursor.at
    name = cursor.word(NAME, "the name of a constructor")
    fields: tuple[syntax.Type, ...] = ()
    if cursor.take("("):
        fields = listed(cursor, ")", lambda: type_of(cursor, params), "after a constructor's types")
    return syntax.ConstructorDeclaration(name, fields, cursor.span(first))
