"""The file: named pieces of data in the layout of safetensors, written at once, read by mapping.

A safetensors file is the length of a JSON header, the header, and the data of its tensors without
gaps. Here the header is filled up so that the data begins on a page, and each piece on a cache line
(the gaps are tensors, too: ``pad/...``). What Unity has to know stands in the header's
``__metadata__``; the rest of the header is for other tools.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unity.errors import UnityError
from unity.ir.aligned import places

from .replacing import replacing

PAGE = 4096
_LONGEST_HEADER = 100_000_000  # as safetensors has it


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of data.

    Attributes:
        name: What it is called.
        data: Its bytes.
        kind: The type of its elements, as safetensors names it.
        shape: Of the tensor that other tools see.
    """

    name: str
    data: memoryview
    kind: str
    shape: tuple[int, ...]


def offsets(pieces: Sequence[Piece]) -> list[int]:
    """Where each piece begins, counted from the first."""
    return places(piece.data.nbytes for piece in pieces)


def write(path: Path, metadata: Mapping[str, str], pieces: Sequence[Piece]) -> None:
    """Write a file, or leave what was there.

    Raises:
        UnityError: It can't be written.
    """
    header = _header(metadata, pieces)
    try:
        with replacing(path) as file:
            file.write(len(header).to_bytes(8, "little"))
            file.write(header)
            end = 0
            for piece, place in zip(pieces, offsets(pieces), strict=True):
                file.write(bytes(place - end))
                file.write(piece.data)
                end = place + piece.data.nbytes
    except OSError as error:
        raise UnityError(f"can't write {path}: {error.strerror or error}") from error


def _header(metadata: Mapping[str, str], pieces: Sequence[Piece]) -> bytes:
    entries: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for piece, place in zip(pieces, offsets(pieces), strict=True):
        if place > end:
            shape = [place - end]
            entries[f"pad/{end}"] = {"dtype": "U8", "shape": shape, "data_offsets": [end, place]}
        end = place + piece.data.nbytes
        entries[piece.name] = {
            "dtype": piece.kind,
            "shape": list(piece.shape),
            "data_offsets": [place, end],
        }
    text = json.dumps(entries).encode()
    return text.ljust(-(-(len(text) + 8) // PAGE) * PAGE - 8)


def is_container(path: Path) -> bool:
    """Whether a file begins as a safetensors file does (or as the rest of a damaged one)."""
    try:
        with open(path, "rb") as file:
            return len(start := file.read(9)) == 9 and _begins(start)
    except OSError:
        return False


def _begins(start: bytes) -> bool:
    return int.from_bytes(start[:8], "little") <= _LONGEST_HEADER and start[8:] == b"{"


def read(path: Path) -> tuple[dict[str, str], memoryview]:
    """The metadata of a file, and its data, mapped.

    Raises:
        UnityError: It can't be read, or is no such file.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise UnityError(f"{path} is no Unity artifact: it has {size} bytes")
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UnityError(f"can't read {path}: {why}") from error
    length = int.from_bytes(mapped[:8], "little")
    if not _begins(bytes(mapped[:9])):
        raise UnityError(
            f"{path} is no Unity artifact", hint="executable.save(path) writes one; models are ONNX"
        )
    if 8 + length > size:
        raise UnityError(
            f"{path} is cut short: its header alone is {length} bytes, the file {size}"
        )
    try:
        header = json.loads(bytes(mapped[8 : 8 + length]))
        metadata = {str(k): str(v) for k, v in header["__metadata__"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{path} is no Unity artifact, or damaged: its header can't be read"
        raise UnityError(what) from error
    return metadata, mapped[8 + length :]
