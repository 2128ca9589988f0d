"""Features and estimates see what makes kernels fast; a model learns what they miss."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from unity.script import parse
from unity.transform.schedule import default_schedule
from unity.transform.schedule.schedule import Schedule
from unity.tuning.cost import FEATURES, LearnedModel, PriorModel, estimated_seconds, features
from unity.tuning.cost.estimate import costs_of
from unity.tuning.cost.features import Features
from unity.tuning.cost.leaves import leaves
from unity.tuning.spaces import ProgramSpace, multi_level_tiles

from .kernels import MATMUL, ROWS, TARGET, tasks

SUMMED = """
@script.function
def main(x: f32[Tensor, 512, 1024]) -> f32[Tensor, 512]:
    return R.sum(x, axis=1)
"""
FIRST = """
@script.prim_func
def main(a: f32[Buffer, 12], c: f32[Buffer, 12]) -> None:
    for i in range(8):
        for lane in T.vectorized(16):
            with T.block("b"):
                vi = T.axis.spatial(12, lane)
                T.where(i < 2 and lane < 12)
                c[vi] = a[vi]
"""
(PRODUCT,) = tasks(MATMUL.replace(" 32,", " 128,").replace("48", "256"))


def test_leaves_tell_loops_and_how_indices_move() -> None:
    (product, relu) = leaves(PRODUCT.func, {})[1:]
    assert [x.extent for x in product.loops] == [128, 64, 256]
    steps = {a.buffer.name: a.steps for a in product.accesses}
    assert steps["x"] == ((1, 0), (0, 0), (0, 1))
    assert steps["w"] == ((0, 0), (0, 1), (1, 0))
    assert (product.iterations, relu.iterations) == (128 * 64 * 256, 128 * 64)


def test_split_loops_move_by_whole_tiles() -> None:
    sch = Schedule(PRODUCT.func)
    i, _, _ = sch.get_loops("b0")
    sch.split(i, [None, 8])
    (product, _) = leaves(sch.func, {})[1:]
    steps = {a.buffer.name: a.steps for a in product.accesses}
    assert [x.extent for x in product.loops] == [16, 8, 64, 256]
    assert steps["x"] == ((8, 0), (1, 0), (0, 0), (0, 1))


def test_sizes_are_what_is_given() -> None:
    (task,) = tasks(ROWS)
    assert leaves(task.func, {"n": 7})[0].extents[0] == 7


def test_the_default_is_estimated_far_below_loops_as_written() -> None:
    usual = default_schedule(PRODUCT.func, TARGET).func
    assert 8 * estimated_seconds(usual, TARGET, {}) < estimated_seconds(PRODUCT.func, TARGET, {})


def test_what_is_allocated_in_a_loop_is_memory_of_one_iteration() -> None:
    """So sums of a row that lie in registers cost nothing, and what was read is not fetched."""
    (task,) = tasks(ROWS, n=4096)
    usual = default_schedule(task.func, TARGET).func
    found = leaves(usual, {"n": 4096})
    inside = [a for leaf in found for a in leaf.accesses if a.local]
    assert inside
    assert all(not any(a.steps[0]) for a in inside)
    fetched = sum(c.traffic[0] for c in costs_of(found, TARGET))
    assert fetched < 2.5 * 4096 * 96 * 4  # read once, written once


def test_only_the_iterations_that_run_count() -> None:
    (first,) = leaves(parse(FIRST).prim_funcs()["main"], {})
    assert (first.extents, first.guards, first.lane_guards) == ((2, 16), 1, 1)


def test_lanes_that_share_a_set_of_the_first_cache_are_dear() -> None:
    """16 rows of 4096 bytes lie in one set of 8 lines; 16 of 4160 in as many sets."""

    def estimated(columns: int) -> float:
        (task,) = tasks(SUMMED.replace("1024", str(columns)))
        sch = Schedule(task.func, TARGET)
        rows, summed = sch.get_loops("b0")
        _, lanes = sch.split(rows, [None, 16])
        sch.reorder(summed, lanes)
        sch.vectorize(lanes)
        return estimated_seconds(sch.func, TARGET, {}) / columns

    assert estimated(1024) > 2 * estimated(1040)


def test_features_are_finite_and_of_one_length() -> None:
    space = ProgramSpace(PRODUCT.func, TARGET, multi_level_tiles)
    for seed in range(4):
        point = space.sample(Random(seed))
        assert point is not None
        row = features(space.schedule(point).func, TARGET, {})
        assert row.shape == (len(FEATURES),)
        assert np.isfinite(row).all()


def made_up(count: int, seed: int) -> tuple[list[Features], list[float]]:
    """Candidates whose time hangs on one feature that the estimate does not know of."""
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(0, 8, len(FEATURES)).astype(np.float32) for _ in range(count)]
    return rows, [float(2.0 ** (row[-1] + 2 * (row[3] > 4))) for row in rows]


@pytest.mark.tuning
def test_a_model_learns_what_the_estimate_misses() -> None:
    model = LearnedModel()
    for row, took in zip(*made_up(120, 0), strict=True):
        model.add("seen", row, took)
    rows, seconds = made_up(60, 1)
    taken = np.log2(seconds)

    def rank(scores: np.ndarray) -> float:
        a, b = (np.argsort(np.argsort(x)) for x in (scores, taken))
        return float(np.corrcoef(a, b)[0, 1])

    prior = rank(PriorModel().predict("unseen", rows))
    assert rank(model.predict("seen", rows)) > max(0.97, prior)
    assert prior < rank(model.predict("unseen", rows)) < rank(model.predict("seen", rows))
