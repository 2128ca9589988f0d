"""How much of a thread's stack a kernel's buffer may take.

A worker's stack has 8 MB on Linux, 512 KB on macOS; what is larger is allocated. Where a buffer is
placed decides whether loops may have one each, so who shrinks buffers and who emits code ask here.
"""

from __future__ import annotations

LOCAL_BYTES = 256 << 10
"""Bytes up to which a buffer of a scope ``local`` lies on the stack."""
OTHER_BYTES = 16 << 10
"""Bytes up to which any other does."""
ROW_BYTES = LOCAL_BYTES // 2
"""Bytes up to which rules place a row or a panel there: the rest is for others."""


def stack_bytes(scope: str) -> int:
    """Bytes up to which a buffer lies on the stack.

    >>> stack_bytes("local"), stack_bytes("global")
    (262144, 16384)
    """
    return LOCAL_BYTES if scope.startswith("local") else OTHER_BYTES
