"""Tensors given to kernels have their buffers' shapes, or are refused, at run time at last."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, stays
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import parse, print_module
from unity.transform.graph import MatchKernelCalls

PROGRAM = """
n = dim("n")
m = dim("m")

@script.prim_func
def join(a: f32[Buffer, n], b: f32[Buffer, n + m], c: f32[Buffer, n], d: f32[Buffer, m]) -> None:
    for i in range(n):
        c[i] = a[i] + b[i]
    for j in range(m):
        d[j] = b[n + j]

@script.function
def main(x: f32[Tensor, {x}], y: f32[Tensor, {y}]) -> R.Tuple(f32[Tensor, {c}], f32[Tensor, {d}]):
    first, second = R.call_tir(join, (x, y), out=(f32[Tensor, {c}], f32[Tensor, {d}]))
    return first, second
"""


@pytest.mark.parametrize("y", ["m", "5", "R.rank(1)", "..."])
@pytest.mark.parametrize("x", ["n", "3", "R.rank(1)", "..."])
def test_what_is_not_known_is_checked(x: str, y: str) -> None:
    module = parse(PROGRAM.format(x=x, y=y, c="n" if x == "n" else "3", d="2"))
    assert unity.structural_equal(module, parse(print_module(module)))
    apply(MatchKernelCalls(), module)
    exe = unity.compile(module)
    for a, b in product((2, 3, 4), (4, 5, 6)):
        args = [np.arange(a, dtype=np.float32), np.arange(b, dtype=np.float32) + 1]
        fits = b == a + 2 and (x == "n" or a == 3) and (y != "5" or b == 5)
        for run in (exe, lambda *given: interpret(module, "main", given)):
            if not fits:
                with pytest.raises(UnityError, match=r"got \d|\d here"):
                    run(*args)
                continue
            found = run(*args)
            assert isinstance(found, tuple)
            first, second = found
            np.testing.assert_array_equal(np.asarray(first), args[0] + args[1][:a])
            np.testing.assert_array_equal(np.asarray(second), args[1][a:])


def test_what_the_types_show_is_not_checked() -> None:
    stays(MatchKernelCalls(), PROGRAM.format(x="3", y="5", c="3", d="2"))


def test_an_output_of_another_size_is_refused() -> None:
    """It would hold what was in memory before."""
    exe = unity.compile(parse(PROGRAM.format(x="n", y="m", c="n * 2", d="2")))
    with pytest.raises(UnityError, match="expected n \\* 2 = 6"):
        exe(np.ones(3, np.float32), np.ones(5, np.float32))


def test_library_functions_are_kernels() -> None:
    exe = unity.compile(
        parse("""
n = dim("n")
m = dim("m")

@script.function
def main(x: f32[Tensor, n, 3], y: f32[Tensor, 3, m]) -> f32[Tensor, n, 4]:
    return R.call_library("openblas.gemm", (x, y), out=f32[Tensor, n, 4])
""")
    )
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(exe(x, y), x @ y)
    with pytest.raises(UnityError, match="axis 1: expected 4, got 2"):
        exe(x, y[:, :2].copy())
    assert [r.choice for r in exe.explain()] == ["library:openblas.gemm"]
