"""The cache of kernels: what is found is what would be made, and nothing else is ever found."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.codegen import kernel_cache
from unity.codegen.kernel_cache import KernelCache, setting_of
from unity.codegen.llvm import host_target
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.executable import Executable
from unity.script import parse
from unity.transform import Context, Pass, Pipeline, pipeline
from unity.transform.graph import PlanMemory
from unity.transform.instruments import Timing
from unity.transform.schedule import ScheduleDefault
from unity.transform.tensor import UnrollLoops, VectorizeLoops

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 96], w: f32[Tensor, 96]) -> f32[Tensor, n, 96]:
    y = R.tanh(R.cumsum(x, axis=1))
    return R.nn.relu(R.multiply(R.cumsum(y, axis=0), w))
"""
RNG = np.random.default_rng(0)
X, W = RNG.random((5, 96), np.float32), RNG.random(96, np.float32)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that went through the schedule with a body."""
    seen: list[str] = []
    schedule = ScheduleDefault.__call__

    def watch(self: ScheduleDefault, module: IRModule, ctx: Context) -> IRModule:
        seen.extend(n for n, f in module.prim_funcs().items() if not f.attrs.get("scheduled"))
        return schedule(self, module, ctx)

    monkeypatch.setattr(ScheduleDefault, "__call__", watch)
    return seen


def compiled(
    folder: Path | None,
    passes: Pipeline | None = None,
    target: Target | None = None,
    *,
    checks: bool = False,
) -> Executable:
    here = target or host_target(2)
    return unity.compile(
        parse(PROGRAM), here, cache=folder, pipeline=passes, check_bounds=checks
    )  # fmt: skip


def test_what_is_found_is_what_was_made(tmp_path: Path, lowered: list[str]) -> None:
    first = compiled(tmp_path)
    assert set(lowered) == set(first.kernels)
    lowered.clear()
    second = compiled(tmp_path)
    assert lowered == []
    np.testing.assert_array_equal(first(X, W), second(X, W))
    assert second.kernels == first.kernels
    assert second.program == first.program
    assert second.peak_bytes(n=7) == first.peak_bytes(n=7)


def test_texts_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    first, second = compiled(tmp_path), compiled(tmp_path)
    assert second.ir() == first.ir()
    assert second.llvm() == first.llvm()
    for kernel in first.kernels:
        assert second.ir(kernel) == first.ir(kernel)
        assert second.asm(kernel) == first.asm(kernel)


def test_names_do_not_count(tmp_path: Path, lowered: list[str]) -> None:
    compiled(tmp_path)
    lowered.clear()
    other = PROGRAM.replace("main(x:", "main(input:").replace("cumsum(x", "cumsum(input")
    other = other.replace("y = ", "z = ").replace("cumsum(y", "cumsum(z")
    unity.compile(parse(other), host_target(2), cache=tmp_path)
    assert lowered == []


@dataclass(frozen=True, slots=True)
class Mine(Pass):
    """Somebody's pass."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return module


HERE = host_target(2)
OTHERWISE: dict[str, Callable[[Path], Executable]] = {
    "checks": lambda f: compiled(f, checks=True),
    "vectors": lambda f: compiled(f, target=replace(HERE, vector_bits=128)),
    "threads": lambda f: compiled(f, target=replace(HERE, threads=1)),
    "option": lambda f: compiled(
        f, pipeline().replace(VectorizeLoops, VectorizeLoops(max_lanes=4))
    ),
    "less": lambda f: compiled(f, pipeline().without(UnrollLoops)),
    "mine last": lambda f: compiled(f, pipeline() + Pipeline((Mine(),))),
    "mine": lambda f: compiled(f, pipeline().insert_after(ScheduleDefault, Mine())),
    "no cache": lambda f: compiled(None),
}


@pytest.mark.rotated(4)
@pytest.mark.parametrize("what", OTHERWISE)
def test_other_options_find_nothing(tmp_path: Path, lowered: list[str], what: str) -> None:
    expected = compiled(tmp_path)(X, W)
    made = list(lowered)
    lowered.clear()
    exe = OTHERWISE[what](tmp_path)
    assert lowered == made
    np.testing.assert_allclose(exe(X, W), expected, rtol=1e-5)


