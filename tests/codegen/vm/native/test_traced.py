"""Loop state that grows or shrinks in native code: its dims are what it was assigned last."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import unity
from tests.codegen.vm.results import agree, kept
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.script import parse

STATE = "f32[Tensor, R.rank(2)]"
MODULE = parse(f"""
n = dim("n")
a = dim("a")
b = dim("b")
c = dim("c")
d = dim("d")
e = dim("e")
g = dim("g")
h = dim("h")
k = dim("k")
@script.function
def grows(x: f32[Tensor, n, 3], count: i64[Tensor, ()]) -> {STATE}:
    i = count
    y: {STATE} = x
    while R.less(0, i):
        i = R.subtract(i, 1)
        rows = R.match_cast(y, f32[Tensor, a, 3])
        y = R.concat((rows, R.exp(R.negative(x))), axis=0)
    return y
@script.function
def summed(x: f32[Tensor, n, 3], count: i64[Tensor, ()]) -> f32[Tensor, ()]:
    i = count
    y: {STATE} = x
    while R.less(0, i):
        i = R.subtract(i, 1)
        rows = R.match_cast(y, f32[Tensor, b, 3])
        y = R.concat((rows, rows), axis=0)
    last = R.match_cast(y, f32[Tensor, h, 3])
    return R.sum(R.exp(R.negative(last)))
@script.function
def swaps(x: f32[Tensor, n, 3], count: i64[Tensor, ()]):
    i = count
    y: {STATE} = x
    z: {STATE} = R.concat((x, x), axis=0)
    while R.less(0, i):
        i = R.subtract(i, 1)
        first = R.match_cast(y, f32[Tensor, c, 3])
        second = R.match_cast(z, f32[Tensor, d, 3])
        y = R.concat((second, first), axis=0)
        z = first
    return z, y, i
@script.function
def shrinks(x: f32[Tensor, n, 3], count: i64[Tensor, ()]) -> {STATE}:
    i = count
    y: {STATE} = x
    while R.less(0, i):
        i = R.subtract(i, 1)
        rows = R.match_cast(y, f32[Tensor, e, 3])
        kept = R.reshape(R.nonzero(R.greater(R.max(rows, axis=(1,)), 0.4)), (-1,))
        y = R.multiply(R.take(rows, kept, axis=0), 0.8)
    return y
@script.function
def chooses(x: f32[Tensor, n, 3], count: i64[Tensor, ()]) -> {STATE}:
    i = count
    y: {STATE} = x
    while R.less(0, i):
        i = R.subtract(i, 1)
        rows = R.match_cast(y, f32[Tensor, g, 3])
        if R.equal(R.floor_mod(i, 2), 0):
            y = R.concat((rows, x), axis=0)
        else:
            y = R.strided_slice(rows, axes=(0,), begin=(1,), end=(9223372036854775807,))
    return y
@script.function
def nested(x: f32[Tensor, n, 3], count: i64[Tensor, ()]) -> {STATE}:
    i = count
    y: {STATE} = x
    while R.less(0, i):
        i = R.subtract(i, 1)
        j = i
        while R.less(0, j):
            j = R.subtract(j, 1)
            rows = R.match_cast(y, f32[Tensor, k, 3])
            y = R.concat((R.add(rows, 1.0), x), axis=0)
    return y
""")
NAMES = ("grows", "summed", "swaps", "shrinks", "chooses", "nested")


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(MODULE)


def given(size: int, count: int) -> list[Array]:
    rng = np.random.default_rng(size)
    return [rng.random((size, 3), np.float32), np.array(count)]


@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_interpreters(exe: unity.Executable, name: str) -> None:
    assert exe.native()[name] == "native"
    for size, count in ((5, 3), (0, 4), (1, 0), (2, 6), (40, 1), (3, 5)):
        args = given(size, count)
        agree(exe[name](*args), interpret(MODULE, name, args))


def test_threads_share_an_executable(exe: unity.Executable) -> None:
    args = [given(3 + k, k) for k in range(6)]
    want = [interpret(MODULE, "swaps", g) for g in args]

    def work(k: int) -> None:
        for _ in range(50):
            agree(exe["swaps"](*args[k]), want[k])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_is_given_back(exe: unity.Executable) -> None:
    args = given(4000, 6)
    # 3 MB each if a call kept its state.
    assert kept(lambda: exe["summed"](*args), 60) < 20_000_000
