"""What went wrong behind a native call: kept for its thread, told without running again."""

from __future__ import annotations

import threading


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
