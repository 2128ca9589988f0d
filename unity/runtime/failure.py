"""What went wrong in calls: behind a native one it is kept for its thread; the place is told."""

from __future__ import annotations

import threading
from types import TracebackType

from unity.errors import UnityError


class CalledFrom:
    """Tells errors of what a program calls where in the program it is called.

    Errors of ours say it in their message, others in a note, which tracebacks show.

    Args:
        where: The place, ``file:line:column``; empty if it is not known.
    """

    __slots__ = ("where",)

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.where or not isinstance(error, Exception):
            return
        if isinstance(error, UnityError) and error.span is None:
            error.message = f"{self.where}: {error.message}"
        else:
            error.add_note(f"called by the program at {self.where}")


class _Pending(threading.local):
    error: Exception | None = None


_pending = _Pending()


def note_failure(error: Exception) -> None:
    """Keep an error; the native function that called is about to give up."""
    _pending.error = error


def take_failure() -> Exception | None:
    """The error kept by this thread, which is then forgotten."""
    error, _pending.error = _pending.error, None
    return error
