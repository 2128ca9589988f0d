"""Relay's files told from others, without reading them: `is_relay`."""

from __future__ import annotations

from pathlib import Path

from .saved.archive import is_archive

SUFFIXES = (".relay", ".rly")
"""What files of Relay are called, whatever is in them."""
_ELSEWHERE = (".json", ".tar", ".txt")
"""What they are called as well; then what is in them tells."""
_HEADERS = (b"#[version", b"v0.0.4", b"v0.0.5")
_LOOKED_AT = 4096


def is_relay(path: Path) -> bool:
    """Whether a path is that of a Relay model: by its suffix, or by its first bytes."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return True
    if suffix not in _ELSEWHERE or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    if is_archive(start) or start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_HEADERS):
        return True
    return start.lstrip()[:1] == b"{" and (b'"nodes"' in start or b'"root"' in start)
