"""What tests of native functions share: results compared, and memory that calls leave behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np


def agree(got: object, want: object) -> None:
    """Assert that two results of a function, tensors or tuples of them, are close."""
    pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True)
    for mine, theirs in pairs:
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-5)


def kept(call: Callable[[], object], times: int) -> int:
    """Bytes by which the process is larger after so many calls than after three."""
    for _ in range(3):
        call()
    before = _resident()
    for _ in range(times):
        call()
    return _resident() - before


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