def test_another_compiler_finds_nothing(
    tmp_path: Path, lowered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(tmp_path)
    made = list(lowered)
    monkeypatch.setattr(kernel_cache, "compiler_digest", lambda: "changed")
    lowered.clear()
    compiled(tmp_path)
    assert lowered == made


def test_a_pass_before_the_kernels_does_not_matter(tmp_path: Path, lowered: list[str]) -> None:
    compiled(tmp_path)
    lowered.clear()
    compiled(tmp_path, pipeline().insert_before(ScheduleDefault, Mine()))
    assert lowered == []


def test_who_looks_on_sees_every_kernel(tmp_path: Path, lowered: list[str]) -> None:
    compiled(tmp_path)
    made = list(lowered)
    lowered.clear()
    unity.compile(parse(PROGRAM), HERE, cache=tmp_path, instruments=(Timing(),))
    assert lowered == made


def damage(folder: Path, how: str) -> None:
    files = sorted(f for f in folder.rglob("*") if f.is_file())
    for file, other in zip(files, [*files[1:], files[0]], strict=True):
        data = file.read_bytes()
        match how:
            case "flipped":
                file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            case "cut":
                file.write_bytes(data[: len(data) // 2])
            case "empty":
                file.write_bytes(b"")
            case "swapped":
                os.link(other, file.with_suffix(".tmp"))
            case _:
                file.unlink()
    for file in files:
        if how == "swapped":
            os.replace(file.with_suffix(".tmp"), file)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "swapped", "gone"])
@pytest.mark.parametrize("what", ["kernels", "objects"])
def test_damaged_entries_are_made_again(
    tmp_path: Path, lowered: list[str], what: str, how: str
) -> None:
    expected = compiled(tmp_path)(X, W)
    made = list(lowered)
    damage(tmp_path / what, how)
    for again in (made, []):
        lowered.clear()
        np.testing.assert_array_equal(compiled(tmp_path)(X, W), expected)
        assert lowered == again


def test_an_entry_that_says_something_else_is_none(tmp_path: Path, lowered: list[str]) -> None:
    """Well-formed files whose contents are not ours."""
    compiled(tmp_path)
    made = list(lowered)
    store = KernelCache(tmp_path, "")._entries
    for body in (b"{", b"[]", b'{"version": 1}', b'{"version": 2, "symbol": "a"}', b"\xff" * 9):
        for file in (tmp_path / "kernels").rglob("*.json"):
            store.put(file.parent.name + file.stem, body)
        lowered.clear()
        compiled(tmp_path)
        assert lowered == made


FILL = """
@script.function
def main(x: f32[Tensor, 64]) -> f32[Tensor, 64]:
    return R.add(x, R.const(VALUE))
"""


def test_kernels_that_differ_in_a_constant_are_two(tmp_path: Path) -> None:
    x = np.zeros(64, np.float32)
    for value in (1.0, 2.0, 1.0, -0.0):
        exe = unity.compile(parse(FILL.replace("VALUE", str(value))), cache=tmp_path)
        np.testing.assert_array_equal(exe(x), np.float32(value))


IN_PLACE = """
@script.function
def main(x: f32[Tensor, 64]) -> f32[Tensor, 64]:
    return R.cumsum(R.exp(R.cumsum(x, axis=0)), axis=0)
"""


@pytest.mark.parametrize("first", [True, False])
def test_what_may_alias_is_another_kernel(tmp_path: Path, first: bool) -> None:
    """The plan of memory decides behind the place where kernels are looked up."""
    x = np.full(64, 0.01, np.float32)
    expected = np.cumsum(np.exp(np.cumsum(x)))
    for in_place in (first, not first, first):
        passes = pipeline().replace(PlanMemory, PlanMemory(in_place=in_place))
        exe = unity.compile(parse(IN_PLACE), cache=tmp_path, pipeline=passes)
        np.testing.assert_allclose(exe(x), expected, rtol=1e-5)
        assert ("noalias" in exe.ir()) == in_place
    assert sum(b"_aliased" in f.read_bytes() for f in tmp_path.rglob("*.json")) == 1


CALLS = """
@script.function
def main(x: f32[Tensor, 64]) -> f32[Tensor, 64]:
    y = R.call_tir(double, (x,), out=f32[Tensor, 64])
    return R.call_tir(twice, (y,), out=f32[Tensor, 64])
"""
DOUBLE = """
@script.prim_func(attrs={"ATTR": True})
def NAME(x: f32[Buffer, 64], y: f32[Buffer, 64]) -> None:
    for i in range(64):
        with T.block("double"):
            vi = T.axis.spatial(64, i)
            y[vi] = x[vi] * 2.0
"""


@pytest.mark.parametrize("attr", ["private", "public"])
def test_equal_kernels_are_made_once(tmp_path: Path, lowered: list[str], attr: str) -> None:
    double = DOUBLE.replace("ATTR", attr)
    twice = double.replace("NAME", "twice").replace("i in", "j in").replace("64, i)", "64, j)")
    module = parse(CALLS + double.replace("NAME", "double") + twice)
    exe = unity.compile(module, cache=tmp_path)
    np.testing.assert_array_equal(exe(np.ones(64, np.float32)), np.float32(4))
    assert len(set(lowered)) == (1 if attr == "private" else 2)
    assert len(list(tmp_path.glob("kernels/*/*"))) == 1


def test_many_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as workers:
        made = list(workers.map(lambda _: compiled(tmp_path), range(4)))
    expected = made[0](X, W)
    for exe in (*made, compiled(tmp_path)):
        np.testing.assert_array_equal(exe(X, W), expected)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert compiled(file)(X, W).shape == (5, 96)


def test_settings_name_all_they_are_given() -> None:
    here = host_target()
    settings = [
        setting_of("a", here, checks=False), setting_of("b", here, checks=False),
        setting_of("a", here, checks=True), setting_of("a", replace(here, cpu="x"), checks=False),
        setting_of("a", replace(here, l2_bytes=1), checks=False),
    ]  # fmt: skip
    assert len(set(settings)) == len(settings)
