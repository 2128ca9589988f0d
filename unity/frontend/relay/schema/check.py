"""Calls of operators made complete: attributes checked against the tables, defaults filled in.

The kinds of attributes are int, float, bool, str and dtype; ints and floats, which are tuples (one
number alone is a tuple of it); pairs, a tuple of ints for each dim; sections, an int or ints; any.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from unity.errors import Span, UnityError

from ..syntax import Attributes, AttrValue
from .attributes import ATTRIBUTES
from .dtypes import ABSENT, named
from .operators import OPERATORS


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute.

    Attributes:
        name: What it is called.
        kind: What values it takes.
        required: Whether it must be given.
        default: What it is where it is not.
    """

    name: str
    kind: str
    required: bool
    default: AttrValue


@dataclass(frozen=True, slots=True)
class Signature:
    """What an operator takes.

    Attributes:
        arguments: Their names; None stands for any.
        optional: How many of the last may be left out.
        fields: Its attributes by name; None stands for any.
    """

    arguments: tuple[str, ...] | None
    optional: int
    fields: Mapping[str, Field] | None


class _UnfitError(Exception):
    """A value is not of the kind that an attribute takes."""


def names() -> tuple[str, ...]:
    """All operators that are known, in order."""
    return tuple(_signatures())


def signature(operator: str) -> Signature | None:
    """What an operator takes, or None where it is not known.

    >>> signature("nn.dense").arguments
    ('data', 'weight')
    """
    return _signatures().get(operator)


def complete(
    operator: str,
    given: Attributes,
    arguments: int,
    span: Span | None = None,
    places: Mapping[str, Span] | None = None,
) -> Attributes:
    """The attributes of a call, checked and with defaults.

    Args:
        operator: What is called.
        given: What the source says.
        arguments: How many arguments it is called with.
        span: The call.
        places: Where the source gives each attribute.

    >>> dict(complete("nn.softmax", {}, 1))
    {'axis': -1}

    Raises:
        UnityError: There is no such operator, it takes another number of arguments, or an attribute
            is unknown, missing or of the wrong kind.
    """
    found = signature(operator)
    if found is None:
        raise UnityError(
            f"Relay has no operator {operator!r}", span, _close(operator, names(), "it has ")
        )
    if found.arguments is not None:
        _check_count(operator, found, arguments, span)
    if found.fields is None:
        return given
    for name in given:
        if name not in found.fields:
            raise UnityError(
                f"{operator} has no attribute {name!r}",
                (places or {}).get(name, span),
                _listed(operator, found.fields),
            )
    values: dict[str, AttrValue] = {}
    dynamic = operator.startswith("dyn.") or (operator == "strided_slice" and arguments > 1)
    for name, field in found.fields.items():
        if name not in given:
            if field.required and not dynamic:
                raise UnityError(f"{operator} needs the attribute {name!r} ({field.kind})", span)
            values[name] = field.default
            continue
        try:
            values[name] = _converted(field, given[name])
        except _UnfitError:
            raise UnityError(
                f"the attribute {name!r} of {operator} is {_shown(given[name])}, "
                f"expected {_EXPECTED[field.kind]}",
                (places or {}).get(name, span),
            ) from None
    return values


def _check_count(operator: str, found: Signature, count: int, span: Span | None) -> None:
    wanted = found.arguments or ()
    least = len(wanted) - found.optional
    if not least <= count <= len(wanted):
        numbers = str(least) if least == len(wanted) else f"{least} to {len(wanted)}"
        listed = f" ({', '.join(wanted)})" if wanted else ""
        raise UnityError(
            f"{operator} is called with {count} argument{'s' * (count != 1)}, "
            f"it takes {numbers}{listed}",
            span,
        )


def _listed(operator: str, fields: Mapping[str, Field]) -> str:
    return f"it has {', '.join(fields)}" if fields else f"{operator} has none"


def _close(name: str, known: tuple[str, ...], lead: str) -> str | None:
    found = difflib.get_close_matches(name[:100], known, 3)
    return lead + ", ".join(found) if found else None


def _shown(value: AttrValue) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_EXPECTED = {
    "int": "an int",
    "float": "a number",
    "bool": "True or False",
    "str": "a string",
    "dtype": "a dtype in quotes",
    "ints": "ints, [1, 2]",
    "floats": "numbers, [1f, 2f]",
    "pairs": "a list of ints for each dim, [[0, 0], [1, 1]]",
    "sections": "an int or ints, [1, 2]",
    "any": "any",
}


def _converted(field: Field, value: AttrValue) -> AttrValue:
    if value is None and not field.required and field.default is None:
        return None
    return _of_kind(field.kind, value)


_EXACT = {"int": int, "float": float, "bool": bool, "str": str}


def _of_kind(kind: str, value: AttrValue) -> AttrValue:
    if type(value) is _EXACT.get(kind):  # most are, and a large text has many
        return value
    match kind, value:
        case "ints", tuple() if all(type(v) is int for v in value):
            return value
        case "any", _:
            return value
        case "bool", 0 | 1:
            return bool(value)
        case "int", int():
            return int(value)
        case "float", int() | float():
            try:
                return float(value)
            except OverflowError:
                raise _UnfitError from None
        case "dtype", str():
            if value in ABSENT:
                return None
            found = named(value)
            if found is not None:
                return found
        case "ints", tuple():
            return tuple(_of_kind("int", v) for v in value)
        case "floats", tuple():
            return tuple(_of_kind("float", v) for v in value)
        case "pairs", tuple():
            return tuple(_of_kind("ints", v) for v in value if isinstance(v, tuple) or _fail())
        case "ints" | "floats", int() | float():
            return (_of_kind(kind[:-1], value),)
        case "sections", int():
            return int(value)
        case "sections", tuple():
            return _of_kind("ints", value)
        case _:
            pass
    raise _UnfitError


def _fail() -> bool:
    raise _UnfitError


# ---- the tables


@cache
def _signatures() -> dict[str, Signature]:
    structs = {name: _fields(text) for name, text in _rows(ATTRIBUTES)}
    found: dict[str, Signature] = {}
    for head, operators in _rows(OPERATORS):
        struct, _, listed = head.partition("(")
        arguments = [a.strip() for a in listed.rstrip(")").split(",") if a.strip()]
        every = arguments == ["..."]
        row = Signature(
            None if every else tuple(a.strip("[]") for a in arguments),
            sum(a.startswith("[") for a in arguments),
            None if struct == "*" else structs[struct] if struct != "-" else {},
        )
        found |= dict.fromkeys(operators.split(), row)
    return dict(sorted(found.items()))


def _rows(table: str) -> list[tuple[str, str]]:
    """The rows of a table: what stands before the colon that ends a head, and behind it."""
    lines = table.strip().replace("\n    ", " ").splitlines()
    pairs = [line.partition(": ") for line in lines]
    return [(head, rest) for head, _, rest in pairs]


def _fields(text: str) -> dict[str, Field]:
    found = {}
    for item in text.split():
        name, _, rest = item.partition(":")
        kind, given, default = rest.partition("=")
        optional = kind.endswith("?")
        kind = kind.removesuffix("?")
        value = _of_kind(kind, _literal(kind, default)) if given else None
        found[name] = Field(name, kind, not given and not optional, value)
    return found


def _literal(kind: str, text: str) -> AttrValue:
    if kind in ("ints", "floats"):
        return tuple(_literal(kind[:-1], t) for t in text.split(",") if t)
    if kind in ("int", "bool"):
        return int(text)
    return float(text) if kind == "float" else text
