"""Accesses that leave their buffers: refused where certain, found at run time on request."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

import unity
from tests.generators.prim_func import Options, prim_func
from tests.transform.schedule.programs import random_chain, random_kernel
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform.check_accesses import check_accesses


def module(body: str, params: str = "a: f32[Buffer, n], c: f32[Buffer, n]") -> IRModule:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse(f"""
n = dim("n")
m = dim("m")

@script.function
def main(a: f32[Tensor, n]) -> f32[Tensor, n]:
    c = R.call_tir(kernel, (a,), out=f32[Tensor, n])
    return c

@script.prim_func
def kernel({params}) -> None:
{lines}
""")


REFUSED = {
    "past the end": (
        "for i in range(n):\n    c[i] = a[i + 1]",
        "index 0 of 'a' runs from 1 to n, which must stay below n",
    ),
    "one iteration too many": (
        "for i in range(n + 1):\n    c[i] = 0.0",
        "index 0 of 'c' runs from 0 to n, which must stay below n",
    ),
    "before the start": (
        "for i in range(n):\n    c[i] = a[i - 1]",
        "index 0 of 'a' runs from -1 to n - 2, which must not be negative",
    ),
    "through a block": (
        """
for i, j in T.grid(n, 4):
    with T.block("b"):
        vi, vj = T.axis.remap("SR", i, j)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi + vj]""",
        "index 0 of 'a' runs from 0 to n + 2, which must stay below n",
    ),
    "in a quotient": (
        "for i, k in T.grid(n, 8):\n    c[i] = a[(i + k - 9) // 4]",
        "index 0 of 'a' runs from -3 to (n + 1) // 4 - 1, which must not be negative",
    ),
    "through a variable": (
        't = T.alloc((4,), "float32")\nfor i in range(n):\n    at = T.let(4)\n    c[i] = t[at]',
        "index 0 of 't' runs from 4 to 4, which must stay below 4",
    ),
    "the condition itself": (
        "for i in range(n):\n    if a[i + 1] > 0.0:\n        c[i] = 0.0",
        "index 0 of 'a' runs from 1 to n",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(UnityError) as caught:
        unity.compile(module(body), cache=None)
    assert f"kernel: {message}" in caught.value.message
    assert caught.value.span is not None


PASSED = {
    "a quotient within": "for i, k in T.grid(n, 4):\n    c[i] = a[(i + k) // 4]",
    "guarded": "for i in range(n):\n    c[i] = 0.0\n    if i + 1 < n:\n        c[i] = a[i + 1]",
    "selected": "for i in range(n):\n    c[i] = T.select(i + 1 < n, a[i + 1], 0.0)",
    "maybe no loop": "for i in range(n):\n    for j in range(i - n):\n        c[i] = a[n]",
    "not linear": "for i in range(n):\n    c[i] = a[(i * i + n) % n]",
    "loaded": 'for i in range(n):\n    c[i] = a[T.cast("int64", a[i])]',
}


@pytest.mark.parametrize("case", PASSED)
def test_let_pass(case: str) -> None:
    check_accesses("kernel", module(PASSED[case]).prim_funcs()["kernel"])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_right_is_never_refused(seed: int) -> None:
    random = Random(seed)
    make = random.choice([random_kernel, random_chain])
    check_accesses("kernel", make(random))
    check_accesses("kernel", prim_func(random, random, Options(depth=2)))


def test_a_kernel_called_alone_is_checked() -> None:
    from tests.compiler.shifted import shifted

    with pytest.raises(UnityError, match="index 0 of 'a' runs from 1 to 4"):
        shifted(np.zeros(4, np.float32), np.zeros(4, np.float32))


def test_found_at_run_time() -> None:
    body = 'for i in range(n):\n    c[i] = a[T.cast("int64", a[i])]'
    exe = unity.compile(module(body), check_bounds=True, cache=None)
    x = np.array([2, 0, 1], np.float32)
    np.testing.assert_array_equal(exe(x), x[x.astype(int)])
    with pytest.raises(UnityError, match=r"kernel.*an access is out of bounds"):
        exe(np.array([2, 0, 3], np.float32))


@pytest.mark.rotated(1)
def test_our_own_kernels_stay_within_bounds() -> None:
    program = parse("""
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 50], w: f32[Tensor, 50, 37]) -> f32[Tensor, n, 37]:
    y = R.matmul(x, w)
    z = R.nn.softmax(y, axis=-1)
    return R.permute_dims(R.exp(R.permute_dims(z, axes=(1, 0))), axes=(1, 0))
""")
    exe = unity.compile(program, check_bounds=True, cache=None)
    plain = unity.compile(program, cache=None)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((50, 37), np.float32)
    for n in (0, 1, 7, 33):
        x = rng.standard_normal((n, 50), np.float32)
        np.testing.assert_allclose(exe(x, w), plain(x, w), rtol=1e-5)


PICKING = """
n = dim("n")
m = dim("m")

@script.function
def take(x: f32[Tensor, n, 3], i: i64[Tensor, m]) -> f32[Tensor, m, 3]:
    return R.take(x, i, axis=0)

@script.function
def along(x: f32[Tensor, 2, n], i: i64[Tensor, ()]) -> f32[Tensor, 2]:
    return R.take(x, i, axis=-1)

@script.function
def elements(x: f32[Tensor, 2, n], i: i32[Tensor, 2, m]) -> f32[Tensor, 2, m]:
    return R.gather_elements(x, i, axis=1)

@script.function
def nd(x: f32[Tensor, n, 4], i: i64[Tensor, m, 2]) -> f32[Tensor, m]:
    return R.gather_nd(x, i)
"""


@cache
def picking(checks: bool) -> unity.Executable:
    return unity.compile(parse(PICKING), check_bounds=checks, cache=None)


@pytest.mark.parametrize(
    ("function", "shape", "right", "wrong"),
    [
        ("take", (5, 3), [4, -5], [[0, 5], [-6, 1]]),
        ("along", (2, 5), -5, [5, -6]),
        ("elements", (2, 5), [[0, 4], [-5, 1]], [[[0, 5], [0, 0]], [[0, 0], [-6, 1]]]),
        ("nd", (5, 4), [[4, 3], [-5, -4]], [[[4, 4]], [[-6, 0]]]),
    ],
)
def test_indices_out_of_range_are_clamped_or_with_checks_refused(
    function: str, shape: tuple[int, ...], right: object, wrong: list[object]
) -> None:
    plain, checked = (picking(checks)[function] for checks in (False, True))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    dtype = np.int32 if function == "elements" else np.int64
    inside = np.asarray(right, dtype)
    np.testing.assert_array_equal(np.asarray(checked(x, inside)), np.asarray(plain(x, inside)))
    for indices in wrong:
        outside = np.asarray(indices, dtype)
        assert np.isin(np.asarray(plain(x, outside)), x).all()
        with pytest.raises(UnityError, match=r"index_out_of_range.* expected 0, got 1"):
            checked(x, outside)
