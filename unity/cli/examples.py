"""The file of ``--examples``: how far the lists and trees go that a Relay model takes.

It is JSON: ``{"xs": [null, null], "tree": ["Add", ["Leaf", null], ["Zero"]]}``. An array that
starts with a text is what a constructor makes, another one a list; null is a tensor of its declared
type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unity.errors import UnityError


def read_examples(path: Path | None) -> dict[str, object] | None:
    """The examples by the names of inputs; None without a file.

    Raises:
        UnityError: It can't be read, or is no JSON object.
    """
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UnityError(f"can't read the examples {path}: {error}") from None
    if not isinstance(found, dict):
        raise UnityError(
            f"{path} holds no examples by name", hint='{"xs": [null, null], "t": ["Leaf", null]}'
        )
    return {str(name): _value(value) for name, value in found.items()}


def _value(value: Any) -> object:
    if not isinstance(value, list):
        return value
    inner = [_value(v) for v in value]
    return tuple(inner) if inner and isinstance(inner[0], str) else inner
