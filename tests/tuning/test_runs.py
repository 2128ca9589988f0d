"""Programs that are measured whole run in a child: what crashes there costs itself alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.codegen.workers.child import Child, Message
from unity.errors import UnityError
from unity.script import parse
from unity.tuning.agreement import TOLERANCE
from unity.tuning.runs import ProgramRuns, RunsHere, RunsInChild

from .kernels import DOUBLED

INPUTS = [[np.linspace(0, 1, 64, dtype=np.float32).reshape(4, 16)]]
WRONG = DOUBLED.replace("* 2.0", "* 2.5")
CRASHING = DOUBLED.replace(
    "    for i, j", "    c[T.cast('int64', a[1, 1]) + 17592186044416, 0] = 0.0\n    for i, j"
)
"""It writes where no memory is."""


def compiled(text: str) -> unity.Executable:
    return unity.compile(parse(text), threads=1)


def here(folder: Path) -> ProgramRuns:
    del folder
    return RunsHere(lambda: INPUTS, TOLERANCE)


def in_child(folder: Path) -> ProgramRuns:
    return RunsInChild(lambda: INPUTS, TOLERANCE, folder)


@pytest.mark.parametrize("made", [here, in_child])
def test_results_are_compared_and_all_are_timed(
    made: Callable[[Path], ProgramRuns], tmp_path: Path
) -> None:
    runs = made(tmp_path)
    assert runs.take("tir", compiled(DOUBLED)) is None
    assert "differs from ours by 0.25" in str(runs.take("wrong", compiled(WRONG)))
    assert runs.take("again", compiled(DOUBLED)) is None
    runs.run("tir")
    assert all(0.0 < t < 10.0 for t in runs.times(["tir", "again"], 0.01))
    calls = runs.kernels(["tir", "again"])
    assert [[label for label, _ in each] for each in calls] == [[calls[0][0][0]]] * 2
    runs.forget()
    assert not list(tmp_path.glob("*.unity"))


@pytest.mark.skipif(sys.platform != "linux", reason="tells signals")
def test_what_crashes_leaves_the_others_to_run(tmp_path: Path) -> None:
    runs = in_child(tmp_path)
    assert runs.take("tir", compiled(DOUBLED)) is None
    with pytest.raises(UnityError, match="running: ended by signal 11"):
        runs.take("crashes", compiled(CRASHING))
    (seconds,) = runs.times(["tir"], 0.01)
    assert seconds < 10.0
    assert runs.times(["tir", "crashes"], 0.01) == [float("inf")] * 2
    assert runs.kernels(["crashes"]) == [[]]
    runs.forget()


@pytest.mark.skipif(sys.platform != "linux", reason="kills a process by its id")
@pytest.mark.long("starts three children, which import the compiler")
def test_a_child_that_died_idle_is_told_again_what_results_are(tmp_path: Path) -> None:
    runs = RunsInChild(lambda: INPUTS, TOLERANCE, tmp_path)

    def killed() -> None:
        process = runs._child._process
        assert process is not None
        process.kill()
        process.wait()

    assert runs.take("tir", compiled(DOUBLED)) is None
    killed()
    assert "differs from ours by 0.25" in str(runs.take("wrong", compiled(WRONG)))
    killed()
    (seconds,) = runs.times(["tir"], 0.01)
    assert seconds < 10.0
    runs.forget()


def test_where_nothing_can_be_written_a_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(value: object, folder: Path) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unity.tuning.runs.in_child.written", full)
    runs = in_child(tmp_path)
    with pytest.raises(UnityError, match="arguments can't be written: No space left"):
        runs.take("tir", compiled(DOUBLED))
    runs.forget()


def test_what_is_wrong_when_a_child_is_told_again_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another child finds the program's file gone: it does not time what it does not have."""
    answers: dict[str, Message] = {"begin": {}, "take": {"wrong": None}, "times": {"times": [1.0]}}

    def ask(child: Child, request: Mapping[str, object], seconds: float) -> Message:
        return dict(answers[str(request["do"])])

    monkeypatch.setattr(Child, "ask", ask)
    monkeypatch.setattr(Child, "start", lambda child: None)
    runs = RunsInChild(lambda: INPUTS, TOLERANCE, tmp_path)
    runs._child.started = 1
    assert runs.take("tir", compiled(DOUBLED)) is None
    wrong: tuple[Message, ...] = ({"error": "no file"}, {"wrong": "it differs"})
    for answer in wrong:
        answers["take"] = answer
        runs._child.started += 1
        assert runs.times(["tir"], 0.01) == [float("inf")]
    answers["take"] = {"wrong": None}
    assert runs.times(["tir"], 0.01) == [1.0]
    runs.forget()
