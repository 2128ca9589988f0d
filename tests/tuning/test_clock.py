"""Timing on a busy machine: runs that waited for a cpu are known, and don't count beside others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import pytest

from unity.tuning import timing
from unity.tuning.clock import Clock, Fastest, Lap


def test_sleep_counts() -> None:
    with Clock() as clock:
        plain, begin = time.perf_counter(), clock.mark()
        time.sleep(0.02)
        lap, whole = clock.since(begin), time.perf_counter() - plain
    assert 0.019 <= lap.seconds <= whole


@pytest.fixture(name="crowded")
def crowded_of() -> Iterator[None]:
    """This thread on one cpu, which another process is busy on."""
    if sys.platform != "linux" or not hasattr(os, "sched_setaffinity"):
        pytest.skip("Linux tells what threads wait")
    before = os.sched_getaffinity(0)
    cpu = max(before)
    busy = f"import os\nos.sched_setaffinity(0, [{cpu}])\nprint(flush=True)\nwhile True: pass"
    other = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        other.kill()
        other.wait()
        other.stdout.close()


@pytest.mark.usefixtures("crowded")
def test_waiting_for_a_cpu_is_known_and_does_not_count() -> None:
    with Clock() as clock:
        begin, plain = clock.mark(), time.perf_counter()
        while time.thread_time() - begin.computed < 0.1:
            pass
        lap, whole = clock.since(begin), time.perf_counter() - plain
    assert lap.disturbed
    assert 0.1 <= lap.seconds < 0.9 * whole


def test_undisturbed_laps_are_believed_before_faster_ones() -> None:
    fastest = Fastest()
    assert fastest.seconds == float("inf")
    fastest.add(Lap(4.0, disturbed=True), 2)
    assert (fastest.seconds, fastest.undisturbed) == (2.0, 0)
    for lap in (Lap(3.0, disturbed=False), Lap(2.5, disturbed=False), Lap(1.0, disturbed=True)):
        fastest.add(lap)
    assert (fastest.seconds, fastest.undisturbed, fastest.laps) == (2.5, 2, 4)


def test_who_was_only_disturbed_stays_in_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first program is as fast as the second, but is disturbed in its first turns."""
    calls = {"unlucky": 0, "lucky": 0}
    last = ""

    def program(name: str) -> Callable[[], None]:
        def run() -> None:
            nonlocal last
            last = name
            calls[name] += 1

        return run

    class Scripted(Clock):
        def __enter__(self) -> Self:
            return self

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            """Nothing was opened."""

        def since(self, begin: object) -> Lap:
            disturbed = last == "unlucky" and calls[last] < 16
            return Lap(0.05 if disturbed else 0.02, disturbed)

    monkeypatch.setattr(timing, "Clock", Scripted)
    monkeypatch.setattr(timing, "_PAUSE", 0.0)
    assert timing.interleaved([program("unlucky"), program("lucky")], (), 0.01) == [0.02, 0.02]


@pytest.mark.parametrize(
    ("ratios", "taken", "count"),
    [
        ([1.0, 1.01], 1.0, 2),
        ([2.0, 0.9, 0.905, 0.5], 0.9, 3),
        ([2.0, 1.0, 0.5, 3.0, 0.7, 9.0], 1.0, 5),
    ],
    ids=["at once", "the first was wrong", "none agree"],
)
def test_races_are_repeated_until_two_agree(
    ratios: list[float], taken: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(ratios)
    monkeypatch.setattr(timing, "interleaved", lambda *_: [1.0, left.pop(0)])
    assert timing.agreeing([print, print], (), 0.1, 5) == [1.0, taken]
    assert len(ratios) - len(left) == count
