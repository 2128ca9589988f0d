"""The site's tables have all that there is: every pass, step of schedules, operator, mistake."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import unity
from docs import generate
from unity.op.table import OPS
from unity.transform.schedule import Schedule
from unity.transform.schedule.arguments import is_step

DOCS = Path(__file__).parents[2] / "docs"


def test_every_pass_has_a_row() -> None:
    page = generate.passes()
    files = [f for f in (DOCS.parent / "transform").rglob("*.py") if "(Pass):" in f.read_text()]
    defined = {n for f in files for n in re.findall(r"^class (\w+)\(Pass\):", f.read_text(), re.M)}
    assert len(defined) > 40
    assert [name for name in sorted(defined) if f"`{name}`" not in page] == []


def test_every_step_of_schedules_has_a_row() -> None:
    page = generate.schedule_steps()
    steps = {n for n, m in inspect.getmembers(Schedule, inspect.isfunction) if is_step(m)}
    assert len(steps) > 40
    assert [name for name in sorted(steps) if f"`{name}(" not in page] == []


def test_every_operator_has_a_row() -> None:
    page = generate.operators().replace("\\|", "|")
    assert [name for name, row in OPS.items() if f"`R.{row.usage}`" not in page] == []


def test_differences_from_relax_are_those_of_the_table_that_reads_it() -> None:
    page = generate.relax()
    row = next(line for line in page.splitlines() if line.startswith("| `R.topk("))
    assert "`dtype`: int64 by default, there 'int32'" in row
    assert "`k`: required by default, there 1" in row
    assert not [line for line in page.splitlines() if line.startswith("| `R.nn.relu(")]


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    names = [n for n in unity.__all__ if not n.startswith("__")]
    assert [n for n in names if f":: unity.{n}\n" not in page] == []
