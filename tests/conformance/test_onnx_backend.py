"""What passed of ONNX's backend tests must go on passing: a sample here, all as a slow test."""

from __future__ import annotations

import json
from functools import cache

import pytest

from .isolated import run_isolated
from .suite import LIGHT, OTHER, RESULTS, Case, Status, by_compiler, every_case, status_of

FLOOR: dict[Status, list[str]] = json.loads(RESULTS.read_text())
PASSING = FLOOR["passed"]
SAMPLE = [name for name in PASSING if not name.startswith(LIGHT)][::10]


@cache
def cases() -> dict[str, Case]:
    return every_case()


@pytest.mark.long("the first case reads all of ONNX's own")
@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_still_passes(name: str) -> None:
    status, why = status_of(cases()[name])
    assert status == "passed", why


@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", SAMPLE[::4])
def test_a_sample_passes_compiled(name: str) -> None:
    status, why = status_of(cases()[name], by_compiler)
    assert status == "passed", why


@pytest.mark.slow
def test_all_still_pass() -> None:
    found = run_isolated(cases(), PASSING, status_of)
    assert not {name: why for name, status, why in found if status != "passed"}


def test_the_list_is_long_and_holds_no_failure() -> None:
    assert len(PASSING) >= 2000
    assert FLOOR["failed"] == []
    assert set(FLOOR["other"]) <= OTHER.keys()
