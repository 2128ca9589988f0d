"""Children that measure: what breaks, hangs or is wrong there costs its candidate and no more."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from unity.codegen.assemble import assemble
from unity.codegen.llvm.host import host_target
from unity.codegen.lower import lower
from unity.codegen.workers.child import Child, ChildError, Message
from unity.ir.dtype import Array
from unity.ir.equality import structural_equal
from unity.runtime.kernel_timer import NativeKernel
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.schedule import TensorIntrinsic, default_schedule, register_intrinsic
from unity.transform.schedule.intrinsics import INTRINSICS
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Trace
from unity.tuning.in_program import compared, saved
from unity.tuning.records import Records
from unity.tuning.tasks import tasks_of
from unity.tuning.tasks.task import KERNEL
from unity.tuning.workers import Candidate, Measurer, intrinsics, run
from unity.tuning.workers.program import RunningProgram, read, written
from unity.tuning.workers.run import Runner

from .kernels import DOUBLED, EIGHT, MATMUL, tasks

HERE = replace(host_target(), threads=1)
LARGE = MATMUL.replace(" 32,", " 128,").replace(" 48", " 256")
"""So much that its loops as written take many times what the default takes, whatever else runs."""


@pytest.fixture(name="child")
def child_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    """A child that does what it is told: answers, hangs, dies, aborts."""
    (tmp_path / "odd_child.py").write_text(
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    do = json.loads(line)['do']\n"
        "    if do == 'hang': time.sleep(60)\n"
        "    if do == 'die': sys.exit('I am gone')\n"
        "    if do == 'abort': os.abort()\n"
        "    print(json.dumps({'done': do}), flush=True)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Child("odd_child")
    yield made
    made.close()


def test_a_child_that_died_or_hung_is_started_again(child: Child) -> None:
    assert child.ask({"do": "well"}, 20) == {"done": "well"}
    with pytest.raises(ChildError, match=r"ended with 1: I am gone"):
        child.ask({"do": "die"}, 20)
    with pytest.raises(ChildError, match=r"ended by signal 6"):
        child.ask({"do": "abort"}, 20)
    with pytest.raises(ChildError, match=r"no answer in 0.2 s"):
        child.ask({"do": "hang"}, 0.2)
    assert child.ask({"do": "well"}, 20) == {"done": "well"}
    assert child.started == 4


def test_a_child_that_was_not_waited_for_does_not_answer_the_next_request(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes while it works: what it answers then is nobody's."""
    assert child.ask({"do": "first"}, 20) == {"done": "first"}

    def stopped(*args: object) -> Message:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Child, "_answer", stopped)
        with pytest.raises(KeyboardInterrupt):
            child.ask({"do": "second"}, 20)
    assert child.ask({"do": "third"}, 20) == {"done": "third"}


@pytest.mark.skipif(sys.platform != "linux", reason="measures here")
@pytest.mark.long("starts two children, which import the compiler, and compiles four kernels")
def test_candidates_are_compiled_compared_and_timed() -> None:
    (task,) = tasks(LARGE, HERE)
    usual = default_schedule(task.func, HERE).trace
    slow = Schedule(task.func).trace
    impossible = Trace.from_json(usual.to_json().replace('"b0"', '"nothing"'))
    with Measurer(HERE) as measurer:
        fine, slower, refused, again = measurer.measure(
            task, [Candidate(usual), Candidate(slow), Candidate(impossible), Candidate(usual)]
        )
    assert fine.seconds is not None
    assert again.seconds is not None
    assert slower.ratio > 3
    assert "no block 'nothing'" in refused.why
    assert refused.seconds is None


