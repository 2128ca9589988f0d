"""Kernels compiled by several processes: what the cache has is what one of them would put there."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.codegen.kernel_cache import KernelCache, setting_of
from unity.codegen.kernel_work import KernelWork
from unity.codegen.llvm import host_target
from unity.codegen.workers import crew
from unity.codegen.workers.child import Child, ChildError
from unity.errors import UnityError
from unity.ir.fingerprint import fingerprint
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.script.printer import print_module
from unity.transform import Context, pipeline
from unity.transform.tail import split

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 48], w: f32[Tensor, 48, 40]) -> f32[Tensor, n, 40]:
    y = R.nn.softmax(R.matmul(x, w), axis=1)
    return R.cumsum(y, axis=1)
"""
HERE = host_target(2)


def work_in(folder: Path) -> tuple[KernelWork, dict[str, tuple[PrimFunc, str]]]:
    """What becomes of the program's kernels, and they."""
    head, tail = split(pipeline())
    kernels = head.run(parse(PROGRAM), Context(HERE)).prim_funcs()
    store = KernelCache(folder, setting_of(tail.identity, HERE, checks=False))
    work = KernelWork(store, tail, Context(HERE), checks=False)
    return work, {name: (f, fingerprint(f)) for name, f in kernels.items()}


LONG = parse(
    """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
"""
    + "    x = R.exp(x)\n" * crew.MANY_CALLS
    + "    return x\n"
)


@pytest.mark.long("starts two processes, each of which imports the compiler")
def test_a_child_does_what_we_would_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, kernels = work_in(tmp_path / "child")
    assert len(kernels) == 3

    def stored(by: KernelWork) -> list[str]:
        found = {n: by.store.get(i, f, may_alias=False) for n, (f, i) in kernels.items()}
        return [name for name, code in found.items() if code is not None]

    def leaves_the_rest(self: KernelWork, name: str, func: PrimFunc, identity: str) -> None:
        end = time.monotonic() + 60
        while len(stored(self)) < 2 and time.monotonic() < end:
            time.sleep(0.05)

    monkeypatch.setattr("unity.machine.changed._CHANGED", set[str]())  # by other tests here
    monkeypatch.setattr(KernelWork, "do", lambda *_: None)  # in this process
    other = replace(work, store=replace(work.store, setting="of another compiler"))
    with closing(crew.Crew(other, 2)) as nobody:
        nobody.expect(LONG)
        nobody.compile(kernels)
    assert not stored(other)
    assert not stored(work)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setattr(KernelWork, "do", leaves_the_rest)
    with closing(crew.Crew(work, 2)) as somebody:
        somebody.expect(LONG)
        somebody.compile(kernels)
    monkeypatch.undo()
    by_child = stored(work)
    assert len(by_child) == 2
    ours, _ = work_in(tmp_path / "ours")
    for name in by_child:
        func, identity = kernels[name]
        ours.do(name, func, identity)
        made = work.store.get(identity, func, may_alias=False)
        assert made == ours.store.get(identity, func, may_alias=False)


def test_who_is_not_needed_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unity.machine.changed._CHANGED", set[str]())
    work, kernels = work_in(tmp_path)
    short = parse(print_module(LONG).replace("R.exp(x)", "x", 1))
    with closing(crew.Crew(work, 2)) as asked:
        asked.expect(short)
        assert not asked._children
        asked.expect(LONG)
        (child,) = asked._children
        process = child._process
        asked.compile({})
    assert process is not None
    assert process.poll() is not None

    class Silent(Child):
        def __init__(self, _module: str) -> None:
            super().__init__("tests.codegen.workers.silent")

    monkeypatch.setattr(crew, "Child", Silent)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setattr(KernelWork, "do", lambda *_: None)
    with closing(crew.Crew(work, 2)) as asked:
        asked.expect(LONG)
        (child,) = asked._children
        asked.compile(kernels)  # is done before the child has imported what it needs, and goes on
    assert child.started == 1


def test_who_was_sent_away_is_not_asked_again() -> None:
    child = Child("tests.codegen.workers.silent")
    child.start()
    child.kill()
    with pytest.raises(ChildError, match="ended"):
        child.ask({"do": "start"}, 60)
    assert child.started == 1
    child.close()


def test_children_that_die_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    class Dying(Child):
        def __init__(self, module: str) -> None:
            started.append(module)
            super().__init__("no.such.module")

    monkeypatch.setattr(crew, "Child", Dying)
    monkeypatch.setattr(crew, "FEW", 2)
    monkeypatch.setattr(crew, "WORTH", 0.001)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setattr("unity.machine.changed._CHANGED", set[str]())  # by other tests here
    monkeypatch.setenv(crew.VARIABLE, "3")
    exe = unity.compile(parse(PROGRAM), HERE, cache=tmp_path)
    assert started
    rng = np.random.default_rng(0)
    x, w = rng.random((5, 48), np.float32), rng.random((48, 40), np.float32)
    y = np.exp(x @ w)
    expected = np.cumsum(y / y.sum(1, keepdims=True), axis=1)
    np.testing.assert_allclose(exe(x, w), expected, rtol=1e-5)


def test_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(crew.VARIABLE, raising=False)
    assert crew.processes(replace(HERE, threads=1)) == 1
    monkeypatch.setenv(crew.VARIABLE, "7")
    assert crew.processes(HERE) == 7
    monkeypatch.setenv(crew.VARIABLE, "none")
    with pytest.raises(UnityError, match="UNITY_COMPILE_PROCESSES is 'none'"):
        crew.processes(HERE)
