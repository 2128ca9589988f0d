"""Stores past the caches: what is written so, wherever the memory begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, build
from unity.ir.dtype import Array
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform.tactics.streaming_stores import past_caches

SOURCE = """
@script.prim_func(attrs={{"nontemporal": {which}}})
def main(x: f32[Buffer, 200], y: f32[Buffer, 200], z: f32[Buffer, 200]) -> None:
    for i in T.parallel(12):
        y[T.ramp(i * 16, 1, 16)] = x[T.ramp(i * 16, 1, 16)] + T.broadcast(1.0, 16)
        z[T.ramp(i * 16 + 4, 1, 16)] = x[T.ramp(i * 16, 1, 16)]
    for i in range(192, 200):
        y[i] = x[i] + 1.0
"""


def kernel(which: str) -> PrimFunc:
    return parse(SOURCE.format(which=which)).prim_funcs()["main"]


def aligned(offset: int) -> Array:
    """200 elements that begin so many bytes behind a line."""
    raw = np.zeros(200 * 4 + 128, np.uint8)
    begin = -raw.ctypes.data % 64 + offset
    return raw[begin : begin + 800].view(np.float32)


@pytest.mark.parametrize("offset", [0, 4, 32])
def test_memory_may_begin_anywhere(offset: int) -> None:
    x = np.random.default_rng(0).standard_normal(200).astype(np.float32)
    y, z = aligned(offset), aligned(0)
    assert build({"main": kernel("(1, 2)")})["main"]([x, y, z]) == 0
    np.testing.assert_array_equal(y, x + np.float32(1))
    np.testing.assert_array_equal(z[4:196], x[:192])


def test_whole_registers_at_multiples_of_their_size() -> None:
    if not HOST.triple.startswith("x86_64") or HOST.vector_bits < 512:
        pytest.skip("names instructions of AVX-512")
    names = {"()": 0, "(1,)": 1, "(1, 2)": 1}  # z is written beside the lines
    for which, count in names.items():
        code = build({"main": kernel(which)})["main"].code
        assert code.asm("main").count("vmovnt") == count


@pytest.mark.parametrize(("rows", "past"), [(100, ()), (8192, (1,))])
def test_large_results_that_nobody_reads(rows: int, past: tuple[int, ...]) -> None:
    source = f"""
    @script.prim_func
    def main(x: f32[Buffer, {rows}, 2048], y: f32[Buffer, {rows}, 2048]) -> None:
        for i, j in T.grid({rows}, 2048):
            y[i, j] = x[i, j] + 1.0
    """
    func = parse("\n".join(line[4:] for line in source.splitlines())).prim_funcs()["main"]
    assert past_caches(func, HOST) == past
    again = source.replace("x[i, j] + 1.0", "x[i, j] + 1.0\n            y[i, j] = y[i, j] * 2.0")
    func = parse("\n".join(line[4:] for line in again.splitlines())).prim_funcs()["main"]
    assert past_caches(func, HOST) == ()
    small = replace(HOST, l3_bytes=1 << 20)
    assert past_caches(kernel("()"), small) == ()
