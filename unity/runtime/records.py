"""Frozen dataclasses as JSON values, read back by the types that their fields declare.

A record is an object of its fields; where a field may hold records of several classes, ``is`` names
the one. What is read is checked value by value, so whoever has a record can rely on its types: on
ints that are none, on ranges (`Range`, in an ``Annotated``), on tuples of the right length. Nothing
but records, tuples and plain values comes out, whatever the text says.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    ForwardRef,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
_Reader: TypeAlias = Callable[[Json], object]
_T = TypeVar("_T")
_CLASS = "is"
_WORDS: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    list: "a list", dict: "a record", NoneType: "null",
}  # fmt: skip
_SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Range:
    """What a whole number may be, both ends included; other fields take any of 64 bits."""

    min: int
    max: int = 2**63 - 1


_WORD = Range(-(2**63), 2**64 - 1)
Index: TypeAlias = Annotated[int, Range(0)]
"""A place or a number of things."""


class RecordError(ValueError):
    """A value that its type does not allow.

    Attributes:
        what: What was expected, and what there is.
        path: The fields and indices that lead to it, innermost first.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []

    def __str__(self) -> str:
        """The place, as it would be written in Python, and what is wrong there."""
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self.what}" if place else self.what


def encode(value: object) -> Json:
    """A record as JSON values: objects that name their class, tuples as lists."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [encode(v) for v in value]
        case _:
            assert dataclasses.is_dataclass(value)
            fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
            return {_CLASS: type(value).__name__, **fields}


def decode(kind: type[_T], text: str | bytes) -> _T:
    """The record that a JSON text holds.

    Args:
        kind: Its class.
        text: UTF-8 if it is bytes.

    Raises:
        RecordError: It holds something else; says where.
    """
    try:
        plain: Json = json.loads(text)
    except RecursionError:
        raise RecordError("it is nested too deeply") from None
    except ValueError as error:  # a UnicodeDecodeError, too
        raise RecordError(f"it is no JSON: {error}") from error
    try:
        return cast("_T", _record(cast("type", kind))(plain))
    except RecursionError:
        raise RecordError("it is nested too deeply") from None


@cache
def _record(kind: type) -> _Reader:
    """What reads a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    readers = [(f.name, _reader(hints[f.name], kind.__module__)) for f in fields]
    needed = [
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    known = {f.name for f in fields} | {_CLASS}
    name_of_class = kind.__name__

    def read(data: Json) -> object:
        if type(data) is not dict or data.get(_CLASS, name_of_class) != name_of_class:
            raise RecordError(f"expected a record {name_of_class}, got {_shown(data)}")
        values: dict[str, object] = {}
        name = ""
        try:
            for name, reader in readers:
                if name in data:
                    values[name] = reader(data[name])
        except RecordError as error:
            error.path.append(f".{name}")
            raise
        if len(values) < len(readers) or len(data) > len(readers) + (_CLASS in data):
            _check_fields(data, known, needed, name_of_class)
        made: object = kind(**values)
        return made

    return read


def _check_fields(
    data: Collection[str], known: Collection[str], needed: list[str], of: str
) -> None:
    """See that a record has the fields it must have, and no others."""
    for name in data:
        if name not in known:
            raise RecordError(f"{of} has no field {_shown(name)}")
    for name in needed:
        if name not in data:
            raise RecordError(f"{of} lacks the field {name!r}")


def _reader(annotation: object, module: str) -> _Reader:
    """What reads values of a type.

    Args:
        annotation: The type, as a dataclass of the module declares it.
        module: Where names of recursive types are looked up.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (limits,) = (a for a in args[1:] if isinstance(a, Range))
        return _number(limits)
    if origin is Literal:
        return _one_of(args)
    if origin is tuple and args[-1] is Ellipsis:
        return _items(_reader(args[0], module))
    if origin is tuple:
        return _fields([_reader(a, module) for a in args])
    if origin in (Union, UnionType):
        return _any_of(args, module)
    if origin is not None and issubclass(cast("type", origin), Mapping):
        return _mapping(_reader(args[1], module))
    if isinstance(annotation, str | ForwardRef):
        name = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        return _named(module, name)
    if annotation is int:
        return _number(_WORD)
    if annotation is float:
        return _float
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        kind = annotation
        return lambda data: _record(kind)(data)  # not now: it may contain itself
    assert annotation in (bool, str, NoneType), annotation
    return _plain(cast("type", annotation))


def _named(module: str, name: str) -> _Reader:
    """What reads a type that contains itself; made when there is one to read."""

    @cache
    def made() -> _Reader:
        return _reader(vars(sys.modules[module])[name], module)

    return lambda data: made()(data)


def _plain(kind: type) -> _Reader:
    def read(data: Json) -> object:
        if type(data) is not kind:
            raise RecordError(f"expected {_WORDS[kind]}, got {_shown(data)}")
        return data

    return read


def _float(data: Json) -> float:
    if type(data) is not float and type(data) is not int:
        raise RecordError(f"expected a number, got {_shown(data)}")
    try:
        return float(data)
    except OverflowError:
        raise RecordError("expected a number that a float can hold") from None


def _number(limits: Range) -> _Reader:
    low, high = limits.min, limits.max

    def read(data: Json) -> object:
        if type(data) is not int:
            raise RecordError(f"expected a whole number, got {_shown(data)}")
        if not low <= data <= high:
            raise RecordError(f"expected a number from {low} to {high}, got {_shown(data)}")
        return data

    return read


def _one_of(values: tuple[object, ...]) -> _Reader:
    def read(data: Json) -> object:
        if type(data) is not str or data not in values:
            raise RecordError(f"expected one of {', '.join(map(str, values))}, got {_shown(data)}")
        return data

    return read


def _items(item: _Reader) -> _Reader:
    def read(data: Json) -> object:
        if type(data) is not list:
            raise RecordError(f"expected a list, got {_shown(data)}")
        values: list[object] = []
        for value in data:
            try:
                values.append(item(value))
            except RecordError as error:
                error.path.append(f"[{len(values)}]")
                raise
        return tuple(values)

    return read


def _fields(readers: list[_Reader]) -> _Reader:
    def read(data: Json) -> object:
        if type(data) is not list or len(data) != len(readers):
            raise RecordError(f"expected a list of {len(readers)}, got {_shown(data)}")
        values: list[object] = []
        for value, reader in zip(data, readers, strict=True):
            try:
                values.append(reader(value))
            except RecordError as error:
                error.path.append(f"[{len(values)}]")
                raise
        return tuple(values)

    return read


def _mapping(item: _Reader) -> _Reader:
    def read(data: Json) -> object:
        if type(data) is not dict:
            raise RecordError(f"expected a record, got {_shown(data)}")
        values: dict[str, object] = {}
        for key, value in data.items():
            try:
                values[key] = item(value)
            except RecordError as error:
                error.path.append(f"[{_shown(key)}]")
                raise
        return values

    return read


def _any_of(options: tuple[object, ...], module: str) -> _Reader:
    """The reader of a union, by what a value is in JSON, and of records by their class."""
    plain: dict[type, _Reader] = {}
    records: dict[str, _Reader] = {}
    for option in options:
        reader = _reader(option, module)
        kind = get_origin(option) or option
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            records[kind.__name__] = reader
        elif kind is Annotated:
            plain[int] = reader
        else:
            assert isinstance(kind, type), option
            plain[list if kind is tuple else kind] = reader
    if float in plain:
        plain.setdefault(int, plain[float])
    words = [_WORDS[kind] for kind in plain] + [f"a record {name}" for name in records]
    expected = " or ".join(words)

    def read(data: Json) -> object:
        if type(data) is dict and records:
            name = data.get(_CLASS)
            found = records.get(name) if type(name) is str else None
        else:
            found = plain.get(type(data))
        if found is None:
            raise RecordError(f"expected {expected}, got {_shown(data)}")
        return found(data)

    return read


def _shown(data: Json) -> str:
    """A value in a message: short, and without what a terminal would obey."""
    if type(data) is dict:
        name = data.get(_CLASS)
        return "a record" + (f" {_shown(name)}" if type(name) is str else "")
    if type(data) is list:
        return f"a list of {len(data)}"
    if type(data) is int and abs(data) >= 2**64:
        return "a larger one"
    text = json.dumps(data)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
