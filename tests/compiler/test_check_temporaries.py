"""Temporaries that are read before anything is stored in them are refused; others are not."""

from __future__ import annotations

from random import Random

import pytest

import unity
from tests.compiler.test_check_accesses import module
from tests.generators.prim_func import prim_func
from tests.transform.schedule.programs import random_chain, random_kernel
from unity.errors import UnityError
from unity.transform.check_temporaries import check_temporaries

ONE = 't = T.alloc((1,), "float32")\n'
ALL = 't = T.alloc((n,), "float32")\n'
REFUSED = {
    "never stored to": ALL + "for i in range(n):\n    c[i] = t[i] + a[i]",
    "a sum that begins nowhere": ONE
    + "for i in range(n):\n    t[0] = t[0] + a[i]\n    c[i] = t[0]",
    "stored to too late": ALL
    + "for i in range(n):\n    c[i] = t[i]\nfor i in range(n):\n    t[i] = a[i]",
    "under a condition, but never stored to": ONE
    + "for i in range(n):\n    if i > 3:\n        c[i] = t[0]",
    "of another iteration": """
for i in range(n):
    t = T.alloc((1,), "float32")
    c[i] = t[0]
    t[0] = a[i]""",
    "a reduction without an init": ONE
    + """
for i in range(n):
    with T.block("sum"):
        vi = T.axis.reduce(n, i)
        t[0] += a[vi]
for i in range(n):
    c[i] = t[0]""",
    "as a bound": 't = T.alloc((1,), "int64")\nfor i in range(t[0]):\n    c[i] = 0.0',
}
TAKEN = {
    "stored first": ALL
    + "for i in range(n):\n    t[i] = a[i]\nfor i in range(n):\n    c[i] = t[i]",
    "by an earlier iteration": ONE
    + "for i in range(n):\n    if i > 0:\n        c[i] = t[0]\n    t[0] = a[i]",
    "chosen": ONE + "for i in range(n):\n    c[i] = T.select(i > 0, t[0], 0.0)\n    t[0] = a[i]",
    "a loop that is empty at first": ALL
    + "for i in range(n):\n    for j in range(i):\n        c[i] = t[j]\n    t[i] = a[i]",
    "with an init": ONE
    + """
for i in range(n):
    with T.block("sum"):
        vi = T.axis.reduce(n, i)
        with T.init():
            t[0] = 0.0
        t[0] += a[vi]
for i in range(n):
    c[i] = t[0]""",
    "under the same condition": ONE
    + "if n > 3:\n    t[0] = 1.0\nfor i in range(n):\n    if n > 3:\n        c[i] = t[0]",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(UnityError) as caught:
        unity.compile(module(REFUSED[case]), cache=None)
    assert caught.value.message == "kernel: 't' is read before anything is stored in it"
    assert caught.value.span is not None


@pytest.mark.parametrize("case", TAKEN)
def test_taken(case: str) -> None:
    check_temporaries("kernel", module(TAKEN[case]).prim_funcs()["kernel"])


def test_what_generators_make_is_taken() -> None:
    for seed in range(60):
        random = Random(seed)
        for func in (random_kernel(random), random_chain(random), prim_func(random, random)):
            check_temporaries("k", func)
