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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unity.errors import UnityError
from unity.ir.arrays.aligned import LINE, places

from .authentic import FIELD, UNKNOWN, check_signature, signed
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


def write(
    path: Path,
    metadata: Mapping[str, str],
    pieces: Sequence[Piece],
    key: bytes | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write a file, or leave what was there.

    Args:
        path: The file.
        metadata: What stands in its header.
        pieces: The data.
        key: What its authentication code is made with; None for none.
        durable: Whether it is on the disk when this returns, as `replacing` has it.

    Raises:
        UnityError: It can't be written.
    """
    if key is None:
        header = _header(metadata, pieces)
    else:
        header = signed(_header({FIELD: UNKNOWN, **metadata}, pieces), key, _data(pieces))
    try:
        with replacing(path, durable=durable) as file:
            file.write(len(header).to_bytes(8, "little"))
            file.write(header)
            for part in _data(pieces):
                file.write(part)
    except OSError as error:
        raise UnityError(f"can't write {path}: {error.strerror or error}") from error


def _data(pieces: Sequence[Piece]) -> Iterator[bytes | memoryview]:
    """All that follows the header, in order."""
    end = 0
    for piece, place in zip(pieces, offsets(pieces), strict=True):
        yield bytes(place - end)
        yield piece.data
        end = place + piece.data.nbytes


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
    if not os.path.isfile(path):  # a pipe would wait, and lose what is read of it
        return False
    try:
        with open(path, "rb") as file:
            return len(start := file.read(9)) == 9 and _begins(start)
    except (OSError, ValueError):  # a ValueError: a path that no file can have
        return False


def _begins(start: bytes) -> bool:
    return int.from_bytes(start[:8], "little") <= _LONGEST_HEADER and start[8:] == b"{"


def read(path: Path, key: bytes | None = None) -> tuple[dict[str, str], memoryview]:
    """The metadata of a file, and its data, mapped.

    Args:
        path: The file.
        key: What it must have been written with; None for anything.

    Raises:
        UnityError: It can't be read, is no such file, or was not written with the key.
    """
    mapped = _mapped(path)
    if not _begins(bytes(mapped[:9])):
        raise not_ours(path, mapped.nbytes)
    start = 8 + int.from_bytes(mapped[:8], "little")
    if start > mapped.nbytes:
        raise UnityError(
            f"{path} is cut short: its header alone is {start - 8} bytes, the file {mapped.nbytes}"
        )
    if key is not None:
        check_signature(mapped, key, str(path))
    try:
        header = json.loads(bytes(mapped[8:start]))
        metadata = {str(k): str(v) for k, v in header["__metadata__"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{path} is no executable, or damaged: its header can't be read"
        raise UnityError(what) from error
    if start % LINE and metadata.get("format"):  # constants would lie anywhere
        raise UnityError(f"{path} is damaged: its data does not begin on a cache line")
    return metadata, mapped[start:]


def _mapped(path: Path) -> memoryview:
    """A file's bytes; those that processes read by mapping are in memory once."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= 8:
                raise not_ours(path, size)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise UnityError(f"can't read {path}: {why or error}") from error


def not_ours(path: Path, size: int) -> UnityError:
    """The error of a file that is no executable."""
    return UnityError(
        f"{path} is no executable that Unity wrote ({size} bytes)",
        hint="executable.save(path) writes one, and it may be damaged or cut short; "
        "models are ONNX",
    )
