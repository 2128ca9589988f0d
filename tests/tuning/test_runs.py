"""Programs that are measured whole run in a child: what crashes there costs itself alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import unity
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
