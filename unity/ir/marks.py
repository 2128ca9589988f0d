"""Names that schedules write into kernels and code generators read."""

from __future__ import annotations

INSTRUCTION = "instruction"
"""Attribute of a loop: it and what is in it, loops around one store, are this one instruction."""
NONTEMPORAL = "nontemporal"
"""Attribute of a kernel: the positions of the buffers that it writes past the caches."""
TAIL = "tail"
"""Attribute of a loop over tiles: what is left of an extent is one tile of a `FITTING` size, or a
`COMPACT` one, few steps of whose sums are written out; or a tile as any other, which
stores what there is: that is `ASKED` where it is stored."""
FITTING = "fitting"
COMPACT = "compact"
ASKED = "asked"
ACCUMULATORS = "accumulators"
"""Attribute of a loop over steps of a sum: how many sums a tile is to have in flight at least."""
TILES = "amx.tile"
"""Scope of buffers that are tile registers of AMX: 1 to 16 rows of 64 bytes, eight at a time."""
THREADS = (
    *(f"{level}.{axis}" for level in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"),
    "vthread",
)
"""Axes of an accelerator's grid, which loops of the kind ``thread`` run over."""
SCOPES = ("global", "shared", "local", TILES)
"""Where buffers may lie on every target; what is `local` is one thread's own.

Targets have others besides, with a dot (`unity.machine.scope`)."""
