"""Operators of Python on tensors and scalars of graph functions: as numpy has them."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import script
from unity.interpreter import interpret
from unity.script import Tensor, dim, i64, parse, print_module

n = dim("n")
K = np.arange(12).reshape(4, 3) - 5
B = K > 0


HEAD = 'n = dim("n")\n@script.function\ndef main'
BITS = """(k: i64[Tensor, n, 3], b: boolean[Tensor, n, 3]):
    k2 = k
    k2 &= 6
    k2 |= 1
    ints = k & 3, 3 & k, k | 8, k ^ 5, ~k, k << 1, k >> 1, +k, k2
    return *ints, b & (k > 2), b | False, b ^ b, ~b
"""


def test_of_integers_and_bools() -> None:
    k2 = (K & 6) | 1
    wanted = (
        *(K & 3, K & 3, K | 8, K ^ 5, ~K, K << 1, K >> 1, K, k2),
        *(B & (K > 2), B, B ^ B, ~B),
    )
    module = parse(HEAD + BITS)
    assert unity.structural_equal(module, parse(print_module(module)))
    for found in (interpret(module, "main", [K, B]), unity.compile(module)(K, B)):
        assert isinstance(found, tuple)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
            assert np.asarray(got).dtype == want.dtype


SCALARS = """(k: R.Prim("int64"), c: R.Prim("bool")):
    return k & 3, ~k, k << 2, c & (k > 2), ~c, not c, +k, R.zeros((k & 3,))
"""


def test_of_scalars() -> None:
    module = parse(HEAD + SCALARS)
    for found in (interpret(module, "main", [6, True]), unity.compile(module)(6, True)):
        assert isinstance(found, tuple)
        assert [np.asarray(v).tolist() for v in found] == [2, -7, 24, True, False, False, 6, [0, 0]]


FLAG = 4


@script.function
def captured(x: i64[Tensor, n]) -> i64[Tensor, n]:
    return x * (FLAG | 1) + (~FLAG & 7) ^ 1


def test_of_captured_numbers() -> None:
    x = np.arange(3)
    np.testing.assert_array_equal(captured(x), x * 5 + 3 ^ 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x & 1", "operands must be of int dtype"),
        ("~x", "must be of int dtype"),
        ("~n", "no meaning"),
    ],
)
def test_of_floats_and_sizes_they_are_refused(text: str, said: str) -> None:
    with pytest.raises(unity.UnityError, match=said):
        parse(f'n = dim("n")\n@script.function\ndef main(x: f32[Tensor, n]):\n    return {text}\n')
