"""Kernels of unknown sizes are searched as they are at some, and used for all once confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from unity.codegen.assemble import assemble
from unity.codegen.lower import lower
from unity.codegen.workers.child import Child, Message
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.signature import size_params
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.schedule import Schedule, default_schedule
from unity.tuning.cost import PriorModel
from unity.tuning.in_program import settle
from unity.tuning.records import Records
from unity.tuning.session import Session
from unity.tuning.tasks import Task, at_sizes
from unity.tuning.tasks.task import KERNEL
from unity.tuning.timing import inputs_for, sizes_for
from unity.tuning.workers import Candidate, Measured, Measurer
from unity.tuning.workers.runner import USUAL, Timing

from .kernels import MATMUL, ROWS, TARGET, tasks
from .test_tune import Told

POOLED = """
h = dim("h")
@script.function
def main(x: f32[Tensor, 1, 4, (h + 1) // 2, 9]):
    return R.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))
"""
"""Its kernel is told ``h``, which no shape tells."""


def result_of(task: Task, *, fixed: bool) -> Array:
    """What the kernel gives, laid out by default."""
    module = task.module(default_schedule(task.func, TARGET).kernel())
    main = module.graph_functions()["main"]
    inputs = inputs_for(main, sizes_for(main, dict(task.sizes)))
    if fixed:
        module = at_sizes(module, dict(task.sizes))
        assert size_params(module.prim_funcs()[KERNEL]) == ()
    exe = assemble(lower(module, pipeline(), Context(TARGET), None))
    return np.asarray(exe(*inputs))


@pytest.mark.parametrize(("text", "sizes"), [(ROWS, {"n": 21}), (POOLED, {"h": 23})])
def test_a_kernel_computes_the_same_at_its_sizes(text: str, sizes: dict[str, int]) -> None:
    """Also where a size is a parameter of its own."""
    task, *_ = tasks(text, TARGET, **sizes)
    assert task.takes_sizes
    np.testing.assert_array_equal(result_of(task, fixed=True), result_of(task, fixed=False))


def test_what_is_fast_at_its_sizes_is_used_once_it_is_confirmed_for_all() -> None:
    (task,) = tasks(ROWS, n=32)
    (known,) = tasks(MATMUL)
    asked: list[bool] = []

    class Asked(Told):
        def measure(
            self,
            task: Task,
            candidates: Sequence[Candidate],
            timing: Timing = USUAL,
            usual: PrimFunc | None = None,
        ) -> Iterator[Measured]:
            asked.extend(c.at_sizes for c in candidates)
            return super().measure(task, candidates, timing, usual)

    for kernel, fixed in ((task, True), (known, False)):
        asked.clear()
        records = Records()
        session = Session([kernel], records, PriorModel())
        session.run(Asked(0.5), 3, None, lambda progress: None)
        assert asked == [fixed] * 3
        assert session.gained
        assert bool(records.bests()) is not fixed
        session.confirm(Asked(0.6))
        assert not any(asked[3:])
        assert session.used().bests()[0].ratio == 0.6


def test_what_is_not_confirmed_in_time_is_told_of() -> None:
    session = Session(tasks(ROWS, n=32), Records(), PriorModel())
    session.run(Told(0.5), 3, None, lambda progress: None)
    session.set_aside(session.searches)
    assert session.is_short
    assert not session.gained
    assert not session.used().bests()


def test_what_was_not_confirmed_when_it_was_stopped_is_known() -> None:
    """Of known sizes records have it at once."""
    session = Session([*tasks(ROWS, n=32), *tasks(MATMUL)], Records(), PriorModel())
    session.run(Told(0.5), 6, None, lambda progress: None)
    unknown, known = session.searches
    assert unknown.best_ratio == known.best_ratio == 0.5
    assert session.unconfirmed() == [unknown]
    session.confirm(Told(0.6))
    assert session.unconfirmed() == []


@pytest.mark.long("starts the children of a session")
def test_a_session_that_is_stopped_at_the_end_tells_no_gain_that_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Session.run

    def told(session: Session, measurer: Measurer, trials: int | None, *rest: Any) -> None:
        run(session, Told(0.5), trials, *rest)

    def stopped(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "run", told)
    monkeypatch.setattr("unity.tuner.settle", stopped)
    found = unity.tune(parse(ROWS), sizes={"n": 32}, trials=3, threads=1, forms=False)
    assert found.stopped
    assert found.short
    (kernel,) = found.kernels
    assert kernel.after == kernel.before > 0.0


@pytest.mark.parametrize("ratio", [None, 1.2])
def test_what_wins_at_its_sizes_alone_is_not_measured_again_and_again(
    ratio: float | None,
) -> None:
    """All that was faster there is not for all sizes: the kernel is done."""
    session = Session(tasks(ROWS, n=32), Records(), PriorModel())
    session.run(Told(0.5), 3, None, lambda progress: None)
    assert settle(session, Told(ratio)) == []
    assert not session.gained
    assert not session.used().bests()


def test_kernels_for_all_sizes_are_compiled_for_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits: list[float] = []

    def ask(child: Child, request: Mapping[str, object], seconds: float) -> Message:
        limits.append(seconds)
        return {}

    monkeypatch.setattr(Child, "ask", ask)
    measurer = Measurer(TARGET, build_seconds=8.0)
    (task,), (known,) = tasks(ROWS, n=32), tasks(MATMUL)

    def built(of: Task, *, fixed: bool = False) -> str:
        candidate = Candidate(Schedule(of.func).trace, at_sizes=fixed)
        return measurer._built(of, candidate, tmp_path / "none")

    assert [built(task), built(task, fixed=True), built(known)] == [""] * 3
    assert limits == [24.0, 8.0, 8.0]


def test_a_candidate_that_can_not_be_made_for_its_sizes_is_no_candidate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(module: IRModule, sizes: Mapping[str, int]) -> IRModule:
        raise UnityError("not at these sizes")

    monkeypatch.setattr("unity.tuning.workers.measurer.at_sizes", refused)
    (task,) = tasks(ROWS, n=32)
    candidate = Candidate(Schedule(task.func).trace, at_sizes=True, kernel=task.func)
    why = Measurer(TARGET)._built(task, candidate, tmp_path / "none")
    assert why == "compiling: not at these sizes"
