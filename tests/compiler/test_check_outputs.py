"""Outputs that hold what was in memory before are refused; kernels that set all of them are not."""

from __future__ import annotations

from random import Random

import pytest

import unity
from tests.compiler.test_check_accesses import module
from tests.generators.prim_func import prim_func
from tests.transform.schedule.programs import random_chain, random_kernel
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform.check_outputs import check_outputs

READ = "kernel: 'c' is read before anything is stored in it"
UNSET = "kernel: of the output 'c' "
REFUSED = {
    "nothing": (
        "t = T.alloc((n,), 'float32')\nfor i in range(n):\n    t[i] = a[i]",
        "nothing is stored",
    ),
    "a sum without an init": (
        """
for i, k in T.grid(n, 4):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        c[vi] += a[vi]""",
        READ,
    ),
    "read first": ("for i in range(n):\n    c[i] = c[i] + a[i]", READ),
    "one short": (
        "for i in range(n - 1):\n    c[i] = a[i]",
        "nothing is stored behind index n - 2 of axis 0, whose extent is n",
    ),
    "half of it": (
        "for i in range(n // 2):\n    c[i] = a[i]",
        "nothing is stored behind index n // 2 - 1 of axis 0, whose extent is n",
    ),
    "not the first": (
        "for i in range(n - 1):\n    c[i + 1] = a[i]",
        "nothing is stored at the begin of axis 0, whose extent is n",
    ),
    "half of it by a block, and not even that": (
        """
for i in range(n // 2):
    with T.block("half"):
        vi = T.axis.spatial(n, i)
        T.where(i < 7)
        c[vi] = a[vi]""",
        "nothing is stored behind index T.min(6, n // 2 - 1) of axis 0, whose extent is n",
    ),
    "where a loop's variable says": (
        "for i in range(n):\n    if i > 3:\n        c[i] = a[i]",
        "nothing is stored at the begin of axis 0, whose extent is n",
    ),
    "all but the last, in tiles": (
        """
for io, ii in T.grid((n + 15) // 16, 16):
    with T.block("tile"):
        vi = T.axis.spatial(n, io * 16 + ii)
        T.where(io * 16 + ii < n - 1)
        c[vi] = a[vi]""",
        "nothing is stored behind index n - 2 of axis 0, whose extent is n",
    ),
    "where what is loaded says": (
        "for i in range(n):\n    if a[i] > 0:\n        c[i] = a[i]",
        "nothing is stored, where all of 'a' is -1.0",
    ),
    "where what is computed of it says": (
        """
t = T.alloc((n,), "float32")
for i in range(n):
    t[i] = a[i] * 2.0 - 5.0
for i in range(n):
    v = T.let(t[i] + 1.0)
    if v > 3.0 and i >= 0:
        c[i] = v""",
        "nothing is stored, where all of 'a' is -1.0",
    ),
    "on either side of a number, and not where there is none": (
        """
for i in range(n):
    if a[i] > 0:
        c[i] = a[i]
    if a[i] <= 0:
        c[i] = 0.0""",
        "nothing is stored, where all of 'a' is nan",
    ),
    "what is found, and nothing behind it": (
        """
t = T.alloc((1,), "int64")
t[0] = 0
for i in range(n):
    if a[i] > 0:
        c[t[0]] = a[i]
        t[0] = t[0] + 1""",
        "nothing is stored, where all of 'a' is -1.0",
    ),
    "only the init": (
        """
for i, k in T.grid(n - 1, 4):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi]""",
        "nothing is stored behind index n - 2 of axis 0, whose extent is n",
    ),
}
TAKEN = {
    "by two loops": """
for i in range(n - 1):
    c[i] = a[i]
for i in range(n):
    if i > n - 2:
        c[i] = 0.0""",
    "what is left over by another loop": """
for i in range(n // 8 * 8):
    c[i] = a[i]
for i in range(n % 8):
    c[n // 8 * 8 + i] = a[i]""",
    "whole tiles, where that is all": "for i in range(n // 8 * 8):\n    c[i] = a[i]",
    "the last by itself": "for i in range(n - 1):\n    c[i] = a[i]\nc[n - 1] = 0.0",
    "zero, then half": """
for i in range(n):
    c[i] = 0.0
for i in range(n // 2):
    c[i] += a[i]""",
    "both halves": """
for i in range(n // 2):
    c[i] = a[i]
for i in range(n - n // 2):
    c[n // 2 + i] = a[i]""",
    "backwards": "for i in range(n):\n    c[n - 1 - i] = a[i]",
    "where an index says": "for i in range(n):\n    c[T.cast('int64', a[i])] = 1.0",
    "by a loop of unknown length": """
for i in range(n):
    for j in range(i, i + 1):
        c[j] = a[i]""",
    "as long as a condition holds": """
t = T.alloc((1,), "int64")
t[0] = 0
while t[0] < n:
    c[t[0]] = a[t[0]]
    t[0] = t[0] + 1""",
    "on both sides of a condition": """
for i in range(n):
    if a[i] > 0:
        c[i] = a[i]
    else:
        c[i] = 0.0""",
    "first without a condition": """
for i in range(n):
    c[i] = 0.0
    if a[i] > 0:
        c[i] = a[i]""",
    "under a condition that always holds": """
for i in range(n):
    if a[i] * a[i] >= 0.0 or T.isnan(a[i]):
        c[i] = a[i]""",
    "in tiles, the last cut off": """
for io, ii in T.grid((n + 15) // 16, 16):
    if io * 16 + ii < n:
        c[io * 16 + ii] = a[io * 16 + ii]""",
    "the ends by themselves": """
for i in range(n):
    if i == 0 or i == n - 1:
        c[i] = 0.0
    else:
        c[i] = a[i - 1] + a[i + 1]""",
    "where some size is large enough": """
if n > 16:
    for i in range(n):
        c[i] = a[i]""",
    "what is found, then the rest": """
t = T.alloc((1,), "int64")
t[0] = 0
for i in range(n):
    if a[i] > 0:
        c[t[0]] = a[i]
        t[0] = t[0] + 1
while t[0] < n:
    c[t[0]] = 0.0
    t[0] = t[0] + 1""",
    "where a valid index says": """
for i in range(n):
    if a[i] >= 0.0:
        c[T.cast('int64', a[i])] = 1.0""",
    "by a C function": 'T.call_extern("x.f", n, T.address_of(a[0]), T.address_of(c[0]))',
    "what it has stored": """
for i in range(n):
    c[i] = a[i]
for i in range(n):
    c[i] = c[i] * 2.0""",
}


