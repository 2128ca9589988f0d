"""What the tests save and load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.runtime import load
from unity.runtime.executable import Executable
from unity.runtime.host import host_features
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


def on_tiles() -> Executable:
    """A product of ``(64, 128)`` by a constant, on the tile registers of AMX."""
    if not host_features().get("amx-bf16"):
        pytest.skip("no AMX here")
    w = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    exe = unity.compile(parse("""
@script.function
def main(x: f32[Tensor, 64, 128]) -> f32[Tensor, 64, 64]:
    return R.matmul(x, R.const("w"))
""", {"w": w}), precision="bf16")  # fmt: skip
    assert "tdpbf16" in exe.asm()
    return exe


def same_in_another_process(exe: Executable, program: str, file: Path) -> None:
    """Compare with what a process gets that runs `program` on a file made of the executable.

    The program is given the file and where to save the result, and takes ``(64, 128)`` normal
    numbers of seed 0.
    """
    result = file.with_name("y.npy")
    command = [sys.executable, "-c", program, str(file), str(result)]
    subprocess.run(command, check=True, cwd=Path(unity.__file__).parents[1])
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    np.testing.assert_array_equal(np.load(result), exe(x))


def again(exe: Executable, folder: Path, hosts: Sequence[Callable[..., object]] = ()) -> Executable:
    """The executable, saved and loaded."""
    path = folder / "a.unity"
    exe.save(path)
    loaded = load(path, hosts=hosts)
    assert loaded.program == exe.program
    assert loaded.signature == exe.signature
    assert loaded.native() == exe.native()
    assert repr(loaded) == repr(exe)
    assert loaded.explain() == exe.explain()
    return loaded


def negate_into(source: npt.NDArray[np.float32], destination: npt.NDArray[np.float32]) -> None:
    np.negative(source, out=destination)
