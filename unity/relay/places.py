"""Places in scripts, for messages."""

from __future__ import annotations

import sys

from unity.errors import Span

_NOT_IT = ("unity.", "importlib.")
"""Modules that stand between a script and what asks: ours, and Python's own for an import."""


def here() -> Span | None:
    """The line of the script that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_NOT_IT):
        frame = frame.f_back
    line = frame.f_lineno
    return Span(frame.f_code.co_filename, line, 0, line, 0)
