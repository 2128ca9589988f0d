"""Calls that do not fit: the message names the input, the axis, what was got and expected."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

import unity
from unity.script import parse

SOURCE = """
n = dim("n")
m = dim("m", min=2, max=64, multiple_of=2)

@script.function
def main(
    x: f32[Tensor, n, 4], w: f32[Tensor, n, 4], v: f32[Tensor, m]
) -> R.Tuple(f32[Tensor, n, 4], f32[Tensor, m]):
    a = R.add(x, w)
    b = R.exp(v)
    return (a, b)
"""

OUTER = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n, n]:
    y = R.multiply(R.expand_dims(x, axis=0), R.expand_dims(x, axis=1))
    return y
"""

INNER = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.multiply(R.expand_dims(x, axis=0), R.expand_dims(x, axis=1))
    z = R.sum(R.cumsum(y, axis=1), axis=1)
    return z
"""


@cache
def executable() -> unity.Executable:
    return unity.compile(parse(SOURCE))


def f32(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.ones(shape, np.float32)


GOOD = (f32(3, 4), f32(3, 4), f32(6))

WRONG: dict[str, tuple[tuple[object, ...], str]] = {
    "too few": (GOOD[:2], r"3.*2|v"),
    "too many": ((*GOOD, f32(1)), r"3.*4"),
    "dtype": (
        (f32(3, 4).astype(np.float64), *GOOD[1:]),
        r"x.*float64.*float32|x.*float32.*float64",
    ),
    "integers": ((f32(3, 4).astype(np.int32), *GOOD[1:]), r"x.*int32"),
    "byte order": ((f32(3, 4).astype(">f4"), *GOOD[1:]), r"x.*(byte|>f4|endian)"),
    "rank": ((f32(3, 4, 1), *GOOD[1:]), r"x.*(rank|dimension|axes).*2|x.*2.*3"),
    "scalar": ((np.float32(1), *GOOD[1:]), "x"),
    "a constant axis": ((f32(3, 5), *GOOD[1:]), r"x.*axis 1.*(4.*5|5.*4)"),
    "a symbol at odds": ((f32(3, 4), f32(2, 4), f32(6)), r"w.*axis 0.*\bn\b.*2.*3"),
    "below the least": ((f32(3, 4), f32(3, 4), f32(0)), r"v.*axis 0.*\bm\b.*0"),
    "above the most": ((f32(3, 4), f32(3, 4), f32(66)), r"v.*axis 0.*\bm\b.*66"),
    "no multiple": ((f32(3, 4), f32(3, 4), f32(5)), r"v.*axis 0.*\bm\b.*5"),
    "no array": (("hello", *GOOD[1:]), "x"),
    "None": ((None, *GOOD[1:]), "x"),
    "a list": (([[1.0] * 4] * 3, *GOOD[1:]), "x"),
    "objects": ((np.full((3, 4), None), *GOOD[1:]), r"x.*object"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_refused(case: str) -> None:
    args, message = WRONG[case]
    with pytest.raises(unity.UnityError, match=f"(?s){message}"):
        executable()(*args)


def test_names_that_do_not_fit() -> None:
    x, w, v = GOOD
    with pytest.raises(unity.UnityError, match=r"q"):
        executable()(x=x, w=w, q=v)
    with pytest.raises(unity.UnityError, match=r"v"):
        executable().run({"x": x, "w": w})
    with pytest.raises(unity.UnityError, match=r"x"):
        executable()(x, w, v, x=x)
    with pytest.raises(unity.UnityError, match="nothing_here"):
        executable()["nothing_here"]


def test_after_all_that_a_right_call_still_works() -> None:
    a, b = executable()(*GOOD)
    np.testing.assert_array_equal(a, f32(3, 4) * 2)
    np.testing.assert_allclose(b, np.exp(GOOD[2]), rtol=1e-6)


def test_strided_and_read_only_inputs() -> None:
    x = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2]
    w = np.broadcast_to(np.float32(1), (3, 4))
    w.flags.writeable = False
    before = x.copy()
    a, _ = executable()(x, w, GOOD[2])
    np.testing.assert_array_equal(a, before + 1)
    np.testing.assert_array_equal(x, before)


def test_empty_tensors() -> None:
    a, _ = executable()(f32(0, 4), f32(0, 4), f32(2))
    assert a.shape == (0, 4)


@pytest.mark.parametrize("how", ["native", "bytecode"])
def test_an_output_beyond_all_memory_is_named_with_its_size(how: str) -> None:
    exe = unity.compile(parse(OUTER))
    call = exe if how == "native" else partial(exe.trace, lambda _: None)
    x = np.ones(2**23, np.float32)
    with pytest.raises(unity.UnityError, match=r"the output.*\[8388608, 8388608\].*262,144.0 GiB"):
        call(x)
    np.testing.assert_array_equal(call(f32(3)), f32(3, 3))


def test_intermediate_results_beyond_all_memory_are_refused() -> None:
    exe = unity.compile(parse(INNER))
    with pytest.raises(unity.UnityError, match=r"intermediate results.*GiB"):
        exe(np.ones(2**23, np.float32))
    np.testing.assert_allclose(exe(f32(3)), f32(3) * 6)
