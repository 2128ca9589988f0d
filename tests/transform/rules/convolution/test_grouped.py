"""Grouped convolutions: the channels of a group are the rows of a register tile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from unity.codegen.llvm import host_target
from unity.interpreter import interpret
from unity.ir.prim_expr import Imm
from unity.ir.stmt import Allocate, For
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.graph import LegalizeOps
from unity.transform.passes import Context
from unity.transform.rules.default import schedule

TARGET = host_target(2)
CASES = [
    ((1, 12, 7, 9), (18, 4, 3, 3), "groups=3, padding=1"),
    ((2, 8, 5, 33), (8, 2, 1, 1), "groups=4"),  # as many read as written: one index is o - o % 2
    ((1, 6, 9, 9), (9, 2, 3, 3), "groups=3, strides=(2, 1), dilation=(1, 2), padding=(0, 2)"),
    ((1, 10, 6, 6), (10, 5, 3, 1), "groups=2, padding=(1, 0)"),
    ((1, 4, 3, 40), (20, 1, 1, 3), "groups=4, padding=(0, 1)"),  # several for each channel
]


@pytest.mark.rotated(2)
@pytest.mark.parametrize("bits", [b for b in (128, 256, 512) if b <= TARGET.vector_bits])
@pytest.mark.parametrize(("image", "weight", "attrs"), CASES)
def test_groups_compute_the_same(
    image: tuple[int, ...], weight: tuple[int, ...], attrs: str, bits: int
) -> None:
    x, w = floats(3, image, weight)
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, {", ".join(map(str, image))}]) -> f32[Tensor, ...]:
    return R.nn.relu(R.nn.conv2d(x, R.const("w"), {attrs}))
""",
        {"w": w},
    )
    target = replace(TARGET, vector_bits=bits, vector_registers=16 if bits < 512 else 32)
    want = interpret(module, "main", [x])
    assert isinstance(want, np.ndarray)
    got = unity.compile(module, target=target)(x)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_a_group_has_rows() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 1, 16, 8, 64], w: f32[Tensor, 32, 8, 1, 1]) -> f32[Tensor, ...]:
    return R.nn.conv2d(x, w, groups=2)
""")
    (kernel,) = LegalizeOps()(module, Context()).prim_funcs().values()
    laid_out = schedule(kernel, replace(Context().target, vector_bits=256, vector_registers=16))
    written_out = {
        s.var.name: s.extent.value
        for s in walk_stmt(laid_out.body)
        if isinstance(s, For) and s.kind == "unrolled" and isinstance(s.extent, Imm)
    }
    assert any(isinstance(s, Allocate) for s in walk_stmt(laid_out.body))
    assert written_out["ax2_1"] > 1  # channels of a group


@pytest.mark.parametrize("shape", [(7, "n"), ("n", "m")])
def test_lines_of_unknown_length_are_columns_of_one_tile(shape: tuple[object, object]) -> None:
    """A vector of each of several lines: lines may be shorter than the registers of one tile."""
    height, width = shape
    (x, w) = floats(4, (1, 8, 7, 19), (8, 4, 3, 3))
    module = parse(
        f"""
n = dim("n")
m = dim("m")

@script.function
def main(x: f32[Tensor, 1, 8, {height}, {width}]) -> f32[Tensor, ...]:
    return R.nn.conv2d(x, R.const("w"), groups=2, padding=1)
""",
        {"w": w},
    )
    exe = unity.compile(module, target=TARGET)
    (rule,) = (r for name in exe.kernels for r in exe.rules(name) if r.rule == "contraction")
    assert rule.decisions["vectors"] == 1
    assert rule.decisions["beside"] > 1
    for sizes in ((7, 19), (7, 3), (7, 64)):
        part = np.resize(x, (1, 8, *sizes))
        want = interpret(module, "main", [part])
        assert isinstance(want, np.ndarray)
        np.testing.assert_allclose(exe(part), want.astype(np.float64), rtol=1e-4, atol=1e-4)