def _fixed(body: str, shape: str) -> IRModule:
    lines = "\n".join("    " + line for line in body.splitlines())
    return parse(f"""
@script.prim_func
def kernel(a: f32[Buffer, 8], c: f32[Buffer, {shape}]) -> None:
{lines}

@script.function
def main(a: f32[Tensor, 8]) -> f32[Tensor, {shape}]:
    c = R.call_tir(kernel, (a,), out=f32[Tensor, {shape}])
    return c
""")


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(UnityError) as caught:
        unity.compile(module(body), cache=None)
    assert caught.value.message == (message if message == READ else UNSET + message)
    assert caught.value.span is not None


@pytest.mark.parametrize("case", TAKEN)
def test_taken(case: str) -> None:
    check_outputs(module(TAKEN[case]))


@pytest.mark.parametrize(
    ("body", "shape", "message"),
    [
        ("for i in range(8):\n    c[i, i] = a[i]", "8, 8", "8 of 64 elements are stored at most"),
        ("for i in range(5):\n    c[i * 2] = a[i]", "9", "5 of 9 elements are stored at most"),
        (
            "for i in T.vectorized(4):\n    c[i] = a[i]",
            "8",
            "nothing is stored behind index 3 of axis 0, whose extent is 8",
        ),
        (
            "c[0] = a[0]\nc[1] = a[1]",
            "3",
            "nothing is stored at the end of axis 0, whose extent is 3",
        ),
        (
            "for i in range(8):\n    if i < 4:\n        c[i] = a[i]",
            "8",
            "nothing is stored behind index 3 of axis 0, whose extent is 8",
        ),
        (
            "for i in range(8):\n    if i % 2 == 0:\n        c[i] = a[i]",
            "8",
            "nothing is stored to the element [1]",
        ),
        (
            "for i, j in T.grid(8, 8):\n    if i <= j:\n        c[i, j] = a[j]",
            "8, 8",
            "nothing is stored to the element [1, 0]",
        ),
    ],
)
def test_refused_of_fixed_sizes(body: str, shape: str, message: str) -> None:
    with pytest.raises(UnityError) as caught:
        check_outputs(_fixed(body, shape))
    assert caught.value.message == UNSET + message


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("for i in range(4):\n    c[i * 2] = a[i]\n    c[i * 2 + 1] = a[i]", "8"),
        ("for i, j in T.grid(2, 4):\n    c[i * 4 + j] = a[j]", "8"),
        ("for i in range(8):\n    for j in range(i, 8):\n        c[j] = a[i]", "8"),
        ("c[0, 0] = a[0]", "1, 1"),
        ("for i in range(8):\n    if i != 3:\n        c[i] = a[i]\nc[3] = 0.0", "8"),
        (
            "for i, j in T.grid(8, 8):\n    if i <= j:\n        c[i, j] = 1.0\n        c[j, i] = 0",
            "8, 8",
        ),
        ("for i, j in T.grid(2, 5):\n    if i * 5 + j < 8:\n        c[i * 5 + j] = a[j]", "8"),
        ("c[T.ramp(0, 1, 8)] = a[T.ramp(0, 1, 8)]", "8"),
        ("for i in range(0):\n    c[i] = a[i]", "0"),
        ("for i, j in T.grid(8, 9):\n    if T.cast('int64', a[i]) == j:\n        c[i] = 1.0", "8"),
    ],
)
def test_taken_of_fixed_sizes(body: str, shape: str) -> None:
    check_outputs(_fixed(body, shape))


def test_an_output_in_the_place_of_an_input_holds_that() -> None:
    check_outputs(
        parse("""
@script.prim_func
def add(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    for i in range(4):
        c[i] += a[i]

@script.function
def main(a: f32[Tensor, 8], b: f32[Tensor, 8]) -> f32[Tensor, 8]:
    c = R.call_tir(add, (a, b), out=f32[Tensor, 8], inplace=(1,))
    return c
""")
    )


def test_what_generators_make_is_taken() -> None:
    for seed in range(60):
        random = Random(seed)
        for func in (random_kernel(random), random_chain(random), prim_func(random, random)):
            check_outputs(IRModule({"k": func}))
