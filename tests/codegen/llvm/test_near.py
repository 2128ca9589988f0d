"""Loads at known distances from each other: one register is loaded and put in order."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.codegen.llvm.levels import LEVELS, runs_here
from tests.codegen.llvm.run_kernel import build
from unity.codegen.llvm.facts.affine import Near, as_near
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT64, DType
from unity.ir.prim_expr import Binary, Broadcast, Compare, Load, PrimVar, Ramp, SizeVar, imm
from unity.ir.stmt import Buffer, Let, PrimFunc, Seq, Store
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


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("strides", [(2, 2), (1, 4), (3, 3), (1, 5)])
def test_phases_of_an_image_become_neighbours(strides: tuple[int, int], dtype: str) -> None:
    """Each lies by itself: stretches far apart, a few of which a register has elements of."""
    a, b = strides
    kind = KINDS[dtype]
    exe = unity.compile(
        parse(f"""
@script.function
def main(
    x: {kind}[Tensor, 1, {2 * a * b}, 5, 56],
) -> {kind}[Tensor, 1, 2, {5 * a}, {56 * b}]:
    return R.interleave_phases(x, strides=({a}, {b}))
""")
    )
    x = (np.random.default_rng(0).random((1, 2 * a * b, 5, 56)) * 99).astype(dtype)
    parts = x.reshape(2, a, b, 5, 56).transpose(0, 3, 1, 4, 2)
    np.testing.assert_array_equal(exe(x), parts.reshape(1, 2, 5 * a, 56 * b))
    if b == 2 and dtype == "float32":
        (kernel,) = exe.kernels
        assert "gather" not in exe.llvm(kernel)


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


@pytest.mark.rotated(1 / 2)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, DType("float16"), DType("uint8"), INT64, BOOL])
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("level", ["avx2", "sse4.2", "avx512"])
def test_every_so_many_elements(dtype: DType, stride: int, lanes: int, level: str) -> None:
    """The buffer ends with the last of them; lanes that are off are zero."""
    size = (lanes - 1) * stride + 2
    x, y, z = (
        Buffer("x", (imm(size),), dtype),
        Buffer("y", (imm(lanes),), dtype),
        Buffer("z", (imm(lanes),), dtype),
    )
    on, count = PrimVar("on", BOOL.with_lanes(lanes)), SizeVar("n")
    every, whole = Ramp(imm(1), imm(stride), lanes), Ramp(imm(0), imm(1), lanes)
    some = Load(x, (every,), on)
    body = Let(
        on,
        Compare("lt", whole, Broadcast(count, lanes)),
        Seq((Store(y, (whole,), Load(x, (every,))), Store(z, (whole,), some))),
    )
    if not runs_here(LEVELS[level]):
        pytest.skip("this machine has no such instructions")
    func = PrimFunc((x, y, z, Buffer("w", (count,), dtype)), body)
    kernel = build({"main": func}, LEVELS[level])["main"]
    data = (np.random.default_rng(lanes).random(size) * 9).astype(dtype.element.name)
    for n in range(1, lanes + 1):
        every_one, first = np.ones(lanes, data.dtype), np.ones(lanes, data.dtype)
        assert kernel([data, every_one, first, np.empty(n, data.dtype)], {"n": n}) == 0
        np.testing.assert_array_equal(every_one, data[1::stride])
        np.testing.assert_array_equal(first, np.where(np.arange(lanes) < n, data[1::stride], 0))
