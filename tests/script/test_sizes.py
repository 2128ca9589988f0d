"""Sizes as values of graph functions: beside tensors, compared, as ends of parts."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import parse, print_module

BESIDE = """
n = dim("n", min=1)

@script.function
def main(x: f32[Tensor, n, 4]):
    y = x * n + R.prim(n) - 2 * n
    if n > 4:
        z = y
    else:
        z = R.nn.relu(y)
    return z
"""


@pytest.mark.parametrize("count", [4, 5])
def test_sizes_are_numbers_beside_tensors_and_choose(count: int) -> None:
    module = parse(BESIDE)
    x = np.random.default_rng(0).standard_normal((count, 4), np.float32)
    y = x * np.float32(count) - np.float32(count)
    expected = y if count > 4 else np.maximum(y, 0)
    np.testing.assert_allclose(np.asarray(interpret(module, "main", [x])), expected, rtol=1e-5)
    exe = unity.compile(module)
    np.testing.assert_allclose(exe(x), expected, rtol=1e-5, atol=1e-6)
    assert exe.native() == {"main": "native"}


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("n >= 2", True), ("n < 2", False), ("2 * n > n", True), ("n == n + 0", True),
        ("n != n + 1", True), ("n <= 1", False), ("n + 1 == n", False), ("n > 2", None),
        ("n == 3", None), ("n != 3", None),
    ],
)  # fmt: skip
def test_what_facts_say_is_decided_at_once(said: str, taken: bool | None) -> None:
    text = f"""
n = dim("n", min=2)

@script.function
def main(x: f32[Tensor, n]):
    if {said}:
        y = x + 1.0
    else:
        y = x + 2.0
    return y
"""
    printed = print_module(parse(text))
    assert ("if " in printed) is (taken is None)
    if taken is not None:
        assert ("R.add(x, 1.0)" in printed) is taken
    for count in (2, 3, 4):
        x = np.zeros(count, np.float32)
        wanted = 1.0 if eval(said, {"n": count}) else 2.0
        found = np.asarray(interpret(parse(text), "main", [x]))
        np.testing.assert_array_equal(found, x + np.float32(wanted))


def test_halves_of_an_unknown_size() -> None:
    text = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 2]):
    return R.split(x, (n // 2,)), x[n // 3 : n - n // 4]
"""
    for count in (0, 5, 8):
        x = np.arange(2 * count, dtype=np.float32).reshape(count, 2)
        found = interpret(parse(text), "main", [x])
        assert isinstance(found, tuple)
        halves, middle = found
        assert isinstance(halves, tuple)
        first, second = halves
        np.testing.assert_array_equal(np.asarray(first), x[: count // 2])
        np.testing.assert_array_equal(np.asarray(second), x[count // 2 :])
        np.testing.assert_array_equal(np.asarray(middle), x[count // 3 : count - count // 4])


COUNTED = """
n = dim("n", min=1)

@script.function
def main(x: f32[Tensor, n, 2], k: i64[Tensor]):
    y = x
    for i in range(1, n):
        y = y + R.astype(i, "float32")
        for j in range(2):
            y = y * 0.5
    for i in range(k):
        y = y + 1.0
    return y
"""


@pytest.mark.parametrize(("count", "times"), [(1, 0), (4, 3)])
def test_loops_to_a_size_count_when_they_run(count: int, times: int) -> None:
    x = np.random.default_rng(0).standard_normal((count, 2), np.float32)
    expected = x
    for i in range(1, count):
        expected = (expected + np.float32(i)) * np.float32(0.25)
    expected = expected + np.float32(times)
    module = parse(COUNTED)
    for found in (
        interpret(module, "main", [x, np.asarray(times)]),
        unity.compile(module)(x, np.asarray(times)),
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def test_a_counter_is_of_its_loop() -> None:
    with pytest.raises(unity.UnityError, match="unknown name 'i'") as caught:
        parse(COUNTED.replace("return y", 'return y + R.astype(i, "float32")'))
    assert caught.value.span is not None
