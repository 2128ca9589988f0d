"""A model's bytes without its weights: each large tensor says where in the file its data lies.

An ONNX file is a protobuf message, and parsing it copies all that is in it. What comes out here is
a message that tells the same, but for tensors' ``raw_data``: in its place stands that the data is
external (`onnx.proto`: ``external_data``), in the file that is being read. Only what holds a large
tensor is looked into; all else is copied as it is, whatever it may be.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from secrets import token_hex
from typing import Literal, TypeAlias

import onnx

OWN = f"./{token_hex(16)}"
"""The location that means the model's file itself: of this process, so that no file can say it."""

LEAST = 4096
"""Bytes from which on the data of a tensor is left in the file."""

_DEPTH = 100
"""Messages within messages, at most: as many as protobuf allows."""

_Data: TypeAlias = bytes | mmap.mmap
_Kind: TypeAlias = Literal["model", "graph", "node", "attribute", "function", "tensor"]

_PARTS: Mapping[_Kind, Mapping[int, _Kind]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "function": {7: "node"},
}
"""The fields of a message in which tensors may lie, by number (onnx.proto)."""

_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14


def outlined(data: _Data) -> bytes:
    """The message of a model, large tensors' data left out.

    Bytes that are no message come out as they are; who parses them will say so.
    """
    try:
        found = _message(data, 0, len(data), "model", _DEPTH)
    except _MalformedError:
        found = None
    return data[:] if found is None else found


class _MalformedError(Exception):
    """The bytes are no message."""


def _message(data: _Data, begin: int, end: int, kind: _Kind, depth: int) -> bytes | None:
    """A message with the data of its tensors left out; None if there is none to be."""
    if depth == 0:
        raise _MalformedError
    if kind == "tensor":
        return _tensor(data, begin, end)
    parts: list[bytes] = []
    at = copied = begin
    while at < end:
        start = at
        field, first, at = _field(data, at, end)
        inner = _PARTS[kind].get(field)
        if inner is None or at - first < LEAST:
            continue
        short = _message(data, first, at, inner, depth - 1)
        if short is not None:
            parts += data[copied:start], _bytes_field(field, short)
            copied = at
    if not parts:
        return None
    parts.append(data[copied:end])
    return b"".join(parts)


def _tensor(data: _Data, begin: int, end: int) -> bytes | None:
    raw: list[tuple[int, int, int]] = []
    at = begin
    while at < end:
        start = at
        field, first, at = _field(data, at, end)
        if field == _RAW_DATA:
            raw.append((start, first, at))
        elif field in (_EXTERNAL_DATA, _DATA_LOCATION):
            return None
    if len(raw) != 1:
        return None
    start, first, last = raw[0]
    if last - first < LEAST:
        return None
    entries = {"location": OWN, "offset": str(first), "length": str(last - first)}
    place = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in entries.items():
        place.external_data.add(key=key, value=value)
    parts: list[bytes] = [data[begin:start], place.SerializeToString(), data[last:end]]
    return b"".join(parts)


def _field(data: _Data, at: int, end: int) -> tuple[int, int, int]:
    """The number of the field at a place, where its value begins, and where it ends."""
    key, at = _varint(data, at, end)
    first = at
    match key & 7:
        case 0:
            _, last = _varint(data, at, end)
        case 1:
            last = at + 8
        case 2:
            length, first = _varint(data, at, end)
            last = first + length
        case 5:
            last = at + 4
        case _:
            raise _MalformedError
    if last > end:
        raise _MalformedError
    return key >> 3, first, last


def _varint(data: _Data, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise _MalformedError


def _bytes_field(field: int, value: bytes) -> bytes:
    return _as_varint(field << 3 | 2) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
