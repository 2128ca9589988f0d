"""The disk cache: bytes, object code most of all, by a key that names everything they depend on.

An entry is checked when read and rewritten when damaged; entries appear whole or not at all; the
oldest go when the folder has grown too big. A cache that cannot be written is no error. Code is
run, so nothing is taken from a folder that another user may have put it in.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from logging import getLogger
from pathlib import Path

_MAGIC = b"UNITYOBJ2\n"
_DIGEST = 32
LIMIT = 1 << 30
"""Bytes the folder may take."""
_ABANDONED = 3600.0  # seconds after which nobody is writing a file any more
ROOT = 0
"""The user whose folders all trust."""
FOLDER = "objects"
"""Where object code lies within the folder of all caches."""


def default_folder() -> Path | None:
    """Where the cache lies if `compile` is not told: ``$UNITY_CACHE_DIR``, else in the home folder.

    ``UNITY_CACHE_DIR=off`` gives None: no cache. So does a user without a home folder, as services
    are. Only entry points ask.
    """
    chosen = os.environ.get("UNITY_CACHE_DIR")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    try:
        return Path.home() / ".cache" / "unity"
    except RuntimeError:  # the system knows no such user
        return None


def why_unsafe(folder: Path) -> str | None:
    """Why another user may have put there what a folder holds; None if none can have.

    Groups are trusted: who makes a folder for one means that.
    """
    try:
        status = folder.stat()
    except OSError:
        return None
    if status.st_uid not in (ROOT, os.geteuid()):
        return f"{folder} belongs to another user"
    return f"everybody may write to {folder}" if status.st_mode & stat.S_IWOTH else None


@cache
def _tell(why: str) -> None:
    getLogger("unity").warning("the cache is not used: %s", why)


def key_of(*parts: str) -> str:
    """A key naming all the parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """Objects in a folder.

    Attributes:
        folder: Where; made when first written to.
        limit: Bytes it may take before the oldest entries go.
        suffix: Of the files' names.
    """

    folder: Path
    limit: int = LIMIT
    suffix: str = ".o"

    def is_safe(self) -> bool:
        """Whether no other user can have put there what it holds."""
        why = why_unsafe(self.folder.parent) or why_unsafe(self.folder)
        if why is not None:
            _tell(why)
        return why is None

    def place(self, key: str) -> Path:
        """Where the entry of a key lies, if there is one."""
        return self.folder / key[:2] / f"{key[2:]}{self.suffix}"

    def get(self, key: str) -> bytes | None:
        """The bytes stored under a key; None if there are none, or damaged or not ours."""
        path = self.place(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if not self.is_safe():
            return None
        start = len(_MAGIC) + _DIGEST
        body = data[start:]
        if data[:start] != _head(key, body):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # what is used stays
        return body

    def put(self, key: str, body: bytes) -> None:
        """Store bytes under a key, unless the folder cannot be written."""
        path = self.place(key)
        if not self.is_safe():
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_head(key, body) + body)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise

    def trim(self) -> None:
        """Remove the entries used longest ago until the folder is within its limit.

        What writers left behind that were killed goes, too.
        """
        entries: list[tuple[float, int, str]] = []
        for path, status in self._files():
            if path.endswith(self.suffix):
                entries.append((status.st_mtime, status.st_size, path))
            elif path.endswith(".tmp") and status.st_mtime < time.time() - _ABANDONED:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size
            if total <= self.limit:
                return

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """What there is, as far as it can be listed: thousands of files, at every compilation."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder.path) as files:
                    for file in files:
                        with contextlib.suppress(OSError):
                            yield file.path, file.stat(follow_symlinks=False)


def _head(key: str, body: bytes) -> bytes:
    """What an entry begins with: it tells whose the bytes are, and that all of them are there."""
    digest = hashlib.sha256(key.encode())
    digest.update(body)
    return _MAGIC + digest.digest()
