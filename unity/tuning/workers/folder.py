"""A folder for what a session hands to its children, gone when the session ends, however it does.

A session that is killed leaves its folder behind: the next one on the machine removes it. A folder
is locked by the session that has it, and the system gives the lock back whatever a session ends by,
so that none is removed that is in use.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Any, Self

PREFIX = "unity-tuning-"
"""What folders of sessions are called in the folder of temporary files."""


class SessionFolder:
    """Carries a folder, and removes those whose sessions were killed. Ends with the process."""

    def __init__(self) -> None:
        remove_abandoned()
        self._made, self._lock = _made()

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self._made.name)

    def __enter__(self) -> Self:
        """Nothing more."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        self.close()

    def close(self) -> None:
        """Remove it."""
        self._made.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned() -> None:
    """Remove folders of sessions that are gone; those of other users stay."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if _lock(file, wait=False):
                    rmtree(path, ignore_errors=True)
            finally:
                os.close(file)


def _made() -> tuple[tempfile.TemporaryDirectory[str], int | None]:
    """A new folder and what locks it.

    Before that another session may take it for abandoned: then there is another one.
    """
    while True:
        made = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        if os.name != "posix":
            return made, None
        with suppress(FileNotFoundError):
            file = os.open(made.name, os.O_RDONLY)
            _lock(file, wait=True)
            if Path(made.name).exists():
                return made, file
            os.close(file)
        made.cleanup()


def _lock(file: int, *, wait: bool) -> bool:
    """Whether a folder is locked now, by us; it isn't where there are no locks."""
    try:
        fcntl: Any = import_module("fcntl")  # which not every system has
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
