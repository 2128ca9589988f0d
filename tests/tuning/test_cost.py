"""Features and estimates see what makes kernels fast; a model learns what they miss."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from unity.script import parse
from unity.transform.schedule import default_schedule
from unity.transform.schedule.schedule import Schedule
from unity.tuning.cost import FEATURES, LearnedModel, PriorModel, estimated_seconds, features
from unity.tuning.cost.automatic import with_lanes
from unity.tuning.cost.estimate import Costs, costs_of
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
COLUMNS = """
@script.function
def main(x: f32[Tensor, 1024, 1024]) -> f32[Tensor, 1024]:
    return R.sum(x, axis=0)
"""
SHARED = """
@script.prim_func
def main(a: f32[Buffer, 64, 8], c: f32[Buffer, 64, 8, 8]) -> None:
    for i in range(64):
        for j in T.unroll(8):
            for lane in T.vectorized(8):
                with T.block("b"):
                    vi, vj, vk = T.axis.remap("SSS", i, j, lane)
                    c[vi, vj, vk] = T.select({index} < 3, a[vi, vk], 0.0)
"""
STARTED = """
@script.prim_func
def main(a: f32[Buffer, 64, 32], c: f32[Buffer, 64]) -> None:
    for i, k in T.grid(64, 32):
        with T.block("b"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] = c[vi] + a[vi, vk]
"""
CHAINS = """
@script.prim_func
def main(a: f32[Buffer, 512, 32, 8], c: f32[Buffer, 512, 8]) -> None:
{outside}
    for i in range(512):
{inside}
        for k in range(32):
            for lane in T.vectorized(8):
                with T.block("b"):
                    vi, vk, vl = T.axis.remap("SRS", i, k, lane)
                    own[0, vl] = own[0, vl] + a[vi, vk, vl]
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
    fetched = sum(c.moved.traffic[0] for c in costs_of(found, TARGET))
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


def test_a_sum_begins_once() -> None:
    begun, summed = leaves(parse(STARTED).prim_funcs()["main"], {})
    assert (begun.iterations, summed.iterations) == (64, 64 * 32)


