"""Tuples, lists and loops over them, as in Python; arguments that parameters take."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import constants_of, parse, print_module

X = np.arange(8, dtype=np.float32)
A, B, C, D = X[:2], X[2:4], X[4:6], X[6:]
HEAD = """
n = dim("n")

@script.function
def less(a: f32[Tensor, 2], b: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return a - b

@script.function
def times(x: f32[Tensor, n], k: f32[Tensor, ()], i: i64[Tensor, ()]) -> f32[Tensor, n]:
    return x * k - R.astype(i, "float32")

@script.function
def scaled(of: R.Tuple(R.Tuple(R.Prim("int64"), R.Prim("float32")), f32[Tensor, n])):
    return of[1] * of[0][1] + of[0][0]

@script.function
def main(x: f32[Tensor, 8]):
    parts = R.split(x, 4)
"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("a, *rest, d = parts\n    return (a + d, *rest)", (A + D, B, C)),
        ("a, b, c, d, *none = parts\n    return a, len(none)", (A, np.int64(0))),
        ("return less(*parts[1:3]), less(*parts[::-3]), parts[-1]", (B - C, D - A, D)),
        ("y = R.zeros((2,))\n    for p in parts:\n        y = y + p\n    return y", A + B + C + D),
        (
            "y = R.zeros((2,))\n    for k, (p, q) in enumerate(zip(parts, reversed(parts))):\n"
            "        y = y + k * p * q\n    return y",
            sum((k * p * q for k, p, q in zip(range(4), (A, B, C, D), (D, C, B, A), strict=True))),
        ),
        ("ys = []\n    for p in parts:\n        ys = ys + [p, p]\n    return len(ys), ys[1]",
         (np.int64(8), A)),
        ("return R.stack([p * float(k) for k in range(2) for p in parts[:2]])",
         np.stack([0 * A, 0 * B, A, B])),
        ("return times(x, 2, i=3), times(x, len(parts), 2), times(k=2, x=x, i=R.prim(1))",
         (X * 2 - 3, X * 4 - 2, X * 2 - 1)),
        ("return scaled(((3, 2), x)), scaled([(len(parts), 0.5), parts[0]])",
         (X * 2 + 3, A * 0.5 + 4)),
    ],
)  # fmt: skip
def test_as_in_python(lines: str, expected: object) -> None:
    module = parse(f"{HEAD}    {lines}\n")
    assert unity.structural_equal(module, parse(print_module(module), constants_of(module)))
    for found in (interpret(module, "main", [X]), unity.compile(module)(X)):
        mine_all = found if isinstance(found, tuple) else (found,)
        wanted_all = expected if isinstance(expected, tuple) else (expected,)
        for mine, wanted in zip(mine_all, wanted_all, strict=True):
            np.testing.assert_allclose(np.asarray(mine), np.asarray(wanted))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a, b, c, d, e, *f = parts\n    return a", "6 names for 4 values"),
        ("for row in x:\n        x = x + 1.0\n    return x", "'x' is nothing that a loop goes thr"),
        (
            "for p in parts:\n        x = x + 1.0\n    else:\n        x = x\n    return x",
            r"for \.\.\. else is not part of",
        ),
        ("return [p for p in x]", "a list is made of tuples, lists and ranges that are known"),
        ("return [p for p in parts if R.sum(p) > 1.0]", "without conditions"),
        ("return parts[0:1.5]", "ends of a part of a tuple are integers"),
        ("return parts[::0]", "ends of a part of a tuple are integers"),
        ("return x.astype('float16')", "a value of a graph function has no 'astype'"),
        ("return round(x)", "'round' computes nothing of a tensor"),
        (
            "@script.function\n    def g(y: f32[Tensor, 8]) -> f32[Tensor, 8]:\n"
            "        return g(y)\n    return R.add(g, x)",
            "'g' can be called only: it became a function of the module",
        ),
        ("return main(x)", "'main' is called before it is known what it returns"),
        ("return times(x, 1, 2.5)", "2.5 is no int64"),
        ("return scaled(((3.5, 2), x))", "3.5 is no int64"),
        ("return scaled((2, x))", r"expected \(int64 scalar, float32 scalar\), got"),
    ],
)
def test_refused(lines: str, said: str) -> None:
    with pytest.raises(unity.UnityError, match=said) as caught:
        parse(f"{HEAD}    {lines}\n")
    assert caught.value.span is not None
