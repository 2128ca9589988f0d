"""Model Library Format: a tar of what micro TVM exports, the model's Relay text among it.

The archive is read in memory and never unpacked: no member's path is ever opened.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.dtype import Array

from .params import read_params

_GZIP = b"\x1f\x8b"
_END = 1024
"""How many zeros end a tar."""
_RATIO, _SLACK = 100, 1 << 24
"""How much larger a compressed archive may become; weights hardly shrink at all."""


@dataclass(frozen=True, slots=True)
class Archived:
    """What an archive holds of a model.

    Attributes:
        name: What to call its text.
        text: The Relay text, as bytes.
        params: Its parameters.
    """

    name: str
    text: bytes
    params: Mapping[str, Array]


def is_archive(data: bytes) -> bool:
    """Whether these are the bytes of a tar, compressed or not."""
    return data[257:262] == b"ustar" or data.startswith(_GZIP)


def archived(name: str, data: bytes) -> Archived:
    """The Relay text and the parameters in an archive.

    Args:
        name: What messages call it.
        data: Its bytes.

    Raises:
        UnityError: It is damaged, or holds no Relay text, or several.
    """
    if data.startswith(_GZIP):
        data = _unpacked(name, data)
    if not data.endswith(bytes(_END)):  # else members could be missing, and nobody would tell
        raise UnityError(f"{name} is an archive that was cut short")
    texts: dict[str, bytes] = {}
    params: dict[str, Array] = {}
    seen: list[str] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                seen.append(member.name)
                if not member.isreg():
                    continue
                path = member.name.removeprefix("./")
                held = memoryview(data)[member.offset_data : member.offset_data + member.size]
                if len(held) < member.size:
                    raise UnityError(f"{name} is cut short within {path[:200]!r}")
                if path.endswith((".relay", "relay.txt")):
                    texts[path] = bytes(held)
                elif path.endswith(".params"):
                    params |= read_params(held, f"{name}:{path[:200]}")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise UnityError(f"{name} is a damaged archive: {error}") from None
    if len(texts) != 1:
        found = ", ".join(sorted(texts) or seen[:10])
        what = "several Relay texts" if texts else "no Relay text (src/relay.txt)"
        raise UnityError(
            f"{name} holds {what}; it holds {found}",
            hint="unpack it and give the text of the model that is meant"
            if texts
            else "save the module itself: mod.astext(show_meta_data=True)",
        )
    ((path, text),) = texts.items()
    return Archived(f"{name}:{path}", text, params)


def _unpacked(name: str, data: bytes) -> bytes:
    most = _RATIO * len(data) + _SLACK
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            found = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UnityError(f"{name} is a damaged archive: {error}") from None
    if len(found) > most:
        raise UnityError(f"{name}, of {len(data)} bytes, unpacks to more than {most}")
    return found
