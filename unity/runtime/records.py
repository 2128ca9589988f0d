"""Frozen dataclasses as JSON values, of a closed set of classes: no other object comes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Classes: TypeAlias = Mapping[str, type]


def classes_of(classes: Iterable[type]) -> Classes:
    """The set of classes, by name."""
    return {cls.__name__: cls for cls in classes}


def encode(value: object, classes: Classes) -> Json:
    """A value as JSON: records become objects that name their class, tuples lists."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [encode(v, classes) for v in value]
        case _:
            name = type(value).__name__
            assert classes[name] is type(value)
            assert dataclasses.is_dataclass(value)
            fields = {
                f.name: encode(getattr(value, f.name), classes) for f in dataclasses.fields(value)
            }
            return {"is": name, **fields}


def decode(value: Json, classes: Classes) -> object:
    """What `encode` gave.

    Raises:
        KeyError: A class is unknown.
        TypeError: A record lacks a field or has one too many.
    """
    match value:
        case list():
            return tuple(decode(v, classes) for v in value)
        case dict():
            fields = {k: decode(v, classes) for k, v in value.items() if k != "is"}
            record: object = classes[str(value["is"])](**fields)
            return record
        case _:
            return value
