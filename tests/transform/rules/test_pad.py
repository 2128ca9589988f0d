"""Padding by runs: every border, channels that fill no vector, and stages that are no padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.transform.cases import floats
from tests.transform.rules.kernels import lowered, unscheduled
from tests.transform.tensor.kernels import assert_same
from unity.interpreter import run_prim_func
from unity.ir.dims import Dim, dim
from unity.ir.equality import structural_equal
from unity.ir.prim_expr import Select
from unity.ir.stmt import PrimFunc
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.passes import Context
from unity.transform.rules.default import schedule
from unity.transform.schedule import default_rules, default_schedule

TARGET = replace(Context().target, vector_bits=256, threads=2)


def kernel(text: str) -> PrimFunc:
    return parse(text).prim_funcs()["main"]


def padding(before: tuple[int, int], shape: tuple[int, int], channels: int, fill: str) -> PrimFunc:
    """Images of 3 blocks and 5 x 6 pixels in larger ones."""
    (top, left), (height, width) = before, shape
    sizes = f"{height}, {width}, {channels}"
    return kernel(f"""
@script.prim_func
def main(x: f32[Buffer, 3, 5, 6, {channels}], p: f32[Buffer, 3, {sizes}]) -> None:
    for b, i, j, c in T.grid(3, {sizes}):
        with T.block("pad"):
            vb, vi, vj, vc = T.axis.remap("SSSS", b, i, j, c)
            p[vb, vi, vj, vc] = T.select(
                {top} <= vi and vi < {top + 5} and {left} <= vj and vj < {left + 6},
                x[vb, vi - {top}, vj - {left}, vc],
                {fill},
            )
""")


@pytest.mark.parametrize("before", [(0, 0), (2, 1), (1, 3)])
@pytest.mark.parametrize("shape", [(8, 9), (7, 10)])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_images_are_copied_and_the_rest_filled(
    before: tuple[int, int], shape: tuple[int, int], channels: int
) -> None:
    func = padding(before, shape, channels, "1.5")
    (x,) = floats(channels, (3, 5, 6, channels))
    after = schedule(func, TARGET)
    left = [e for s in walk_stmt(after.body) for top in stmt_exprs(s) for e in walk_prim(top)]
    assert not any(isinstance(e, Select) for e in left)
    (want,), (got,) = (run_prim_func(f, [x], {}) for f in (func, after))
    np.testing.assert_array_equal(got, want)
    assert np.count_nonzero(want == 1.5) == want.size - x.size


def test_what_is_turned_is_not_copied_by_runs() -> None:
    func = kernel("""
@script.prim_func
def main(x: f32[Buffer, 6, 5], p: f32[Buffer, 7, 8]) -> None:
    for i, j in T.grid(7, 8):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", i, j)
            p[vi, vj] = T.select(1 <= vi and vi < 6 and vj < 6, x[vj, vi - 1], 0.0)
""")
    (x,) = floats(0, (6, 5))
    after = schedule(func, TARGET)
    assert not structural_equal(after, func)
    (want,), (got,) = (run_prim_func(f, [x], {}) for f in (func, after))
    np.testing.assert_array_equal(got, want)


N, H = dim("n"), dim("h")


@pytest.mark.rotated(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("sizes", [(6, 9), (6, N), (H, 11), (H, N)])
def test_lines_of_any_length_and_lines_that_are_dealt(
    sizes: tuple[Dim, Dim], strides: tuple[int, int], threads: int
) -> None:
    """A convolution's input padded, and dealt to a line for each phase of the stride."""
    attrs = {"strides": strides, "padding": (1, 2, 2, 1)}
    shapes = ((1, 2, *sizes), (3, 2, 3, 4))
    func = unscheduled("nn.conv2d", shapes, attrs)[0]
    target = replace(TARGET, threads=threads)
    assert default_rules(func, target)[0].rule == "pad"
    made = default_schedule(func, target).kernel()
    for h, n in ((2, 1), (5, 8), (1, 35)):
        assert_same(func, made, {"h": h, "n": n})
    assert_same(func, lowered(made, target), {"h": 3, "n": 18})
