"""Some points of the spaces of kernels that no rule is tested with; what all of them gave."""

from __future__ import annotations

import json

import pytest

from tests.transform.rules.families import FAMILIES

from .samples import KERNELS, RESULTS, row_of


@pytest.mark.rotated(1 / 5)
@pytest.mark.long("lays points of several spaces out, and interprets them")
@pytest.mark.parametrize("kernel", range(len(FAMILIES), len(KERNELS)))
def test_points_compute_what_the_kernel_does(kernel: int) -> None:
    found = row_of(kernel, 3, 2, 5000)
    assert [f for row in found.values() for f in row.failures] == []
    assert sum(row.points + row.long for row in found.values()) > 0


def test_of_all_that_were_interpreted_none_was_wrong() -> None:
    runs = json.loads(RESULTS.read_text())["runs"]
    spaces = {name for run in runs for name in run["spaces"]}
    assert {"rules", "multi_level_tiles", "rows_together", "packed"} <= spaces
    assert [f for run in runs for row in run["spaces"].values() for f in row["failures"]] == []
    for run in runs:
        assert run["points"] == sum(row["points"] for row in run["spaces"].values())
    assert sum(run["points"] for run in runs) >= 2000
