"""How long tests take: what `rotation` goes by, and the record of a whole run.

With ``--costs`` a run leaves in ``costs.json``, for each test that took long enough to count, how
many of its cases ran and the seconds of CPU that one of them takes, its processes included. Rows of
tests that did not run stay. Of a run of everything it says, too, what became of the cases.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from pathlib import Path

import pytest

FILE = Path(__file__).with_suffix(".json")
LEAST = 0.1
"""Seconds that the cases of a test took of a run, for a row of its own."""


def seconds_of(file: Path = FILE) -> Mapping[str, float]:
    """Seconds of CPU that a case takes, by test."""
    return {test: seconds for test, (_, seconds) in _stored(file)[1].items()}


def _stored(file: Path) -> tuple[dict[str, int | str], dict[str, tuple[int, float]]]:
    """What became of the cases of a whole run; by test, how many cases ran and what one takes."""
    if not file.exists():
        return {}, {}
    read = json.loads(file.read_text())
    return read["run"], {test: (count, seconds) for test, (count, seconds) in read["tests"].items()}


def without_case(case: str) -> str:
    """The id of a test, of that of one of its cases.

    >>> without_case("tests/op/test_sort.py::test_rows[f32-3]")
    'tests/op/test_sort.py::test_rows'
    """
    return case.partition("[")[0]


def unknown(took: Iterable[tuple[str, float]], known: Collection[str], least: float) -> list[str]:
    """Tests that took longer than some seconds and have no row, the longest first.

    Args:
        took: Case by case, in as many parts as one likes, what each took.
        known: Tests with a row.
        least: The seconds.

    >>> parts = [("a.py::t[0]", 0.4), ("a.py::t[1]", 0.3), ("a.py::u", 9.0), ("a.py::v", 0.1)]
    >>> unknown(parts, {"a.py::u"}, 0.5)
    ['a.py::t']
    """
    sums: dict[str, float] = {}
    for case, seconds in took:
        test = without_case(case)
        sums[test] = sums.get(test, 0.0) + seconds
    new = [test for test, seconds in sums.items() if seconds > least and test not in known]
    return sorted(new, key=lambda test: -sums[test])


def is_of_everything(config: pytest.Config) -> bool:
    """Whether nobody named the files to run."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def _spent() -> float:
    """Seconds of CPU of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Costs:
    """A plugin of pytest's that takes times where tests run, and adds them up in the parent."""

    def __init__(self, file: Path = FILE) -> None:
        self.file = file
        self.begun = 0.0
        self.seconds: dict[str, float] = {}
        self.cases: dict[str, set[str]] = {}
        self.outcomes = Counter[str]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """A test begins."""
        self.begun = _spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say what the phase that ends took."""
        report = yield
        now = _spent()
        report.user_properties.append(("cpu", now - self.begun))
        self.begun = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what a phase took; where tests run in several processes, in their parent."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
        test = without_case(report.nodeid)
        took = sum(float(str(v)) for k, v in report.user_properties if k == "cpu")
        self.seconds[test] = self.seconds.get(test, 0.0) + took
        self.cases.setdefault(test, set()).add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file, in the parent; what a run that was broken off took counts, too."""
        config = session.config
        if hasattr(config, "workerinput"):
            return
        ran, before = _stored(self.file)
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ended and is_of_everything(config):
            ran = {"which": str(config.getoption("-m")), **dict(sorted(self.outcomes.items()))}
        rows = {test: row for test, row in before.items() if test not in self.cases}
        for test, seconds in self.seconds.items():
            if seconds >= LEAST:
                count = len(self.cases[test])
                rows[test] = (count, float(f"{seconds / count:.2g}"))
        lines = ",\n".join(f"  {json.dumps(t)}: {json.dumps(r)}" for t, r in sorted(rows.items()))
        text = f'{{\n "run": {json.dumps(ran)},\n "tests": {{\n{lines}\n }}\n}}\n'
        self.file.write_text(text)
