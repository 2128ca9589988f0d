"""Which cases run at which turn, and what a run writes down of what tests take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.costs import seconds_of
from tests.rotation import BUDGET, LONGEST, RAREST, Row, longest, rotate, runs, turns

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("cases", "seconds"), [(1, 4.0), (7, 0.3), (40, 2.5), (3, 0.01)])
def test_in_all_turns_each_case_runs_once(cases: int, seconds: float) -> None:
    count = turns(Row(0, False, cases * seconds))
    ran = [
        (case, turn)
        for turn in range(count)
        for case in range(cases)
        if runs("t", case, turn, count)
    ]
    assert sorted(case for case, _ in ran) == list(range(cases))
    assert len(ran) * seconds / count <= LONGEST or count == RAREST


@pytest.mark.parametrize("count", [50, 2_000])
def test_all_tests_together_take_no_more_than_there_is(count: int) -> None:
    rows = [Row(0, False, 0.01 * (k % 300)) for k in range(count)]
    limit = longest(rows)
    assert sum(row.seconds / turns(row, limit) for row in rows) <= BUDGET
    assert limit == LONGEST or sum(min(row.seconds, limit / 0.8) for row in rows) > BUDGET


class Collected:
    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid, self.marks = nodeid, list(marks)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark.mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks.append(marker)


def test_what_is_marked_and_what_takes_long_is_rotated_but_for_whole_tests() -> None:
    marks = {
        "short": [],
        "long": [],
        "whole": [pytest.mark.whole],
        "marked": [pytest.mark.rotated(1 / 4)],
    }
    ran = dict.fromkeys(marks, 0)
    for turn in range(12):
        items = [Collected(f"{t}[{k}]", *m) for t, m in marks.items() for k in range(6)]
        rotate(items, turn, {"long": LONGEST, "whole": LONGEST})
        for item in items:
            ran[item.nodeid.partition("[")[0]] += item.get_closest_marker("slow") is None
    assert ran == {"short": 72, "long": 12, "whole": 72, "marked": 24}


def test_what_tests_take_is_written_down(tmp_path: Path) -> None:
    """By two processes; what did not run keeps its row."""
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\nfrom tests.costs import Costs\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(Costs(Path(__file__).with_name('costs.json')))\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest, time\n"
        "def spend():\n"
        "    begun = time.process_time()\n"
        "    while time.process_time() < begun + 0.3:\n"
        "        pass\n"
        "@pytest.mark.parametrize('k', range(3))\n"
        "def test_long(k):\n    spend()\n"
        "def test_short():\n    assert False\n"
    )
    stored = tmp_path / "costs.json"
    stored.write_text(json.dumps({"run": {"passed": 1}, "tests": {"other.py::test": [2, 5.0]}}))
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 1
    assert json.loads(stored.read_text())["run"] == {"passed": 1}  # of a whole run alone
    found = seconds_of(stored)
    assert set(found) == {"other.py::test", "test_it.py::test_long"}
    assert found["other.py::test"] == 5.0
    assert 0.3 <= found["test_it.py::test_long"] < 0.6
