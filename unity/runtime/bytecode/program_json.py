"""Programs as JSON, as an artifact stores them. Reading refuses unknown versions and records."""

from __future__ import annotations

import json

from unity.errors import UnityError
from unity.runtime.bytecode import Program
from unity.runtime.records import RecordError, decode, encode


def to_json(program: Program) -> str:
    """The program as JSON text."""
    return json.dumps(encode(program))


def from_json(text: str | bytes) -> Program:
    """The program that `to_json` wrote: its types are right, but not yet what it refers to.

    Raises:
        UnityError: The text is no program, or of another version.
    """
    try:
        result = decode(Program, text)
    except RecordError as error:
        raise UnityError(f"not a Unity program: {error}") from error
    if result.version != Program(()).version:
        raise UnityError(f"a program of version {result.version}; this Unity reads version 1")
    return result
