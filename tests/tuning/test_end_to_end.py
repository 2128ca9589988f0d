"""Sessions with real kernels in real children, from what is asked for to the program as tuned."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from unity.script import parse
from unity.transform.schedule import Schedule, TensorIntrinsic, register_intrinsic
from unity.transform.schedule.intrinsics import INTRINSICS
from unity.tuning.records import Records
from unity.tuning.workers import LocalRunner, measurer

from .kernels import DOUBLED, EIGHT, MATMUL, ROWS, rows_at_once
from .test_tune import by_hand

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="measures here"),
    pytest.mark.rotated(1 / 2),
    pytest.mark.long("measures in children, which import the compiler"),
]
RNG = np.random.default_rng(0)
OF_EIGHT = DOUBLED.replace(" 16", " 8")
ODD = {
    "fine": ("", "2.0"),
    "wrong": ("", "3.0"),
    "hangs": ("    while a[0] == a[0]:\n        c[0] = a[0]", "2.0"),
    "crashes": ("    c[T.cast('int64', a[0]) + 17592186044416] = 0.0", "2.0"),
}


@pytest.fixture(name="odd")
def odd_of() -> Iterator[list[str]]:
    """Intrinsics that say that they double, the names of which tell what they do."""
    for name, (does, factor) in ODD.items():
        made = parse(EIGHT.format(does=does, factor=factor)).prim_funcs()
        register_intrinsic(f"test_{name}", TensorIntrinsic(made["said"], made["done"]))
    yield [*ODD]
    for name in ODD:
        del INTRINSICS[f"test_{name}"]


def test_what_hangs_crashes_or_is_wrong_costs_its_candidate_alone(
    odd: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = partial(LocalRunner, seconds=30.0)  # what is fine gets there on a busy machine, too
    monkeypatch.setattr(measurer, "LocalRunner", patience)

    def by_intrinsic(sch: Schedule) -> None:
        which = sch.sample_categorical([*range(len(odd))], [1 / len(odd)] * len(odd))
        _, row = sch.get_loops("b0")
        sch.tensorize(row, f"test_{odd[which]}")

    db = tmp_path / "db.jsonl"
    found = unity.tune(
        parse(OF_EIGHT), threads=1, trials=40, db=db, spaces=[by_intrinsic], rules=False,
        strategy="random",
    )  # fmt: skip
    trials = [t for t in Records(db).trials() if t.space == "by_intrinsic"]
    told = {odd[int(t.point.strip("[]"))]: t for t in trials}
    assert set(told) == set(odd)
    assert told["fine"].seconds is not None
    assert {name: told[name].why for name in ("hangs", "crashes")} == {
        "hangs": "running: no answer in 30 s", "crashes": "running: ended by signal 11",
    }  # fmt: skip
    assert "differs" in told["wrong"].why
    assert found.trials == len(Records(db).trials())
    x = RNG.standard_normal((4, 8), np.float32)
    np.testing.assert_array_equal(unity.compile(parse(OF_EIGHT), threads=1, db=db)(x), x * 2)


@pytest.mark.parametrize("strategy", ["evolution", "annealing", "random"])
def test_strategies_search_and_keep(strategy: str, tmp_path: Path) -> None:
    db = tmp_path / "db.jsonl"
    found = unity.tune(parse(MATMUL), threads=1, trials=12, db=db, strategy=strategy, seed=1)
    trials = Records(db).trials()
    assert found.trials == len(trials) == 12
    assert len({(t.space, t.point) for t in trials}) == 12
    assert sum(t.seconds is not None for t in trials) > 6
    x, w = (RNG.standard_normal(s, np.float32) for s in ((32, 48), (48, 64)))
    tuned: Any = unity.compile(parse(MATMUL), threads=1, db=db)
    np.testing.assert_allclose(tuned(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def test_a_kernel_is_tuned_for_several_sizes(tmp_path: Path) -> None:
    db = tmp_path / "db.jsonl"
    found = unity.tune(parse(ROWS), threads=1, trials=8, db=db, sizes={"n": (4, 200)})
    assert {k.sizes for k in found.kernels} == {(("n", 4),), (("n", 200),)}
    assert {t.sizes for t in Records(db).trials()} == {(("n", 4),), (("n", 200),)}
    tuned: Any = unity.compile(parse(ROWS), threads=1, db=db)
    usual: Any = unity.compile(parse(ROWS), threads=1)
    for n in (1, 4, 27, 28, 29, 200, 300):
        x = RNG.standard_normal((n, 96), np.float32)
        np.testing.assert_allclose(tuned(x), usual(x), rtol=1e-4, atol=1e-6)


def test_sites_are_measured_beside_kernels_that_are_tuned(tmp_path: Path) -> None:
    """By records, or without: what was decided with the ones does not hold without them."""
    module, cache = parse(MATMUL), tmp_path / "cache"
    records, _ = by_hand(MATMUL, rows_at_once)
    x, w = (RNG.standard_normal(s, np.float32) for s in ((32, 48), (48, 64)))
    for _ in range(2):  # the second time what was decided is known
        tuned: Any = unity.compile(module, threads=1, resolve="measure", db=records, cache=cache)
        usual: Any = unity.compile(module, threads=1, resolve="measure", cache=cache)
        for exe in (tuned, usual):
            np.testing.assert_allclose(exe(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)
        told = tuned.explain()
        assert told.roads
        chosen = {row.op: row.choice for row in told}
        ours = chosen["matmul"].startswith("tir")
        assert (chosen["matmul"] == "tir:tuned") == ours == any("is tuned" in n for n in told.notes)
        assert not any(row.choice == "tir:tuned" for row in usual.explain())
