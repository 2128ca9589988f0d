"""Contractions are laid out by steps, over other axes than they were written over, and twice."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered, unscheduled
from tests.transform.schedule.printed import difference
from tests.transform.schedule.test_by_hand import AVX2, AVX512
from tests.transform.tensor.kernels import CPU, assert_same
from unity import te
from unity.ir.dims import Dim, dim
from unity.ir.stmt import IfThen, PrimFunc
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.transform.rules.default import default_rules, default_schedule, schedule
from unity.transform.tactics import packing

N = dim("n")


def grouped() -> PrimFunc:
    """A convolution of single pixels in two groups, and what is done to its result."""
    x, w = te.placeholder((1, 6, 4, 8), "float32", "x"), te.placeholder((4, 3, 1), "float32", "w")
    c, k = te.reduce_axis(3, "c"), te.reduce_axis(1, "k")

    y = te.compute(
        (1, 4, 4, 8),
        lambda n, o, h, v: te.sum(x[n, o // 2 * 3 + c.var, h, v + k.var] * w[o, c, k], [c, k]),
        "y",
    )
    z = te.compute((1, 4, 4, 8), lambda n, o, h, v: te.max_(y[n, o, h, v], 0.0), "z")
    return te.create_prim_func([x, w, z])


def product() -> PrimFunc:
    """A product with rows of unknown number, and what is done to its result."""
    a, b = te.placeholder((N, 9), "float32", "a"), te.placeholder((9, 19), "float32", "b")
    k = te.reduce_axis(9, "k")
    y = te.compute((N, 19), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "y")
    z = te.compute((N, 19), lambda i, j: te.max_(y[i, j], 0.0), "z")
    return te.create_prim_func([a, b, z])


def test_axes_are_parted_and_joined_by_steps() -> None:
    before = grouped()
    sch = default_schedule(before, CPU)
    steps = [step.name for step in sch.trace]
    assert steps.count("transform_block_layout") == 2
    assert_same(before, sch.func, {})
    assert_same(before, lowered(schedule(before, CPU), CPU), {})


def test_few_and_many_rows_are_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROWS", 12), ("DEPTH", 2), ("STRIDE", 8)):
        monkeypatch.setattr(packing, name, value)
    before = product()
    sch = default_schedule(before, CPU)
    assert 'sch.specialize_when("n >= 12", "y", y_reindex)' in sch.trace.to_python()
    for done in (sch.func, schedule(before, CPU)):
        assert any(isinstance(s, IfThen) for s in walk_stmt(done.body))
        low = lowered(done, CPU)
        for n in (0, 1, 4, 11, 12, 19):
            assert_same(before, low, {"n": n})


def test_few_rows_of_columns_that_lie_across_are_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "TRANSPOSED_ROWS", 3)
    a, b = te.placeholder((N, 9), "float32", "a"), te.placeholder((11, 9), "float32", "b")
    k = te.reduce_axis(9, "k")
    y = te.compute((N, 11), lambda i, j: te.sum(a[i, k] * b[j, k], [k]), "y")
    z = te.compute((N, 11), lambda i, j: te.max_(y[i, j], 0.0), "z")
    before = te.create_prim_func([a, b, z])
    (rule,) = default_rules(before, CPU)
    assert (rule.rule, rule.decisions["copied"]) == ("contraction", True)
    sch = default_schedule(before, CPU)
    steps = [step.name for step in sch.trace]
    assert "specialize_when" in steps
    assert "peel" in steps  # of what is summed, where there are few rows
    assert difference(sch.func, schedule(before, CPU)) is None
    for n in (0, 2, 5):
        assert_same(before, sch.func, {"n": n})


def test_a_sum_that_may_trap_is_parted_by_steps() -> None:
    x, z = te.placeholder((3, 5), "int32", "x"), te.placeholder((5,), "int32", "z")
    k = te.reduce_axis(5, "k")
    y = te.compute((6,), lambda o: te.sum(x[o // 2, k.var] // z[k.var], [k]), "y")
    before = te.create_prim_func([x, z, y])
    assert [r.rule for r in default_rules(before, CPU)] == ["plain"]
    sch = default_schedule(before, CPU)
    assert [step.name for step in sch.trace].count("transform_block_layout") == 2
    for done in (sch.func, schedule(before, CPU)):
        assert_same(before, done, {})


@pytest.mark.parametrize(("kernel", "steps"), [(2, 2), (3, 3), (7, 7), (9, 1)])
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["avx2", "avx512"])
def test_a_short_window_stands_in_a_row(kernel: int, steps: int, target: Target) -> None:
    weight = (16, 2, 3, kernel)
    func, _ = unscheduled("nn.conv2d", ((1, 8, 20, 20), weight), {"groups": 4})
    rule = default_rules(func, target)[-1]
    assert (rule.rule, rule.decisions["steps"]) == ("contraction", steps)


@pytest.mark.parametrize(
    ("rows", "columns", "vectors"),
    [(7, 512, 3), (2, 512, 3), (N, 24, 3), (12, 512, 2), (N, 32, 2)],
)
def test_tiles_are_as_wide_as_costs_least(rows: Dim, columns: int, vectors: int) -> None:
    func, _ = unscheduled("matmul", ((rows, 40), (40, columns)), {})
    rule = default_rules(func, AVX2)[-1]
    assert (rule.rule, rule.decisions["vectors"]) == ("contraction", vectors)
    done = schedule(func, AVX2)
    for n in (1, 5) if rows is N else (1,):
        assert_same(func, done, {"n": n} if rows is N else {})