def test_a_single_run_that_was_disturbed_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first timed run of a candidate takes 20 ms, all others nothing: it is raced."""
    runs = iter([0.0, 0.02])

    def kernel() -> list[Array]:
        return [np.ones(4, np.float32)]

    def candidate() -> list[Array]:
        time.sleep(next(runs, 0.0))
        return kernel()

    runner = Runner()
    monkeypatch.setattr(runner, "_call", kernel)
    monkeypatch.setattr(runner, "_turns", repeat(()))
    monkeypatch.setattr(runner, "_expected", kernel())
    monkeypatch.setattr(run, "load", lambda path: candidate)
    found = runner.candidate(
        {"path": "candidate", "tolerance": "1e-3", "seconds": "0.01", "races": "1"}
    )
    assert float(str(found["seconds"])) < 0.01


@pytest.mark.skipif(sys.platform != "linux", reason="measures here")
@pytest.mark.long("starts two children, which import the compiler")
def test_children_know_the_intrinsics_of_users() -> None:
    """Which join the searches by themselves: a candidate made of one is compiled and measured."""
    made = parse(EIGHT.format(does="", factor="2.0")).prim_funcs()
    register_intrinsic("test_eight", TensorIntrinsic(made["said"], made["done"]))
    try:
        (task,) = tasks(DOUBLED, HERE)
        sch = Schedule(task.func, HERE)
        _, row = sch.get_loops("b0")
        sch.tensorize(sch.split(row, [None, 8])[1], "test_eight")
        with Measurer(HERE) as measurer:
            (found,) = measurer.measure(task, [Candidate(sch.trace)])
        assert found.why == ""
        texts = intrinsics.registered()
        assert set(texts) >= {"test_eight"}
    finally:
        del INTRINSICS["test_eight"]
    intrinsics.register(texts)
    again = INTRINSICS.pop("test_eight")
    assert structural_equal(again.description, made["said"])
    assert structural_equal(again.implementation, made["done"])


def test_constants_are_as_far_as_in_a_program_between_calls() -> None:
    small, large = (np.ones((64, n), np.float32) for n in (16, 256))
    text = """
@script.function
def main(x: f32[Tensor, 8, 64]):
    return R.matmul(x, R.const("small")), R.matmul(x, R.const("large"))
"""
    program = parse(text, {"small": small, "large": large})
    both = tasks_of(program, pipeline("cpu"), Context(HERE))
    own = {sum(t.constants.values()): t for t in both}
    assert sorted(own) == [small.nbytes, large.nbytes]
    assert {t.between for t in both} == {small.nbytes + large.nbytes}
    assert [own[n].copies for n in sorted(own)] == [17, 1]
    assert replace(own[small.nbytes], between=1 << 40).copies == 64
    assert tasks(MATMUL, HERE)[0].copies == 1


def test_calls_take_turns_with_copies(tmp_path: Path) -> None:
    exe = unity.compile(parse(MATMUL), threads=1)
    exe.save(tmp_path / "reference.unity")
    inputs: list[Message] = []
    for k, (shape, copies) in enumerate([((32, 48), 1), ((48, 64), 3)]):
        np.ones(shape, np.float32).tofile(tmp_path / str(k))
        told: Message = {"file": str(tmp_path / str(k)), "dtype": "float32", "shape": [*shape]}
        inputs.append({**told, "copies": copies})
    runner = Runner()
    runner.reference({"path": str(tmp_path / "reference.unity"), "inputs": inputs})
    met: list[tuple[int, ...]] = []
    for _ in range(6):
        runner.in_turn(lambda *arrays: met.append(tuple(map(id, arrays))))
    assert met[:3] == met[3:]
    assert [len({m[k] for m in met}) for k in (0, 1)] == [1, 3]


def test_a_kernel_is_timed_within_its_program(tmp_path: Path) -> None:
    """Its calls there, by turns with the default; what else there is runs as it does."""
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 64]):
    y = R.nn.softmax(R.matmul(x, R.const("w")))
    return R.matmul(y, R.const("v"))
"""
    weights = {name: np.eye(64, dtype=np.float32) * k for k, name in enumerate("wv", 1)}
    module = parse(text, weights)
    found = tasks_of(module, pipeline("cpu"), Context(HERE), [{"n": 8}, {"n": 32}])
    task = next(t for t in found if "matmul" in t.name and dict(t.sizes) == {"n": 8})
    assert {at for _, at in task.places} == {0}
    assert {at for t in found for _, at in t.places} == {0, 1}
    usual = unity.compile(module, threads=1)
    inputs = [[np.ones((n, 64), np.float32)] for n in (8, 32)]
    running = RunningProgram(usual, inputs)
    alone = lower(task.module(), pipeline("cpu"), Context(HERE), None)
    candidate = assemble(alone, "", {})
    (usually, changed) = running.race([[(task.places, candidate)]], KERNEL, 0.0)
    every = {place for t in found for place in t.places}
    assert usually.keys() == changed.keys() == every
    assert all(0 < t < 1 for t in (*usually.values(), *changed.values()))
    softmax = next(t for t in found if "softmax" in t.name)
    ran: list[tuple[bool, tuple[int, ...]]] = []
    own = {id(k) for k in usual.kernel_calls}

    def noted(self: NativeKernel, arrays: Sequence[Array], sizes: Sequence[int]) -> object:
        ran.append((id(self) in own, arrays[-1].shape))
        return 0, 1.0 if id(self) in own else 3.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeKernel, "timed", noted)
        both = [[(task.places, candidate)], [(softmax.places, candidate)]]
        usually, changed, unfit = running.race(both, KERNEL, 60.0)
    assert usually == dict.fromkeys(every, 1.0)
    assert unfit == dict.fromkeys(every - softmax.places, 1.0)
    assert {place for place, t in changed.items() if t == 3.0} == set(task.places)
    assert {shape for is_own, shape in ran if not is_own} == {(8, 64)}
    assert len([1 for is_own, _ in ran if not is_own]) == 300 * task.count


