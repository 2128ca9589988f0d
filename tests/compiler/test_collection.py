"""The cycle collector while compiling, and what is left of compiling after it."""

from __future__ import annotations

import gc

import pytest

import unity.collection
from unity.collection import no_cycle_collection


class Collector:
    """A collector that has frozen so many objects, and notes what it is asked."""

    def __init__(self, frozen: int) -> None:
        self.frozen, self.asked = frozen, list[str]()

    def get_freeze_count(self) -> int:
        self.asked.append("count")
        return self.frozen

    def freeze(self) -> None:
        self.asked.append("freeze")

    def unfreeze(self) -> None:
        self.asked.append("unfreeze")


@pytest.mark.parametrize(
    ("frozen", "asked"), [(0, ["count", "freeze", "unfreeze"] * 2), (9, ["count"])]
)
def test_what_a_program_froze_stays_frozen_and_is_counted_once(
    frozen: int, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector(frozen)
    for name in ("get_freeze_count", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, getattr(collector, name))
    monkeypatch.setattr(unity.collection, "_freezes", False)
    for _ in range(2):
        with no_cycle_collection():
            assert not gc.isenabled()
    assert collector.asked == asked
    assert gc.isenabled()
