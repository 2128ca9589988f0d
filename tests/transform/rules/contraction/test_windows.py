"""Sums over windows of the plain layout: tiles of several lines, whatever the sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.schedule.test_by_hand import AVX2, AVX512
from tests.transform.tensor.kernels import assert_same
from unity.ir.dims import Dim, dim
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.schedule import default_rules, default_schedule

from ..kernels import lowered, unscheduled

H, W = dim("h"), dim("w")
FEW = replace(AVX2, vector_bits=128)
TARGETS = {"avx512": AVX512, "avx2": replace(AVX2, threads=2), "few": FEW}


def depthwise(h: Dim, w: Dim, kernel: int, **attrs: object) -> PrimFunc:
    """A convolution of two channels, each by itself, without padding."""
    shapes = ((1, 2, h, w), (2, 1, kernel, kernel))
    return unscheduled("nn.conv2d", shapes, {"groups": 2, **attrs})[0]


def pool(h: Dim, w: Dim, kernel: int, stride: int) -> PrimFunc:
    """The greatest of windows of two channels."""
    attrs = {"pool_size": (kernel, kernel), "strides": stride}
    return unscheduled("nn.max_pool2d", ((1, 2, h, w),), attrs)[0]


CASES: dict[str, tuple[PrimFunc, dict[str, int]]] = {
    "3x3": (depthwise(11, 21, 3), {}),
    "5x5, lines unknown": (depthwise(H, 13, 5), {"h": 9}),
    "5x5, columns unknown": (depthwise(6, W, 5), {"w": 21}),
    "3x3, both unknown": (depthwise(H, W, 3), {"h": 5, "w": 19}),
    "3x3, lines apart": (depthwise(11, 12, 3, strides=(2, 1)), {}),
    "taps apart": (depthwise(9, 12, 3, dilation=2), {}),
    "pool": (pool(9, 19, 3, 1), {}),
    "pool of strides": (pool(H, W, 3, 2), {"h": 7, "w": 21}),
    "windows that share nothing": (pool(8, W, 2, 2), {"w": 35}),
}


@pytest.mark.rotated(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_values(case: str, target: str) -> None:
    func, sizes = CASES[case]
    made = default_schedule(func, TARGETS[target]).kernel()
    assert_same(func, made, sizes)
    assert_same(func, lowered(made, TARGETS[target]), sizes)


def decided(func: PrimFunc, target: Target) -> dict[str, int]:
    """What the rule decides, which takes the stage."""
    rule = default_rules(func, target)[-1]
    assert rule.rule == "windows"
    return dict(rule.decisions)


def test_lines_that_windows_have_in_common_are_seen_once() -> None:
    """Taps across lines stand in a row, not those along them."""
    how = decided(depthwise(62, 62, 7), AVX512)
    assert how["row"] == 7
    assert how["lines"] > 2
    assert decided(pool(56, 56, 2, 2), AVX512)["lines"] == 1


def test_registers_hold_a_tile() -> None:
    for kernel in (3, 5, 7):
        for target in (AVX2, AVX512):
            how = decided(depthwise(56, 56, kernel), target)
            held = how["lines"] * how["vectors"] + 2 * how["row"] + 1
            assert held <= target.vector_registers or how["lines"] * how["vectors"] == 1


def test_long_sums_and_sums_of_rows_have_other_rules() -> None:
    long = unscheduled("sum", ((300, 64),), {"axis": (0,)})[0]
    product = unscheduled("matmul", ((9, 12), (12, 40)), {})[0]
    assert all(r.rule != "windows" for f in (long, product) for r in default_rules(f, AVX512))
