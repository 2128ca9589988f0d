"""Products of operands that are given the other way around, for several widths of registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unity
from unity.codegen.llvm import host_target
from unity.script import parse

WIDE = host_target(2)
TARGETS = {
    bits: replace(WIDE, vector_bits=bits, vector_registers=16 if bits < 512 else 32)
    for bits in (128, 256, 512)
    if bits <= WIDE.vector_bits
}
FIXED = [(1, 70, 33), (17, 83, 37), (33, 5, 200), (64, 130, 70)]
SIZES = [(0, 3, 4), (1, 1, 1), (7, 17, 5), (16, 64, 16), (33, 129, 70)]


def compiled(a: str, b: str, m: object, n: object, k: object, bits: int) -> unity.Executable:
    """``a @ b`` where T marks an operand stored transposed; two products side by side."""
    left, right = ((k, m) if a else (m, k)), ((n, k) if b else (k, n))
    flip = "R.permute_dims({}, (0, 2, 1))"
    source = f"""
m = dim("m")
n = dim("n")
k = dim("k")

@script.function
def main(
    a: f32[Tensor, 2, {left[0]}, {left[1]}], b: f32[Tensor, 2, {right[0]}, {right[1]}]
) -> f32[Tensor, 2, {m}, {n}]:
    return R.matmul({flip.format("a") if a else "a"}, {flip.format("b") if b else "b"})
"""
    return unity.compile(parse(source), target=TARGETS[bits])


def check(exe: unity.Executable, a: str, b: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, k, m) if a else (2, m, k)).astype(np.float32)
    y = rng.standard_normal((2, n, k) if b else (2, k, n)).astype(np.float32)
    left, right = (v.astype(np.float64) for v in (x, y))
    want = (left.swapaxes(1, 2) if a else left) @ (right.swapaxes(1, 2) if b else right)
    np.testing.assert_allclose(exe(x, y), want, rtol=1e-4, atol=1e-4)


@pytest.mark.rotated(6)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "T"), ("T", ""), ("T", "T")])
def test_every_layout_of_known_sizes(a: str, b: str, bits: int) -> None:
    for m, n, k in FIXED:
        check(compiled(a, b, m, n, k, bits), a, b, m, n, k)


@pytest.mark.rotated(6)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize("rows", [32, 97, 203])
def test_columns_far_apart_are_copied_by_the_first_rows(rows: int, bits: int) -> None:
    text = compiled("", "", rows, 1043, 66, bits)
    assert "reindex" in "".join(text.ir(k) for k in text.kernels)
    check(text, "", "", rows, 1043, 66)


@pytest.mark.rotated(6)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize(("a", "b"), [("", "T"), ("T", ""), ("T", "T")])
def test_every_layout_of_any_size(a: str, b: str, bits: int) -> None:
    exe = compiled(a, b, "m", "n", "k", bits)
    for m, n, k in SIZES:
        check(exe, a, b, m, n, k)
