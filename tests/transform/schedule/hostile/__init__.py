"""Programs that a schedule must not trust: whatever is legal on them must keep what they do."""

from __future__ import annotations

from .control import CONTROL
from .memory import MEMORY
from .program import Program, differ
from .promises import PROMISES

HOSTILE = {**PROMISES, **CONTROL, **MEMORY}

__all__ = ["HOSTILE", "Program", "differ"]
