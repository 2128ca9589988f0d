"""Children that measure: what breaks, hangs or is wrong there costs its candidate and no more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from unity.codegen.llvm.host import host_target
from unity.codegen.workers.child import Child, ChildError
from unity.transform.schedule import default_schedule
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Trace
from unity.tuning.workers import Candidate, Measurer

from .kernels import MATMUL, tasks

HERE = replace(host_target(), threads=1)


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


@pytest.mark.skipif(sys.platform != "linux", reason="measures here")
@pytest.mark.long("starts two children, which import the compiler, and compiles four kernels")
def test_candidates_are_compiled_compared_and_timed() -> None:
    (task,) = tasks(MATMUL, HERE)
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
