"""What is compiled for another machine: it is read, saved, exported, and not called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import unity
from unity import Target
from unity.errors import UnityError
from unity.runtime.executable import Executable
from unity.runtime.host import host_features, host_triple
from unity.script import parse

MODULE = parse("""
n = dim("n")


@script.function
def main(x: f32[Tensor, n, 8]) -> f32[Tensor, n, 8]:
    y = R.exp(x)
    return y
""")
X = np.ones((3, 8), np.float32)


@dataclass(frozen=True)
class Machine:
    """A target, and an instruction that no other has."""

    target: Target
    instruction: str


MACHINES = {
    "aarch64": Machine(
        Target("cpu", "aarch64-unknown-linux-gnu", "cortex-a72", ("neon",), 128, 32), "fmla"
    ),
    "riscv64": Machine(
        Target("cpu", "riscv64-unknown-linux-gnu", "generic-rv64", ("m", "a", "f", "d")), "fmadd.s"
    ),
    "wasm32": Machine(
        Target("cpu", "wasm32-unknown-unknown", "generic", ("simd128",)), "f32x4.mul"
    ),
    "darwin": Machine(
        Target("cpu", "arm64-apple-darwin23.0.0", "apple-m1", ("neon",), 128, 32), "fmla"
    ),
    "x86_64 with all there is": Machine(
        Target(
            *("cpu", "x86_64-unknown-linux-gnu", "graniterapids"),
            ("amx-bf16", "amx-fp16", "amx-tile", "avx", "avx2", "avx512f", "avx512vl", "fma"),
            *(512, 32),
        ),
        "zmm",
    ),
}
SAMPLED = ("aarch64", "x86_64 with all there is")


def _is_here(target: Target) -> bool:
    present = host_features()
    arch = host_triple().partition("-")[0]
    return target.triple.startswith(arch) and all(present.get(f) for f in target.features)


CALLS: tuple[Callable[[Executable], object], ...] = (
    lambda exe: exe(X),
    lambda exe: exe(x=X),
    lambda exe: exe["main"](X),
    lambda exe: exe.run({"x": X}),
    lambda exe: exe.run({"x": X}, threads=1),
    lambda exe: exe.benchmark(X),
    lambda exe: exe.profile(X),
    lambda exe: exe.trace(print, X),
)


@pytest.mark.parametrize(
    "name",
    [n if n in SAMPLED else pytest.param(n, marks=pytest.mark.slow) for n in MACHINES],
)
def test_it_is_read_and_saved_and_not_called(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    if _is_here(machine.target):
        pytest.skip("this is such a machine")
    exe = unity.compile(MODULE, machine.target)
    assert "T.ramp" in exe.ir()
    assert "define" in exe.llvm()
    assert machine.instruction in exe.asm()
    assert "not run here" in repr(exe)
    for call in CALLS:
        with pytest.raises(UnityError, match=r"the executable (is for|needs what)") as caught:
            call(exe)
        assert "compile for target" in str(caught.value.hint)
    saved = tmp_path / "model.unity"
    exe.save(saved)
    with pytest.raises(UnityError, match=r"model.unity (is for|needs what)"):
        unity.load(saved)


def test_nothing_is_measured_for_it() -> None:
    target = MACHINES["aarch64"].target
    if _is_here(target):
        pytest.skip("this is such a machine")
    with pytest.raises(UnityError, match="what is to be measured is for aarch64"):
        unity.compile(MODULE, target, resolve="measure")
    with pytest.raises(UnityError, match="the executable is for aarch64"):
        unity.compile(MODULE, target, check=True)


def test_a_library_needs_a_linker_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = MACHINES["aarch64"].target
    if _is_here(target):
        pytest.skip("this is such a machine")
    exe = unity.compile(MODULE, target)
    monkeypatch.setattr("shutil.which", {"cc": "/usr/bin/cc"}.get)
    with pytest.raises(UnityError, match=r"no linker for aarch64 .*aarch64-linux-gnu-gcc"):
        exe.export_library(tmp_path / "libmodel.so")