@pytest.mark.skipif(sys.platform != "linux", reason="measures here")
@pytest.mark.long("starts two children, which import the compiler, and compiles a kernel")
def test_a_child_runs_the_program_and_versions_of_it(tmp_path: Path) -> None:
    module = parse(LARGE)
    (task,) = tasks_of(module, pipeline("cpu"), Context(HERE))
    inputs = [[np.ones((128, 256), np.float32), np.ones((256, 64), np.float32)]]

    def build(records: Records) -> unity.Executable:
        return unity.compile(module, HERE, db=records)

    program = saved(build, inputs, tmp_path)
    with Measurer(HERE) as measurer:
        measurer.take_program(program)
        assert measurer.kernels().keys() == set(task.places)
        usual, slow, impossible = measurer.built(
            task,
            [
                Candidate(None),
                Candidate(Schedule(task.func).trace),
                Candidate(Trace.from_json('{"version":2,"steps":[["gone",[],[],null]]}')),
            ],
        )
        assert impossible is None
        assert usual is not None
        assert slow is not None
        times = measurer.within([[(task.places, usual)], [(task.places, slow)]], 0.2)
        assert times is not None
        own, alone, slower = (t[place] for t in times for place in task.places)
        assert own > 0
        assert slower > 3 * alone
        whole = compared(build, Records(), measurer, tmp_path, 0.1)
        assert whole is not None
        assert all(0 < t < 1 for t in whole)
        assert measurer.within([[(task.places, tmp_path / "nothing")]], 0.2) is None
        assert measurer.whole(tmp_path / "nothing", 0.2) is None
        assert measurer.whole(program.path, 0.01) is not None
    with Measurer(HERE) as measurer:
        assert measurer.kernels() == {}
        assert measurer.within([], 0.2) is None


def test_a_candidate_is_called_without_the_temporaries_of_the_kernel_in_whose_place_it_is() -> None:
    text = MATMUL.replace(" 32,", " 512,").replace(" 48", " 512").replace(" 64", " 512")
    module = parse(text.replace("R.nn.relu(R.matmul(x, w))", "R.matmul(x, w)"))
    (task,) = tasks_of(module, pipeline("cpu"), Context(HERE))
    x, w = np.random.default_rng(0).standard_normal((2, 512, 512), np.float32)
    program = unity.compile(module, threads=1)
    assert [k.buffers for k in program.program.kernels] == [4]
    running = RunningProgram(program, [[x, w]])
    for func in (None, Schedule(task.func).kernel()):
        lowered = lower(task.module(func), pipeline("cpu"), Context(HERE), None)
        candidate = assemble(lowered, "", {})
        assert [k.buffers for k in candidate.program.kernels] == [3]
        version = running._version(0, [(task.places, candidate)], KERNEL)
        assert version.times.keys() == {task.name}
        result: Any = version.call(x, w)
        np.testing.assert_allclose(result, x @ w, rtol=1e-3, atol=1e-3)
        assert len(version.times[task.name]) == 1
    others = running._version(0, [(task.places, program)], "matmul")
    assert others.times == {}


def test_arguments_are_written_and_read(tmp_path: Path) -> None:
    given = (np.arange(6, dtype=np.int64).reshape(2, 3), (3, 4), (np.ones(2, np.float16),))
    found: Any = read(json.loads(json.dumps(written(given, tmp_path))))
    array, shape, (half,) = found
    np.testing.assert_array_equal(array, given[0])
    assert shape == (3, 4)
    assert (half.dtype, half.tolist()) == (np.float16, [1.0, 1.0])
