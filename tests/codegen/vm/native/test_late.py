"""Native code whose sizes are read while it runs: memory of its own, results copied at the end."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import unity
from tests.codegen.vm.results import agree, kept
from unity import runtime
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.runtime.check import Value
from unity.runtime.vm import VM
from unity.script import parse
from unity.transform.graph import InlineFunctions

MODULE = parse("""
n = dim("n")
k = dim("k")
a = dim("a")
b = dim("b")
@script.function
def places(x: f32[Tensor, n]) -> i64[Tensor, R.rank(2)]:
    return R.nonzero(x)
@script.function
def taken(x: f32[Tensor, n, 3]):
    best = R.max(x, axis=(1,))
    i = R.reshape(R.nonzero(R.greater(best, 0.5)), (-1,))
    rows = R.take(x, i, axis=0)
    again = R.reshape(R.nonzero(R.greater(R.sum(rows, axis=(1,)), 1.5)), (-1,))
    return R.exp(R.take(rows, again, axis=0)), R.multiply(best, 2.0), i, R.reshape(rows, (-1,))
@script.function
def total(x: f32[Tensor, n]) -> f32[Tensor, ()]:
    i = R.reshape(R.nonzero(x), (-1,))
    return R.sum(R.exp(R.negative(R.take(x, i, axis=0))))
@script.function
def by_call(x: f32[Tensor, n]) -> f32[Tensor, ()]:
    return R.add(total(x), total(R.exp(x)))
@script.function
def by_branch(x: f32[Tensor, n], c: i64[Tensor, ()]) -> f32[Tensor, ()]:
    if R.less(c, 1):
        i = R.reshape(R.nonzero(x), (-1,))
        y = R.sum(R.take(x, i, axis=0))
    else:
        y = R.max(x)
    return y
@script.function
def by_loop(x: f32[Tensor, n], c: i64[Tensor, ()]) -> f32[Tensor, ()]:
    j = c
    y = R.const(0.0)
    while R.less(0, j):
        j = R.subtract(j, 1)
        there = R.greater_equal(x, R.astype(j, dtype="float32"))
        i = R.reshape(R.nonzero(there), (-1,))
        y = R.add(y, R.sum(R.exp(R.negative(R.take(x, i, axis=0)))))
    return y
@script.function
def filled(s: i64[Tensor, 2]) -> f32[Tensor, R.rank(2)]:
    sizes = R.match_cast(R.tensor_to_shape(s), R.Shape(a, b))
    return R.exp(R.zeros((a, b)))
@script.function
def fewer(s: i64[Tensor, 1], x: f32[Tensor, 4]) -> f32[Tensor, R.rank(1)]:
    sizes = R.match_cast(R.tensor_to_shape(s), R.Shape(k))
    return R.exp(R.zeros((k - 4,)))
