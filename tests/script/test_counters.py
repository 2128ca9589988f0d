"""Counters of loops, and scalars, as numbers and indices: what Python computes of the same text."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import constants_of, parse, print_module

HEAD = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 4], k: R.Prim("int64"), t: i64[Tensor, ()]):
"""
BODIES = {
    "factor": """
    for i in range(n):
        x = x * i
    return x
""",
    "beside numbers": """
    y = x
    for i in range(n):
        y = y + x * (i + 1) - 0.5 * i + x * (k * i)
    return y
""",
    "index": """
    y = R.zeros((4,))
    for i in range(n):
        for j in range(t):
            y = y + x[i] * i + x[i, j] + x[..., j][i]
    return y
""",
    "slices": """
    y = R.zeros((4,))
    for i in range(n):
        y = y + R.sum(x[i:], axis=0) + R.sum(x[i : i + 2], axis=0) * i
    return y
""",
    "branches": """
    for i in range(n):
        if i % 2 == 0:
            x = x + i
        else:
            x = x - 1.0
        if i > k:
            break
    return x
""",
    "backwards": """
    for i in range(n - 1, -1, -1):
        x = x + x[i] * i
    return x
""",
    "from below zero": """
    for i in range(-3, k):
        x = x + x[i] * i
    return x
""",
    "shape": """
    for i in range(1, k):
        x = x * i + R.sum(R.full((i, 2), 0.5))
    return x
""",
    "nested": """
    for i in range(n):
        for j in range(i, n):
            x = x + x[j] * (i * j)
    return x
""",
    "returned": """
    for i in range(n):
        if i == k:
            return x[i] * i
    return R.zeros((4,))
""",
    "another dtype": """
    for i in range(n):
        x = R.astype(R.astype(x, "float16") * i, "float32")
    return x
""",
    "a name from before": """
    i = 7
    for i in range(n):
        x = x + x[i]
    return x * i
""",
    "counted by hand": """
    i, total, s = 0, 0, 0.5
    while i < n:
        x = x * i + s
        total += i * i
        s = s * 2
        i += 1
    return x * total
""",
    "states that become others": """
    s, m, e = 0.0, 0, 1
    for i in range(k):
        s = s + R.sum(x)
        m = R.maximum(m, t)
        e = e * 0.5 if i < 0 else e
    return x * s + m
""",
    "chosen": """
    s = 1 if k > 2 else 2
    if R.sum(x) > 0.0:
        p = 3
    else:
        p = -s
    return x * s + x * p
""",
    "parts": """
    return x[k], x[t], x[:, k], x[..., t], x[k, None, t], x[1:, k], x[-k], x[k - 1, k % 2]
""",
    "scalars of scalars": """
    a = k * 2 + 1
    b = -a if a > 3 and not a == 5 else abs(a - 7)
    return x * a, x + (b // 2), x * min(a, b, k), x * float(a)
""",
}
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
NUMPY = SimpleNamespace(
    zeros=lambda shape: np.zeros(shape, np.float32), full=np.full, sum=np.sum, maximum=np.maximum,
    astype=lambda x, kind: x.astype(kind),
)  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
def test_they_are_those_of_python(case: str) -> None:
    module = parse(HEAD + BODIES[case])
    assert unity.structural_equal(module, parse(print_module(module), constants_of(module)))
    names: dict[str, object] = {"R": NUMPY}
    exec(f"def main(x, k, t, n):\n{BODIES[case]}", names)
    main = names["main"]
    assert callable(main)
    exe = unity.compile(module)
    assert exe.native() == {"main": "native"}
    for k in (2, 3):
        wanted = main(X, k, 3, 5)
        args = [X, k, np.asarray(3)]
        for found in (interpret(module, "main", args), exe(*args)):
            fields = found if isinstance(found, tuple) else (found,)
            expected = wanted if isinstance(wanted, tuple) else (wanted,)
            for mine, right in zip(fields, expected, strict=True):
                got = np.asarray(mine)
                assert got.dtype == np.float32
                np.testing.assert_allclose(got, np.asarray(right), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ("R.split(x, (i,))", "split: can't prove that the index i lies between 0 and n", "x[:k]"),
        ("R.sum(x, axis=i)", "an attribute|axis", ""),
        ("(x, x)[i]", "which field it is must be known when the program is compiled", "R.stack"),
        ("x[i, i, i]", "an index of 3 axes for a tensor of 2", ""),
        ("x[x]", "an index holds a tensor", "R.take"),
        ("x * (i / 2)", "a dim must be an integer expression", "float(n) / 2"),
        ("x[0.5 * i]", "an index holds a tensor", "R.take"),
    ],
)
def test_refused(line: str, said: str, hint: str) -> None:
    text = f"{HEAD}    for i in range(n):\n        x = {line}\n    return x\n"
    with pytest.raises(unity.UnityError, match=said) as caught:
        parse(text)
    assert caught.value.span is not None
    assert hint in (caught.value.hint or "")


def test_an_index_is_checked_where_bounds_are() -> None:
    module = parse(f"{HEAD}    return x[k]\n")
    exe = unity.compile(module, check_bounds=True)
    np.testing.assert_array_equal(exe(X, -1, np.asarray(0)), X[-1])
    with pytest.raises(unity.UnityError, match="index"):
        exe(X, 5, np.asarray(0))
