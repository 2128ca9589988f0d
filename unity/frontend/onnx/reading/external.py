"""The files that a model names: where the data of its tensors lies, beside its own file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import onnx

from unity.errors import UnityError

from .outline import OWN, outlined
from .storage import contents

_KEY = b"location"
"""What the entry is called that names a file (`onnx.proto`: ``external_data``)."""


def external_files(path: Path) -> tuple[str, ...] | None:
    """The names of files that a model gives, sorted; None if the file is no model.

    Args:
        path: The model's file.
    """
    try:
        data = contents(path)
    except UnityError:
        return None
    if data.find(_KEY) < 0:
        return ()
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(outlined(data))
    except Exception:  # protobuf's DecodeError, which has no types to name it by
        return None
    return tuple(sorted(set(_locations(proto)) - {OWN}))


@runtime_checkable
class _Message(Protocol):
    """A message of protobuf, whose own stubs are a package of their own."""

    def ListFields(self) -> Iterable[tuple[object, object]]:  # noqa: N802
        """Its fields that are set, each with its description."""
        ...


def _locations(message: _Message) -> Iterator[str]:
    """The locations of all tensors in a message, wherever they stand in it."""
    if isinstance(message, onnx.TensorProto):
        yield from (e.value for e in message.external_data if e.key == _KEY.decode())
        return
    for _, value in message.ListFields():
        inside: Iterable[object] = value if isinstance(value, Iterable) else (value,)
        for inner in inside:
            if isinstance(inner, _Message):
                yield from _locations(inner)