@script.function
def parts(s: i64[Tensor, 1], x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
    sizes = R.match_cast(R.tensor_to_shape(s), R.Shape(k))
    return R.exp(R.zeros((n // k,)))
@script.function
def high(s: i64[Tensor, 1]) -> f32[Tensor, R.rank(1)]:
    sizes = R.match_cast(R.tensor_to_shape(s), R.Shape(k))
    return R.exp(R.zeros((k * k * k * k * k // (k * k * k * k + 1) + 1,)))
""")
NAMES = (
    *("places", "taken", "total", "by_call", "by_branch", "by_loop"),
    *("filled", "fewer", "parts", "high"),
)


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    """Calls are calls."""
    return unity.compile(MODULE, pipeline=unity.pipeline().without(InlineFunctions))


def arrays(name: str, size: int, rng: np.random.Generator) -> list[Array]:
    x = (rng.random(size) * (rng.random(size) < 0.5) * 4).astype(np.float32)
    match name:
        case "taken":
            return [rng.random((size, 3), np.float32)]
        case "by_branch":
            return [x if size else np.zeros(1, np.float32), np.array(size % 2)]
        case "by_loop":
            return [x, np.array(4)]
        case "filled":
            return [np.array([size, 3])]
        case "parts":
            return [np.array([3]), x]
        case "high":
            return [np.array([size])]
        case "fewer":
            return [np.array([size + 4]), np.zeros(4, np.float32)]
        case _:
            return [x]


def test_all_are_native(exe: unity.Executable) -> None:
    assert exe.native() == dict.fromkeys(NAMES, "native")


@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_interpreters(exe: unity.Executable, name: str) -> None:
    rng = np.random.default_rng(len(name))
    for size in (5, 0, 1, 300, 64, 2000):
        given = arrays(name, size, rng)
        agree(exe[name](*given), interpret(MODULE, name, given))


def test_what_a_caller_got_is_its_own(exe: unity.Executable) -> None:
    rng = np.random.default_rng(0)
    first, second = (arrays("taken", 50, rng) for _ in range(2))
    kept = exe["taken"](*first)
    want = interpret(MODULE, "taken", first)
    exe["taken"](*second)
    agree(kept, want)


def test_large_results(exe: unity.Executable) -> None:
    x = np.ones(1 << 18, np.float32)
    x[:7] = 0
    np.testing.assert_array_equal(np.asarray(exe["places"](x)), [np.arange(7, 1 << 18)])


def test_threads_share_an_executable(exe: unity.Executable) -> None:
    rng = np.random.default_rng(3)
    given = [arrays("taken", 40 + 10 * k, rng) for k in range(8)]
    want = [interpret(MODULE, "taken", g) for g in given]

    def work(k: int) -> None:
        for _ in range(50):
            agree(exe["taken"](*given[k]), want[k])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_is_given_back(exe: unity.Executable) -> None:
    x = np.ones(50_000, np.float32)
    # 80 MB if a call kept what it computed.
    assert kept(lambda: exe["total"](x), 400) < 20_000_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_of_a_call_serves_the_next(exe: unity.Executable) -> None:
    """Fresh pages cost more than what is done with them; malloc keeps none of more than 32 MB."""
    x = np.ones(9_000_000, np.float32)
    exe["total"](x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    exe["total"](x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 5_000


def test_sizes_of_a_high_degree_stay_native(
    exe: unity.Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``k ** 5`` may wrap if `k` has 13 bits; at 5,000 it does not, at 9,000 bytecode says so."""
    called: list[int] = []
    call = VM.call

    def counted(self: VM, index: int, args: Sequence[Value], what: str) -> Value:
        called.append(index)
        return call(self, index, args, what)

    monkeypatch.setattr(VM, "call", counted)
    for k in (4000, 5000):
        assert exe["high"](np.array([k])).shape == (k,)
    assert not called
    assert exe["high"](np.array([9000])).shape == (9000,)
    assert called


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("filled", [np.array([-1, 3])], "-1"),
        ("filled", [np.array([1 << 40, 1 << 40])], "memory"),
        ("filled", [np.array([1 << 30, 1 << 30])], "memory"),
        ("fewer", [np.array([3]), np.zeros(4, np.float32)], "-1"),
        ("parts", [np.array([0]), np.zeros(4, np.float32)], "0"),
    ],
)
def test_sizes_that_cannot_be_are_told(
    exe: unity.Executable, name: str, given: list[Array], message: str
) -> None:
    with pytest.raises((UnityError, MemoryError), match=message):
        exe[name](*given)
    agree(exe["filled"](np.array([2, 3])), np.ones((2, 3)))


def test_it_is_stored_and_refused_for_c(exe: unity.Executable, tmp_path: Path) -> None:
    exe.save(tmp_path / "a.unity")
    loaded = runtime.load(tmp_path / "a.unity")
    given = arrays("taken", 30, np.random.default_rng(1))
    agree(loaded["taken"](*given), interpret(MODULE, "taken", given))
    with pytest.raises(UnityError, match="places has results whose sizes depend on data"):
        exe.export_library(tmp_path / "libmodel.so")
