"""What the tests save and load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

import unity
from unity.runtime import load
from unity.runtime.executable import Executable
from unity.script import parse

SMALL = """
n = dim("n")
@script.function(attrs={"input_names": ("in/x",), "output_names": ("out:0",)})
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    y = R.add(x, 1.0)
    return R.multiply(y, R.sum(y, axis=(0,), keepdims=True))
"""


def small() -> Executable:
    return unity.compile(parse(SMALL), threads=2)


def small_result(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray((x + 1) * (x + 1).sum(0, keepdims=True), np.float32)


def again(exe: Executable, folder: Path) -> Executable:
    """The executable, saved and loaded."""
    path = folder / "a.unity"
    exe.save(path)
    loaded = load(path)
    assert loaded.program == exe.program
    assert loaded.signature == exe.signature
    assert loaded.native() == exe.native()
    assert repr(loaded) == repr(exe)
    assert loaded.explain() == exe.explain()
    return loaded


def negate_into(source: npt.NDArray[np.float32], destination: npt.NDArray[np.float32]) -> None:
    np.negative(source, out=destination)
