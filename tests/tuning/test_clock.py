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

from unity.tuning import race
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


class Scripted(Clock):
    """A clock that is told what laps take, by the program that ran last."""

    def __init__(self, lap: Callable[[str, int], Lap]) -> None:
        super().__init__()
        self._lap, self._laps, self.last = lap, 0, ""
        self.calls: dict[str, int] = {}

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
        self._laps += 1
        return self._lap(self.last, self._laps)

    def program(self, name: str) -> Callable[[], None]:
        """One that counts its calls."""

        def run() -> None:
            self.last = name
            self.calls[name] = self.calls.get(name, 0) + 1

        return run


def raced(clock: Scripted, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[float]:
    monkeypatch.setattr(race, "Clock", lambda: clock)
    return race.interleaved([clock.program(n) for n in names], (), 0.01, spinning=False)


def test_who_was_only_disturbed_stays_in_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first program is as fast as the second, but is disturbed in its first turns."""

    def lap(name: str, _: int) -> Lap:
        disturbed = name == "unlucky" and clock.calls[name] < 16
        return Lap(0.05 if disturbed else 0.02, disturbed)

    clock = Scripted(lap)
    assert raced(clock, monkeypatch, "unlucky", "lucky") == [0.02, 0.02]


def test_neighbours_in_time_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is fast for one lap of the slower program: its fastest run is the faster one."""

    def lap(name: str, count: int) -> Lap:
        slow = 1.0 if name == "slower" and count == 13 else 2.0
        return Lap(slow * {"slower": 0.01, "faster": 0.009}[name], disturbed=False)

    slower, faster = raced(Scripted(lap), monkeypatch, "slower", "faster")
    assert slower == 0.01
    assert faster / slower == pytest.approx(0.9)


def test_who_is_far_behind_takes_no_further_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Scripted(lambda name, _: Lap(0.05 if name == "far" else 0.02, disturbed=False))
    assert raced(clock, monkeypatch, "usual", "far", "other") == [0.02, 0.05, 0.02]
    assert clock.calls["far"] < clock.calls["other"] == clock.calls["usual"]


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
    monkeypatch.setattr(race, "interleaved", lambda *_, **__: [1.0, left.pop(0)])
    assert race.agreeing([print, print], (), 0.1, 5) == [1.0, taken]
    assert len(ratios) - len(left) == count
