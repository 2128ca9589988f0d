"""Kernels compiled by several processes: what the cache has is what one of them would put there."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
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
from unity.codegen.workers import crew, spawned
from unity.codegen.workers.child import Child, ChildError
from unity.codegen.workers.forked import Forked, fork, may_fork
from unity.codegen.workers.job import Job
from unity.codegen.workers.spawned import Spawned
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


@pytest.fixture
def spawning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are spawned, as where this one cannot be copied."""
    monkeypatch.setattr(crew, "may_fork", lambda: False)
    monkeypatch.setattr("unity.machine.changed._CHANGED", set[str]())  # by other tests here


def stored(by: KernelWork, kernels: dict[str, tuple[PrimFunc, str]]) -> list[str]:
    """Which kernels the cache has."""
    found = {n: by.store.get(i, f, may_alias=False) for n, (f, i) in kernels.items()}
    return [name for name, code in found.items() if code is not None]


def in_other_processes(
    work: KernelWork, kernels: dict[str, tuple[PrimFunc, str]], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What is stored when this process does nothing but take a kernel, and wait."""
    does, here = KernelWork.do, os.getpid()

    def waits(self: KernelWork, name: str, func: PrimFunc, identity: str) -> None:
        end = time.monotonic() + 60
        if os.getpid() != here:
            does(self, name, func, identity)
        while os.getpid() == here and len(stored(self, kernels)) < 2 and time.monotonic() < end:
            time.sleep(0.05)

    with monkeypatch.context() as patched:
        patched.setattr(crew, "PACE", 1.0)
        patched.setattr(KernelWork, "do", waits)
        with closing(crew.Crew(work, 2)) as somebody:
            somebody.expect(LONG)
            somebody.compile(kernels)
    return stored(work, kernels)


def assert_as_ours(
    work: KernelWork, names: list[str], kernels: dict[str, tuple[PrimFunc, str]], folder: Path
) -> None:
    """What others stored is what we would have."""
    ours, _ = work_in(folder)
    assert len(names) == 2
    for name in names:
        func, identity = kernels[name]
        ours.do(name, func, identity)
        made = work.store.get(identity, func, may_alias=False)
        assert made == ours.store.get(identity, func, may_alias=False)


@pytest.mark.usefixtures("spawning")
@pytest.mark.long("starts two processes, each of which imports the compiler")
def test_who_is_spawned_does_what_we_would_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, kernels = work_in(tmp_path / "theirs")
    assert len(kernels) == 3
    other = replace(work, store=replace(work.store, setting="of another compiler"))
    with monkeypatch.context() as patched:
        patched.setattr(KernelWork, "do", lambda *_: None)  # in this process
        with closing(crew.Crew(other, 2)) as nobody:
            nobody.expect(LONG)
            nobody.compile(kernels)
    assert not stored(other, kernels)
    assert not stored(work, kernels)
    names = in_other_processes(work, kernels, monkeypatch)
    assert_as_ours(work, names, kernels, tmp_path / "ours")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_a_copy_does_what_we_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "may_fork", lambda: True)
    work, kernels = work_in(tmp_path / "theirs")
    names = in_other_processes(work, kernels, monkeypatch)
    assert_as_ours(work, names, kernels, tmp_path / "ours")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_only_a_process_of_one_thread_is_copied() -> None:
    told = threading.Event()
    thread = threading.Thread(target=told.wait)
    thread.start()
    try:
        assert not may_fork()
    finally:
        told.set()
        thread.join()


def one_copy(work: KernelWork, jobs: dict[str, Job]) -> Forked:
    """A copy of this process."""
    copies: list[Forked] = []
    fork(copies, work, jobs)
    return copies[0]


def open_files() -> int:
    """How many files and sockets this process has."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_copies_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, kernels = work_in(tmp_path)
    jobs = {n: Job.of(n, func, identity) for n, (func, identity) in kernels.items()}
    job = next(iter(jobs.values()))
    printed, before = tmp_path / "printed", open_files()
    at_end = printed.touch

    def fails(self: KernelWork, name: str, func: PrimFunc, identity: str) -> None:
        raise UnityError("refused")

    def ends(self: KernelWork, name: str, func: PrimFunc, identity: str) -> None:
        raise KeyboardInterrupt

    atexit.register(at_end)
    monkeypatch.setattr(KernelWork, "do", fails)
    worker = one_copy(work, jobs)
    worker.do(job)  # is done with it, and goes on
    worker.do(job)
    worker.close()
    monkeypatch.setattr(KernelWork, "do", ends)
    worker = one_copy(work, jobs)
    with pytest.raises(ChildError, match="ended"):
        worker.do(job)
    worker.close()
    monkeypatch.undo()
    worker = one_copy(work, jobs)
    worker.kill()
    with pytest.raises(ChildError):
        worker.do(job)
    worker.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(worker._pid, os.WNOHANG)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("its number may be another's"))
    worker.kill()
    worker.close()
    atexit.unregister(at_end)
    assert not printed.exists()
    assert open_files() == before


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_a_copy_ends_when_nobody_asks(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path)
    copies: list[Forked] = []
    fork(copies, work, {})
    fork(copies, work, {})
    first, second = copies
    first._talk.close()  # the second has it no more
    pid, _ = os.waitpid(first._pid, 0)
    assert pid == first._pid
    first.close()
    second.close()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_a_copy_that_gives_no_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, kernels = work_in(tmp_path)
    jobs = {n: Job.of(n, func, identity) for n, (func, identity) in kernels.items()}
    monkeypatch.setattr(KernelWork, "do", lambda *_: time.sleep(600))
    monkeypatch.setattr(Job, "patience", 0.1)
    worker = one_copy(work, jobs)
    with pytest.raises(ChildError, match="no answer"):
        worker.do(next(iter(jobs.values())))
    worker.close()


