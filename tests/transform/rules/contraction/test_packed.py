"""Products over panels by steps of a schedule: tiles that use the registers, what is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.tensor.kernels import assert_same
from unity.ir.equality import first_difference
from unity.machine.target import Target
from unity.script import parse
from unity.transform.schedule import AppliedRule, Schedule, default_rules, default_schedule

from ..kernels import unscheduled
from .test_panels import SHORT, SHORTEST, TARGETS, WIDE, kernel


def packed(rows: int, target: Target, depth: int = 64, panels: int = 4) -> AppliedRule:
    """The rule on a product whose panels are as wide as a target's tiles."""
    width = (4 if target.vector_registers == 32 else 2) * target.vector_bits // 32
    func = kernel((rows, depth), (panels, depth, width), panels * width)
    (rule,) = default_rules(func, target)
    assert rule.rule == "packed"
    return rule


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 2, 4, 128])
def test_sums_fit_the_registers_and_keep_them_busy(target: Target, rows: int) -> None:
    vectors = 4 if target.vector_registers == 32 else 2
    how = packed(rows, target).decisions
    held = how["rows"] * vectors * how["sums"]
    assert held + vectors + 1 <= target.vector_registers
    assert held >= 8 or how["rows"] * vectors > 4
    if rows == 128:
        assert how["rows"] == (target.vector_registers - 1 - vectors) // vectors


@pytest.mark.parametrize(("rows", "asks"), [(3, 0), (4, 1), (12, 1)])
def test_weights_from_afar_are_asked_for(rows: int, asks: int) -> None:
    func = kernel((rows, 64), (3, 64, 64), 192)
    little = replace(WIDE, l2_bytes=64 << 10)
    steps = [step.name for step in default_schedule(func, little).trace]
    assert steps.count("prefetch") == asks
    assert ("fuse_siblings" in steps) is (rows == 12)  # a share for each of two tiles
    assert "prefetch" not in {step.name for step in default_schedule(func, WIDE).trace}


def test_steps_are_taken_in_runs_where_two_panels_fill_the_cache() -> None:
    small = replace(SHORTEST, l2_bytes=4 << 10)
    how = packed(12, small, depth=128).decisions
    assert how["runs"] > 1
    assert packed(12, SHORTEST, depth=128).decisions["runs"] == 1
    func = kernel((12, 128), (2, 128, 8), 13)
    assert_same(func, default_schedule(func, small).func, {})


EPILOGUE = """
@script.prim_func
def main(
    x: f32[Buffer, {m}, 32], w: f32[Buffer, 2, 32, 16], b: f32[Buffer, 32], y: f32[Buffer, {m}, 32]
) -> None:
    t = T.alloc(({m}, 32), "float32")
    for i, j, k in T.grid({m}, 32, 32):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                t[vi, vj] = 0.0
            t[vi, vj] += x[vi, vk] * w[vj // 16, vk, vj % 16]
    for i, j in T.grid({m}, 32):
        with T.block("swish"):
            vi, vj = T.axis.remap("SS", i, j)
            z = T.let(t[vi, vj] + b[vj])
            y[vi, vj] = z * T.sigmoid(z)
"""


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_a_product_with_an_epilogue_is_a_program(rows: int) -> None:
    func = parse(EPILOGUE.format(m=rows)).prim_funcs()["main"]
    sch = default_schedule(func, SHORT)
    assert "lay_out" not in {step.name for step in sch.trace}
    again = Schedule(func, SHORT).replay(sch.trace)
    assert first_difference(again.func, sch.func) is None
    assert_same(func, sch.func, {})


@pytest.mark.parametrize(
    ("x", "w"),
    [((2, 3, 5), (2, 2, 5, 8)), ((1, 1, 8), (2, 8, 8)), ((1, 4, 8), (2, 8, 8))],
    ids=["a batch", "one row of rank 3", "one matrix of a batch"],
)
def test_axes_of_one_point_and_batches(x: tuple[int, ...], w: tuple[int, ...]) -> None:
    func, _ = unscheduled("matmul_packed", (x, w), {"columns": 13})
    sch = default_schedule(func, SHORTEST)
    assert default_rules(func, SHORTEST)[0].rule == "packed"
    assert "lay_out" not in {step.name for step in sch.trace}
    assert_same(func, sch.func, {})
