"""Artifacts changed by hand, as somebody would who knows the format: all checksums fit."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from unity import runtime
from unity.errors import UnityError
from unity.ir.arrays.aligned import LINE
from unity.runtime.artifact.checksum import checksum

Plain = Any
"""JSON values, which tests change at will."""


@dataclass(slots=True)
class Forgery:
    """An artifact taken apart.

    Attributes:
        metadata: The header's.
        manifest: The manifest.
        program: The bytecode.
        pieces: The data, by name.
        fix: Whether offsets, lengths and checksums are made to fit the pieces.
    """

    metadata: dict[str, str]
    manifest: Plain
    program: Plain
    pieces: dict[str, bytes]
    fix: bool = True
    raw: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def main(self) -> Plain:
        """The bytecode's first function."""
        return self.program["functions"][0]

    def code(self, kind: str) -> Plain:
        """The first instruction of a kind."""
        return next(i for i in self.main["code"] if i["is"] == kind)

    def piece(self, name: str) -> Plain:
        """What the manifest says of a piece."""
        return next(p for p in self.manifest["pieces"] if p["name"] == name)

    def drop(self, name: str) -> None:
        """Leave a piece out."""
        self.manifest["pieces"].remove(self.piece(name))

    def unfixed(self) -> Plain:
        """The manifest, whose pieces are not made to fit any more."""
        self.fix = False
        return self.manifest


def taken_apart(content: bytes) -> Forgery:
    """The parts of an artifact."""
    start = 8 + int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8:start])["__metadata__"]
    manifest = json.loads(metadata["manifest"])
    pieces = {p["name"]: content[start + p["offset"] :][: p["bytes"]] for p in manifest["pieces"]}
    return Forgery(metadata, manifest, json.loads(pieces["program"]), pieces)


def put_together(parts: Forgery) -> bytes:
    """The artifact of some parts."""
    pieces = {**parts.pieces, "program": json.dumps(parts.program).encode(), **parts.raw}
    data = b""
    for record in parts.manifest.get("pieces", ()) if parts.fix else ():
        if isinstance(record, dict) and record.get("name") in pieces:
            piece = pieces[record["name"]]
            data = data.ljust(-(-len(data) // LINE) * LINE, b"\0")
            record.update(offset=len(data), bytes=len(piece), checksum=checksum(piece))
            data += piece
    if not parts.fix:
        data = b"".join(p.ljust(-(-len(p) // LINE) * LINE, b"\0") for p in parts.pieces.values())
        last = next(reversed(parts.pieces.values()))
        data = data[: len(data) - -len(last) % LINE]
    text = parts.metadata.get("forged") or json.dumps(parts.manifest)
    metadata = {**parts.metadata, "manifest": text, "checksum": str(zlib.crc32(text.encode()))}
    header = json.dumps({"__metadata__": metadata}).encode()
    header = header.ljust(-(-(len(header) + 8) // 4096) * 4096 - 8)
    return len(header).to_bytes(8, "little") + header + data


def forged(content: bytes, change: Callable[[Forgery], object]) -> bytes:
    """The artifact with something changed."""
    parts = taken_apart(content)
    change(parts)
    return put_together(parts)


def refused(content: bytes, folder: Path) -> str:
    """What loading a file says, which nothing must come of but an error of ours that names it."""
    path = folder / "changed.unity"
    path.write_bytes(content)
    with pytest.raises(UnityError) as error:
        runtime.load(path)
    assert "changed.unity" in error.value.message
    return str(error.value)