@pytest.mark.usefixtures("spawning")
def test_where_no_copy_can_be_made_processes_are_spawned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, False])
    monkeypatch.setattr(crew, "may_fork", lambda: next(answers))
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setattr(KernelWork, "do", lambda *_: time.sleep(0.5))
    spawned_by: list[int] = []
    monkeypatch.setattr(crew.Crew, "_spawn", lambda _, wanted: spawned_by.append(wanted))
    work, kernels = work_in(tmp_path)
    with closing(crew.Crew(work, 2)) as somebody:
        somebody.compile(kernels)
    assert spawned_by


@pytest.mark.usefixtures("spawning")
def test_who_is_not_needed_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, kernels = work_in(tmp_path)
    short = parse(print_module(LONG).replace("R.exp(x)", "x", 1))
    with closing(crew.Crew(work, 2)) as asked:
        asked.expect(short)
        assert not asked._workers
        asked.expect(LONG)
        (worker,) = asked._workers
        assert isinstance(worker, Spawned)
        process = worker._child._process
        asked.compile({})
    assert process is not None
    assert process.poll() is not None

    class Silent(Child):
        def __init__(self, _module: str) -> None:
            super().__init__("tests.codegen.workers.silent")

    monkeypatch.setattr(spawned, "Child", Silent)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setattr(KernelWork, "do", lambda *_: None)
    with closing(crew.Crew(work, 2)) as asked:
        asked.expect(LONG)
        (worker,) = asked._workers
        asked.compile(kernels)  # is done before the child has imported what it needs, and goes on
    assert isinstance(worker, Spawned)
    assert worker._child.started == 1


def test_who_was_sent_away_is_not_asked_again() -> None:
    child = Child("tests.codegen.workers.silent")
    child.start()
    child.kill()
    with pytest.raises(ChildError, match="ended"):
        child.ask({"do": "start"}, 60)
    assert child.started == 1
    child.close()


def check_program(folder: Path) -> None:
    """The program compiles, and is right."""
    exe = unity.compile(parse(PROGRAM), HERE, cache=folder)
    rng = np.random.default_rng(0)
    x, w = rng.random((5, 48), np.float32), rng.random((48, 40), np.float32)
    y = np.exp(x @ w)
    expected = np.cumsum(y / y.sum(1, keepdims=True), axis=1)
    np.testing.assert_allclose(exe(x, w), expected, rtol=1e-5)


@pytest.mark.usefixtures("spawning")
def test_children_that_die_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    class Dying(Child):
        def __init__(self, module: str) -> None:
            started.append(module)
            super().__init__("no.such.module")

    monkeypatch.setattr(spawned, "Child", Dying)
    monkeypatch.setattr(crew, "FEW", 2)
    monkeypatch.setattr(crew, "WORTH", 0.001)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setenv(crew.VARIABLE, "3")
    check_program(tmp_path)
    assert started


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_copies_that_die_or_cannot_be_made_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    does, here, forks = KernelWork.do, os.getpid(), os.fork
    tried: list[int] = []

    def dies(self: KernelWork, name: str, func: PrimFunc, identity: str) -> None:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        does(self, name, func, identity)

    def only_one() -> int:
        tried.append(1)
        if len(tried) > 1:
            raise BlockingIOError("no more processes")
        return forks()

    monkeypatch.setattr(KernelWork, "do", dies)
    monkeypatch.setattr(os, "fork", only_one)
    monkeypatch.setattr(crew, "may_fork", lambda: True)
    monkeypatch.setattr(crew, "PACE", 1.0)
    monkeypatch.setenv(crew.VARIABLE, "3")
    check_program(tmp_path)
    assert len(tried) == 2


def test_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(crew.VARIABLE, raising=False)
    assert crew.processes(replace(HERE, threads=1)) == 1
    monkeypatch.setenv(crew.VARIABLE, "7")
    assert crew.processes(HERE) == 7
    monkeypatch.setenv(crew.VARIABLE, "none")
    with pytest.raises(UnityError, match="UNITY_COMPILE_PROCESSES is 'none'"):
        crew.processes(HERE)