def test_what_does_not_hang_on_a_loop_is_done_once() -> None:
    """Of a condition on the row the unrolled loop needs none of its own; all lanes have one."""

    def counted(index: str) -> tuple[float, float]:
        (leaf,) = leaves(parse(SHARED.format(index=index)).prim_funcs()["main"], {})
        return leaf.instructions

    index = 2  # of 64 bits
    select = 64 * 8 * 8  # it loads what hangs on lanes
    assert counted("vi") == (select // 8, 64 * index)
    assert counted("vj") == (select, 8 * index)
    assert counted("vk") == (select // 8 + 8 * index, 0)


def test_loops_that_go_through_memory_in_order_have_lanes_without_being_asked() -> None:
    """A sum along rows as it was written is not far behind one in lanes; down columns it is."""
    (rows,) = tasks(SUMMED)
    (columns,) = tasks(COLUMNS)
    (kept,) = leaves(columns.func, {})[1:]
    (summed,) = leaves(rows.func, {})[1:]
    assert with_lanes(kept, TARGET) is kept
    assert [(x.extent, x.kind) for x in with_lanes(summed, TARGET).loops] == [
        (512, "serial"), (32, "serial"), (4, "unrolled"), (8, "vectorized"),
    ]  # fmt: skip
    usual = default_schedule(rows.func, TARGET).func
    assert estimated_seconds(rows.func, TARGET, {}) < 3 * estimated_seconds(usual, TARGET, {})


def test_sums_in_memory_of_their_own_do_not_wait_for_each_other() -> None:
    memory = 'own = T.alloc((1, 8), "float32", scope="local")'

    def chain(**where: str) -> float:
        text = CHAINS.format(**{"outside": "", "inside": "", **where})
        (costs,) = costs_of(leaves(parse(text).prim_funcs()["main"], {}), TARGET)
        return costs.parts[2]

    assert chain(outside=f"    {memory}") > 4 * chain(inside=f"        {memory}")


def test_what_fits_a_cache_was_there_before() -> None:
    """Rows of 1024 numbers: 16 of them fit the second cache, 512 the last, 16384 none."""

    def traffic(rows: int) -> tuple[bool, bool]:
        (task,) = tasks(SUMMED.replace("512", str(rows)))
        found = costs_of(leaves(task.func, {}), TARGET)
        second, last = (sum(c.moved.traffic[k] for c in found) for k in (1, 2))
        return second > 0, last > 0

    assert traffic(16) == (False, False)
    assert traffic(512) == (True, False)
    assert traffic(16384) == (True, True)


def test_narrow_columns_of_many_pages_are_waited_for() -> None:
    """Each row is another page: a tile of 16 columns jumps 16 times as often as one of 256."""
    (task,) = tasks(COLUMNS)

    def summed(columns: int) -> Costs:
        sch = Schedule(task.func, TARGET)
        column, rows = sch.get_loops("b0")
        outer, inner = sch.split(column, [None, columns])
        registers, lane = sch.split(inner, [None, 8])
        sch.reorder(outer, rows, registers, lane)
        sch.vectorize(lane)
        return costs_of(leaves(sch.func, {}), TARGET)[-1]

    narrow, wide = summed(16), summed(256)
    assert narrow.moved.jumps == pytest.approx(16 * wide.moved.jumps, rel=0.1)
    assert narrow.parts[4] > 10 * wide.parts[4] > 0


def test_more_rows_at_once_than_a_set_has_lines_miss() -> None:
    """Rows of 4096 bytes: eight of them are read in turns from one set, sixteen are not."""
    (task,) = tasks(SUMMED)

    def misses(rows: int) -> float:
        sch = Schedule(task.func, TARGET)
        row, summed = sch.get_loops("b0")
        outer, inner = sch.split(row, [None, rows])
        sch.reorder(outer, summed, inner)
        sch.unroll(inner)
        return costs_of(leaves(sch.func, {}), TARGET)[-1].moved.misses

    assert misses(8) == 0
    assert misses(16) == 512 * 1024


def test_columns_half_a_page_apart_do_not_stay_in_a_cache() -> None:
    """Of 128 lines that lie 512 numbers apart 64 share a set; 528 apart all find a place."""

    def fetched(columns: int) -> float:
        text = MATMUL.replace(" 32,", " 64,").replace(" 48", " 128").replace(" 64]", f" {columns}]")
        (task,) = tasks(text)
        sch = Schedule(task.func, TARGET)
        i, j, k = sch.get_loops("b0")
        outer, inner = sch.split(j, [None, 16])
        sch.reorder(outer, i, k, inner)
        sch.vectorize(inner)
        product = costs_of(leaves(sch.func, {}), TARGET)[1]
        return product.moved.traffic[0] / columns

    assert fetched(512) > 4 * fetched(528)


def test_features_tell_temporaries_and_shares() -> None:
    """Whole results of one block for the next are asked of the system; those of a row are not."""
    (task,) = tasks(ROWS, n=4096)
    told = dict(zip(FEATURES, features(task.func, TARGET, {"n": 4096}), strict=True))
    usual = default_schedule(task.func, TARGET).func
    less = dict(zip(FEATURES, features(usual, TARGET, {"n": 4096}), strict=True))
    assert told["temporaries"] > 20 > less["temporaries"]
    for each in (told, less):
        parts = [each[name] for name in FEATURES if name.startswith("share: ") and "(" not in name]
        assert len(parts) == 6
        assert sum(parts) >= 1.0
        assert 0.0 < each["share (second)"] <= each["share (first)"] <= 1.0


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


@pytest.mark.tuning
def test_a_few_disturbed_measurements_teach_little() -> None:
    """One in sixteen candidates that took a thousand times as long changes no order."""
    rows, seconds = made_up(160, 0)
    calm, disturbed = LearnedModel(), LearnedModel()
    for k, (row, took) in enumerate(zip(rows, seconds, strict=True)):
        calm.add("seen", row, took)
        disturbed.add("seen", row, took if k % 16 else 1000 * took)
    others, _ = made_up(60, 1)
    a, b = (m.predict("seen", others) for m in (calm, disturbed))
    assert np.corrcoef(a, b)[0, 1] > 0.97
