"""return in a branch or a loop, break and continue: as Python does, of any program."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unity
from unity import script
from unity.interpreter import interpret
from unity.script import R, Tensor, dim, f32, i64, parse, print_module

n, m = dim("n"), dim("m")
X = np.linspace(0, 2, 4).astype(np.float32)


@script.function
def early(x: f32[Tensor, n]) -> f32[Tensor, n]:
    if R.sum(x) > 10.0:
        return x
    y = R.exp(x)
    if R.sum(y) > 50.0:
        z = y * 2.0
        if R.max(y) > 30.0:
            return z
        y = z + 1.0
    return R.negative(y)


@script.function
def nested(x: f32[Tensor, n], k: i64[Tensor, ()]) -> f32[Tensor, n]:
    for i in range(n):
        for j in range(k):
            x = x + 1.0
            if R.sum(x) > 20.0 + R.astype(i, "float32"):
                return x * 10.0
            if j == 2:
                break
    return R.negative(x)


@script.function
def endless(x: f32[Tensor, n]) -> tuple[f32[Tensor, n], i64[Tensor, ()]]:
    i = R.const(0)
    while True:
        i = i + 1
        if i == 3:
            continue
        x = x + 1.0
        if R.sum(x) > 30.0:
            return x, i


@pytest.mark.parametrize("function", [early, endless])
def test_they_are_native_code(function: script.ScriptFunction[..., object]) -> None:
    module = function.module()
    assert unity.structural_equal(module, parse(print_module(module)))
    exe = unity.compile(module)
    assert exe.native() == {function.name: "native"}
    for scale in (0.0, 0.5, 1.0, 3.0):
        want, got = interpret(module, function.name, [X * scale]), exe(X * scale)
        for a, b in zip(want if isinstance(want, tuple) else [want],
                        got if isinstance(got, tuple) else [got], strict=True):  # fmt: skip
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)


def test_a_return_in_a_loop_in_a_loop() -> None:
    def wanted(x: Any, k: int) -> Any:
        for i in range(len(x)):
            for j in range(k):
                x = x + np.float32(1)
                if x.sum() > 20 + i:
                    return x * 10
                if j == 2:
                    break
        return -x

    exe = unity.compile(nested)
    assert exe.native() == {"nested": "native"}
    for k in range(6):
        np.testing.assert_allclose(exe(X, np.asarray(k)), wanted(X, k), rtol=1e-6)


def test_what_a_loop_returns_may_have_another_size_each_time() -> None:
    @script.function
    def grown(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
        y = R.match_cast(x, f32[Tensor, R.rank(1)])
        while R.sum(y) < 50.0:
            y = R.concat((y, y), axis=0)
            if R.sum(y) > 20.0:
                return R.negative(y)
        return y

    for scale in (1.0, 2.0, 20.0):
        want = interpret(grown.module(), "grown", [X * scale])
        np.testing.assert_allclose(np.asarray(want), unity.compile(grown)(X * scale))


def test_a_tuple_and_a_shape_leave_a_loop() -> None:
    @script.function
    def pair(x: f32[Tensor, n, m]) -> tuple[f32[Tensor, n, m], R.Object]:
        while R.sum(x) < 100.0:
            x = x * 2.0
            if R.sum(x) > 30.0:
                return x, R.shape(n, 3)
        return R.negative(x), R.shape(n, 3)

    x = X.reshape(2, 2)
    for scale in (1.0, 200.0):
        a, b = interpret(pair.module(), "pair", [x * scale]), unity.compile(pair)(x * scale)
        assert isinstance(a, tuple)
        np.testing.assert_allclose(np.asarray(a[0]), b[0])
        assert a[1] == b[1] == (2, 3)


def program(seed: int) -> str:
    """A random function of numbers, which Python runs as well."""
    pick = random.Random(seed)
    count = iter(range(1000))
    lines: list[str] = []

    def condition() -> str:
        name = pick.choice("xy")
        return f"{name} {pick.choice(['<', '>'])} {pick.randint(-4, 12)}.0"

    def body(indent: str, depth: int, loop: bool) -> None:
        for _ in range(pick.randint(1, 3)):
            kind = pick.randrange(7 if depth else 3)
            if kind < 3:
                to, of = pick.choice("xy"), pick.choice("xy")
                lines.append(f"{indent}{to} = {of} {pick.choice('+-*')} {pick.randint(0, 3)}.0")
            elif kind < 5:
                lines.append(f"{indent}if {condition()}:")
                body(indent + "    ", depth - 1, loop)
                leaves(indent + "    ", loop)
                if pick.random() < 0.5:
                    lines.append(f"{indent}else:")
                    body(indent + "    ", depth - 1, loop)
                    if pick.random() < 0.3:
                        leaves(indent + "    ", loop)
            elif kind == 5:
                i = f"i{next(count)}"
                lines.append(f"{indent}{i} = zero")
                lines.append(f"{indent}while {i} < {pick.randint(1, 4)}.0:")
                lines.append(f"{indent}    {i} = {i} + 1.0")
                body(indent + "    ", depth - 1, True)
            else:
                v = f"v{next(count)}"
                lines.append(f"{indent}for {v} in (1.0, 2.0):")
                lines.append(f"{indent}    x = x + {v}")
                body(indent + "    ", min(depth - 1, 1), True)

    def leaves(indent: str, loop: bool) -> None:
        kinds = ["return x + y", "return y"] + (["break", "continue"] * 2 if loop else [])
        lines.append(indent + pick.choice([*kinds, "pass"]))

    body("    ", 3, False)
    return "\n".join([*lines, "    return x - y"])


HEAD = """
@script.function
def main(x: f32[Tensor, ()], y: f32[Tensor, ()], zero: f32[Tensor, ()]):
"""
VALUES = [(0.0, 0.0), (3.0, -1.0), (-5.0, 9.0), (11.0, 2.0)]


def by_python(text: str) -> Callable[[Any, Any, Any], Any]:
    names: dict[str, Any] = {}
    exec("def main(x, y, zero):\n" + text, names)
    found: Callable[[Any, Any, Any], Any] = names["main"]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_do_as_python(seed: int) -> None:
    text = program(seed)
    module = parse(HEAD + text)
    runs: list[Callable[..., object]] = [lambda *args: interpret(module, "main", args)]
    if seed % 4 == 0:
        runs.append(unity.compile(module))
    for x, y in VALUES:
        args = [np.asarray(v, np.float32) for v in (x, y, 0.0)]
        with np.errstate(all="ignore"):
            want = by_python(text)(*args)
        for run in runs:
            np.testing.assert_allclose(np.asarray(run(*args)), want, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["break", "return x"], "break stands in no loop"),
        (["if R.sum(x) > 0.0:", "    continue", "return x"], "continue stands in no loop"),
        (["while True:", "    break", "    x = x + 1.0", "return x"], "nothing runs after a break"),
        (["if R.sum(x) > 0.0:", "    return x"], "a return in one branch only"),
        (
            ["for i in (1, 2, 3, 4, 5, 6, 7, 8, 9):", "    if R.sum(x) > 0.0:",
             "        continue", "    x = x + 1.0", "return x"],
            "there are more than 256 ways",
        ),
        (
            ["while R.sum(x) > 0.0:", "    x = x - 1.0", "    if R.sum(x) < 9.0:",
             '        return R.text("small")', 'return R.text("none")'],
            "a loop can't return R.Object",
        ),
        (
            [f"for i in {tuple(range(110))}:", "    x = x + 1.0", "    if R.sum(x) > 0.0:",
             "        break", "return x"],
            "more than 60 branches with a way out",
        ),
    ],
)  # fmt: skip
def test_mistakes(lines: list[str], said: str) -> None:
    text = "\n".join(
        ["@script.function", "def main(x: f32[Tensor, 4]):", *("    " + line for line in lines)]
    )
    with pytest.raises(unity.UnityError, match=said):
        parse(text)


def test_the_bounds_of_a_range_are_those_before_it() -> None:
    """What the body assigns moves no end, runs no call again and is no counter."""
    calls: list[int] = []

    def host() -> Any:
        calls.append(1)
        return np.asarray(3)

    @script.function
    def ends(x: f32[Tensor, n], k: i64[Tensor, ()]) -> f32[Tensor, n]:
        i_count = k
        for i in range(k):
            k = k - 1
            for i in range(i_count):
                x = x + 1.0
                for i in range(i_count):
                    if i == 2:
                        break
                    x = x + 0.125
        return x + R.astype(i_count, "float32")

    def wanted(x: Any, k: int) -> Any:
        return x + k * k * (1 + 0.125 * min(k, 2)) + k

    exe = unity.compile(ends)
    for k in (1, 3, 6):
        given = [X, np.asarray(k)]
        np.testing.assert_allclose(exe(*given), wanted(X, k), rtol=1e-6)
        np.testing.assert_allclose(
            np.asarray(interpret(ends.module(), "ends", given)), wanted(X, k), rtol=1e-6
        )

    unity.register_function("test.leaving.count", host, override=True)

    @script.function
    def asks(x: f32[Tensor, n]) -> f32[Tensor, n]:
        for _ in range(R.call_packed("test.leaving.count", out=i64[Tensor, ()])):
            x = x + 1.0
        return x

    np.testing.assert_allclose(unity.compile(asks)(X), X + 3)
    assert calls == [1]
