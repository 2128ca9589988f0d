"""Names that schedules write into kernels and code generators read."""

from __future__ import annotations

INSTRUCTION = "instruction"
"""Attribute of a loop: it and what is in it, loops around one store, are this one instruction."""
TILES = "amx.tile"
"""Scope of buffers that are tile registers of AMX: 1 to 16 rows of 64 bytes, eight at a time."""
SCOPES = ("global", "shared", "local", TILES)
"""Where buffers may lie on every target; what is `local` is one thread's own.

Targets have others besides, with a dot (`unity.machine.scope`)."""
