"""What an artifact says of itself: all that is not data, as JSON."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.bytecode import Rank
from unity.runtime.hosts import HostRecord
from unity.runtime.image import Option
from unity.runtime.linking.foreign_library import LibraryRecord
from unity.runtime.native_info import NativeInfo
from unity.runtime.records import Index, Range, RecordError, decode, encode

FORMAT = 2
"""The version of what is written here; raised when an older Unity could misread it."""
KIND = "unity-executable"


@dataclass(frozen=True, slots=True)
class PieceRecord:
    """A piece of data: where it begins behind the header, its length and its checksum."""

    name: str
    offset: Index
    bytes: Index
    checksum: Annotated[int, Range(0, 2**32 - 1)]


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """A kernel that an engine computes; its data is the piece ``engine/<name>``.

    The fields are those of `unity.runtime.engines.engine_kernel.EngineCode`.
    """

    name: str
    engine: str
    inputs: Index
    dtypes: tuple[str, ...]
    ranks: tuple[Rank, ...]
    module: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an artifact says of itself.

    Attributes:
        unity: The version that wrote it.
        signature: The main function, in words.
        target: What the code is for.
        options: What was asked for when it was compiled.
        pieces: The data; constants are ``constant/<index>``, objects ``object/<index>``.
        objects: How many object files of kernels there are.
        native: The native functions, whose object is the piece ``native``.
        symbols: The foreign functions that kernels call.
        libraries: Where they are found; the object that goes with one is ``library/<name>``.
    """

    unity: str
    signature: str
    target: Target
    options: tuple[tuple[str, Option], ...]
    pieces: tuple[PieceRecord, ...]
    objects: Index
    native: NativeInfo | None = None
    symbols: tuple[str, ...] = ()
    libraries: tuple[LibraryRecord, ...] = ()
    engines: tuple[EngineRecord, ...] = ()
    hosts: tuple[HostRecord, ...] = ()

    @property
    def bytes(self) -> int:
        """How much data there is."""
        return max((p.offset + p.bytes for p in self.pieces), default=0)


def to_metadata(manifest: Manifest) -> dict[str, str]:
    """The manifest as the metadata of a file."""
    text = json.dumps(encode(manifest))
    check = str(zlib.crc32(text.encode()))
    return {"format": KIND, "version": str(FORMAT), "checksum": check, "manifest": text}


def from_metadata(metadata: Mapping[str, str], where: str) -> Manifest:
    """The manifest of a file.

    Args:
        metadata: The file's.
        where: How messages name it.

    Raises:
        UnityError: It is of another kind or a version not known, or damaged.
    """
    if metadata.get("format") != KIND:
        raise UnityError(
            f"{where} is no executable but a file of safetensors",
            hint="executable.save(path) writes an executable",
        )
    version = metadata.get("version")
    if version != str(FORMAT):
        raise UnityError(
            f"{where} is an executable of format {version}; this Unity reads {FORMAT}",
            hint="update Unity, or compile the model again with this one",
        )
    text = metadata.get("manifest", "")
    if str(zlib.crc32(text.encode("utf-8", "surrogatepass"))) != metadata.get("checksum"):
        raise damaged(where, "its manifest")
    try:
        return decode(Manifest, text)
    except RecordError as error:
        raise malformed(where, f"its manifest is of another kind: {error}") from error


def malformed(where: str, what: str) -> UnityError:
    """The error of a file whose checksums fit what this Unity can't have written."""
    return UnityError(
        f"{where} is none that this Unity wrote: {what}",
        hint="update Unity, or compile the model again with this one; do not trust a file that "
        "somebody changed",
    )


def damaged(where: str, what: str) -> UnityError:
    """The error of a file that is not as it was written."""
    return UnityError(
        f"{where} is damaged: {what} is not what was written",
        hint="copy or compile it again",
    )
