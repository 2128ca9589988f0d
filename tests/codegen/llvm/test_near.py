"""Loads at known distances from each other: one register is loaded and put in order."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.codegen.llvm.affine import Near, as_near
from unity.ir.prim_expr import Binary, Broadcast, PrimVar, Ramp, imm
from unity.script import parse

KINDS = {"float32": "f32", "float16": "f16", "uint8": "u8", "float64": "f64", "bool": "boolean"}


def repeated(shape: tuple[int, ...], dtype: str, times: int, axis: int) -> unity.Executable:
    out = list(shape)
    out[axis] *= times
    kind = KINDS[dtype]
    given, made = (", ".join(map(str, s)) for s in (shape, out))
    return unity.compile(
        parse(f"""
@script.function
def main(x: {kind}[Tensor, {given}]) -> {kind}[Tensor, {made}]:
    return R.repeat(x, repeats={times}, axis={axis})
""")
    )


@pytest.mark.rotated(2)
@pytest.mark.parametrize("dtype", KINDS)
def test_repeated_elements(dtype: str) -> None:
    rng = np.random.default_rng(len(dtype))
    for _ in range(4):
        shape = tuple(int(e) for e in rng.choice([1, 3, 16, 24, 56], 2))
        times, axis = int(rng.integers(1, 6)), int(rng.integers(0, 2))
        x = (rng.random(shape) * 2).astype(dtype)
        got = repeated(shape, dtype, times, axis)(x)
        np.testing.assert_array_equal(got, np.repeat(x, times, axis))


def test_nothing_is_gathered() -> None:
    exe = repeated((4, 56), "float32", 2, 1)
    (kernel,) = exe.kernels
    assert "gather" not in exe.llvm(kernel)


def test_what_is_near() -> None:
    at = PrimVar("at")
    lanes = Ramp(imm(0), imm(1), 4)
    halves = Binary("floordiv", lanes, Broadcast(imm(2), 4))
    assert as_near(Binary("add", Broadcast(at, 4), halves)) == Near(at, (0, 0, 1, 1))
    turning = Binary("floormod", lanes, Broadcast(imm(3), 4))
    assert as_near(turning) == Near(None, (0, 1, 2, 0))
    assert as_near(Binary("floordiv", Ramp(at, imm(1), 4), Broadcast(imm(2), 4))) is None
