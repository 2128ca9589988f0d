"""What a call of a one-kernel executable costs from Python, in nanoseconds."""

from __future__ import annotations

import numpy as np

import unity
from unity.script import parse

from .timing import interleaved

SOURCE = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.add(x, y)
"""


def call_overhead() -> dict[str, float]:
    """The least time of a call on 16 elements, next to numpy's own addition."""
    executable = unity.compile(parse(SOURCE))
    x, y = np.ones(16, np.float32), np.ones(16, np.float32)
    times = interleaved(
        {"unity_call": lambda: executable(x, y), "numpy_add": lambda: np.add(x, y)}, seconds=1.0
    )
    return {name: t.min * 1e9 for name, t in times.items()}
