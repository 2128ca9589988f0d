"""What a call of a one-kernel executable costs from Python, in nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

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
TEN = f"""
@script.function
def main({", ".join(f"x{i}: f32[Tensor, 16]" for i in range(10))}) -> f32[Tensor, 16]:
    return {" + ".join(f"x{i}" for i in range(10))}
"""


def call_overhead() -> dict[str, float]:
    """The least time of a call on 16 elements, next to numpy's own addition and torch's."""
    executable = unity.compile(parse(SOURCE))
    x, y = np.ones(16, np.float32), np.ones(16, np.float32)
    works: dict[str, Callable[[], object]] = {
        "unity_call": lambda: executable(x, y),
        "numpy_add": lambda: np.add(x, y),
    }
    if find_spec("torch") is not None:
        import torch

        ten, t = unity.compile(parse(TEN)), torch.ones(16)
        ones = [np.ones(16, np.float32)] * 10
        tensors = [t] * 10
        works |= {
            "unity_call_torch": lambda: executable(t, t),
            "torch_add": lambda: torch.add(t, t),
            "unity_call_ten": lambda: ten(*ones),
            "unity_call_ten_torch": lambda: ten(*tensors),
        }
    times = interleaved(works, seconds=0.5 * len(works))
    return {name: t.min * 1e9 for name, t in times.items()}
