"""A kernel that reads past the end of its input, for the test of how that is refused."""

from __future__ import annotations

from unity import script
from unity.script import Buffer, f32


@script.prim_func
def shifted(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
    for i in range(4):
        c[i] = a[i + 1]
