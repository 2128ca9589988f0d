"""Calls that do not fit are refused: which input, which axis, which symbol, both values."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.runtime.executable import Executable
from unity.script import parse

SEVERAL = """
n = dim("n")
m = dim("m", min=2, max=64, multiple_of=2)

@script.function
def main(
    x: f32[Tensor, n, 4], w: f32[Tensor, n, 4], v: i64[Tensor, m], u: i64[Tensor, n + m]
) -> R.Tuple(f32[Tensor, n, 4], i64[Tensor, m]):
    a = R.add(x, w)
    b = R.add(v, v)
    return (a, b)

@script.function
def twice(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.add(x, x)
"""
Numbers = npt.NDArray[Any]


@cache
def executable() -> Executable:
    return unity.compile(parse(SEVERAL))


def good() -> dict[str, Numbers]:
    return {
        "x": np.ones((3, 4), np.float32),
        "w": np.ones((3, 4), np.float32),
        "v": np.arange(6),
        "u": np.arange(9),
    }


def locked(a: Numbers) -> Numbers:
    a.flags.writeable = False
    return a


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "dtype": (
        {"x": np.ones((3, 4))},
        "input 'x': expected dtype float32, got float64",
    ),
    "integers of another width": (
        {"v": np.arange(6, dtype=np.int32)},
        "input 'v': expected dtype int64, got int32",
    ),
    "byte order": (
        {"x": np.ones((3, 4), ">f4")},
        "input 'x': the array has foreign byte order (>f4)",
    ),
    "rank": (
        {"x": np.ones((3, 4, 1), np.float32)},
        "input 'x': expected rank 2 (n, 4), got rank 3 with shape (3, 4, 1)",
    ),
    "rank of a number": (
        {"x": 1.0},
        "input 'x': expected rank 2 (n, 4), got rank 0 with shape ()",
    ),
    "constant axis": (
        {"x": np.ones((3, 5), np.float32)},
        "input 'x' axis 1: expected 4, got 5",
    ),
    "symbol": (
        {"w": np.ones((2, 4), np.float32)},
        "input 'w' axis 0: symbol n is 2 here but 3 from input 'x' axis 0",
    ),
    "expression of symbols": (
        {"u": np.arange(8)},
        "input 'u' axis 0: expected m + n = 9 (n = 3 from input 'x' axis 0, m = 6 from input 'v' "
        "axis 0), got 8",
    ),
    "below the minimum": (
        {"v": np.arange(0)},
        "input 'v' axis 0: symbol m is 0, but it must be at least 2",
    ),
    "above the maximum": (
        {"v": np.arange(66)},
        "input 'v' axis 0: symbol m is 66, but it must be at most 64",
    ),
    "no multiple": (
        {"v": np.arange(5)},
        "input 'v' axis 0: symbol m is 5, but it must be a multiple of 2",
    ),
    "text": ({"x": "hello"}, "input 'x': expected an array, got str"),
    "nothing": ({"x": None}, "input 'x': expected an array, got NoneType"),
    "a list": ({"x": [[1.0] * 4] * 3}, "input 'x': expected an array, got list"),
    "objects": ({"x": np.full((3, 4), None)}, "input 'x': expected dtype float32, got object"),
    "unknown name": ({"q": np.arange(3)}, "there is no 'q'"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("named", [False, True])
def test_refused_with_a_message(case: str, named: bool) -> None:
    change, message = WRONG[case]
    given: dict[str, object] = {**good(), **change}
    by_name = named or "q" in given
    args, names = ((), given) if by_name else (tuple(given.values()), dict[str, object]())
    with pytest.raises(unity.UnityError) as error:
        executable()(*args, **names)
    assert message in str(error.value)


def test_counts() -> None:
    values = list(good().values())
    with pytest.raises(unity.UnityError, match=r"takes 4 inputs \(x, w, v, u\), got 5"):
        executable()(*values, 1)
    with pytest.raises(unity.UnityError, match=r"got 3: missing u"):
        executable()(*values[:3])
    with pytest.raises(unity.UnityError, match="'x' was given twice"):
        executable()(*values[:1], x=values[0])
    with pytest.raises(unity.UnityError, match="missing v, u"):
        executable().run({k: v for k, v in good().items() if k in "xw"})
    with pytest.raises(unity.UnityError, match="no function 'nowhere'; it has main, twice"):
        executable()["nowhere"]


def pair(result: object) -> tuple[Numbers, Numbers]:
    assert isinstance(result, tuple)
    first, second = result
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    return first, second


def test_a_right_call_works_after_wrong_ones() -> None:
    for _ in range(3):
        with pytest.raises(unity.UnityError):
            executable()(1, 2, 3, 4)
        a, b = pair(executable()(*good().values()))
        np.testing.assert_array_equal(a, np.full((3, 4), 2))
        np.testing.assert_array_equal(b, np.arange(6) * 2)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2],
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
        locked(np.arange(12, dtype=np.float32).reshape(3, 4)),
        np.broadcast_to(np.float32(2), (3, 4)),
        np.frombuffer(bytes(1 + 48), np.uint8)[1:].view(np.float32).reshape(3, 4),
        np.arange(12, dtype=np.float32).reshape(3, 4)[::-1],
    ],
    ids=["strided", "fortran", "read-only", "broadcast", "unaligned", "reversed"],
)
def test_any_layout_is_taken_and_left_as_it_is(x: Numbers) -> None:
    before = x.copy()
    given: dict[str, object] = {**good(), "x": x}
    a, _ = pair(executable()(*given.values()))
    np.testing.assert_array_equal(a, before + 1)
    np.testing.assert_array_equal(x, before)


def test_empty_tensors() -> None:
    none = np.ones((0, 4), np.float32)
    a, _ = pair(executable()(none, none, np.arange(2), np.arange(2)))
    assert a.shape == (0, 4)


def test_results_do_not_share_memory_with_each_other_or_later_calls() -> None:
    x = np.arange(5, dtype=np.float32)
    twice = executable()["twice"]
    first = twice(x)
    second = twice(x)
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    first[:] = -1
    np.testing.assert_array_equal(second, x * 2)
