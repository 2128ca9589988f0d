"""Functions within functions, and functions that call each other: as in Python, or refused."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

import unity
from unity import script
from unity.interpreter import interpret
from unity.script import R, Tensor, constants_of, dim, f32, parse, print_module

n = dim("n")
X = np.arange(4, dtype=np.float32)
HEAD = 'n = dim("n")\n@script.function\ndef main(x: f32[Tensor, n], k: R.Prim("int64")):\n'


def test_they_see_what_is_around_them() -> None:
    module = parse(f"""{HEAD}    c = R.exp(x)
    @script.function
    def add(y: f32[Tensor, n]) -> f32[Tensor, n]:
        return y + c
    @script.function
    def twice(c: f32[Tensor, n]) -> f32[Tensor, n]:
        d = add(c)
        return add(d)
    d = x
    for i in range(n):
        @script.function
        def scale(y: f32[Tensor, n]) -> f32[Tensor, n]:
            return y * i + d
        d = scale(twice(x))
    if k > 2:
        d = twice(d)
    return d
""")
    assert unity.structural_equal(module, parse(print_module(module), constants_of(module)))
    c, d = np.exp(X), X
    for i in range(4):
        d = (X + 2 * c) * i + d
    for k, wanted in ((1, d), (3, d + 2 * c)):
        for found in (interpret(module, "main", [X, k]), unity.compile(module)(X, k)):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "said", "hint"),
    [
        (
            "    c = x\n{go}    c = R.exp(x)\n    return go(x)\n",
            "'c' has changed since the def of 'go', which reads it",
            "give 'c' to the closure as an argument",
        ),
        (
            "    c = x\n{go}    for i in range(n):\n        c = go(c)\n    return c\n",
            "'c' has changed since the def of 'go'",
            "write its def behind",
        ),
        (
            "    c = x\n{go}    if k > 2:\n        c = x * 2.0\n    return go(x)\n",
            "'c' has changed since the def of 'go'",
            "as an argument",
        ),
        (
            "{go}    c = R.exp(x)\n    return go(x)\n",
            "'c' is assigned below the closure that reads it",
            "assign it above the closure's def",
        ),
        (
            "{go}    @script.function\n    def c(y: f32[Tensor, n]) -> f32[Tensor, n]:\n"
            "        return y\n    return go(x)\n",
            "'c' can be called only: it became a function of the module",
            "with parameters for what it sees here",
        ),
        ("{go}    return go(x)\n", "unknown name 'c'", ""),
    ],
)
def test_what_python_would_show_them_otherwise_is_refused(body: str, said: str, hint: str) -> None:
    go = (
        "    @script.function\n    def go(y: f32[Tensor, n]) -> f32[Tensor, n]:\n"
        "        return y + c\n"
    )
    with pytest.raises(unity.UnityError, match=said) as caught:
        parse(HEAD + body.replace("{go}", go))
    assert caught.value.span is not None
    assert hint in (caught.value.hint or "")


CALLING_THEMSELVES = [
    pytest.param(
        """    c = R.exp(x)
    @script.function
    def go(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
        if k < 1:
            return y
        return go(y + c, k - 1)
    return go(x, k)
""",
        lambda x, k: x + k * np.exp(x),
        id="one",
    ),
    pytest.param(
        """    c = R.exp(x)
    d = (x, x * 2.0)
    @script.function
    def even(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
        if k < 1:
            return y + c
        return odd(y, k=k - 1)
    @script.function
    def odd(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
        if k < 1:
            return y - d[1] * n
        return even(y, k - 1)
    return even(x, k) + odd(k=k, y=x)
""",
        lambda x, k: 2 * x + np.exp(x) - 2 * x * len(x),
        id="each other",
    ),
    pytest.param(
        """    s = x
    for i in range(n):
        @script.function
        def go(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
            if k < i:
                return y
            return go(y + 1.0, k - 1)
        s = go(s, k)
    return s
""",
        lambda x, k: x + sum(max(0, k - i + 1) for i in range(len(x))),
        id="in a loop",
    ),
    pytest.param(
        """    s = x
    for c in (1.0, 2.0):
        @script.function
        def go(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
            if k < 1:
                return y
            return go(y * c + x, k - 1)
        s = go(s, k)
    return s
""",
        lambda x, k: _twice(x, k),
        id="in one that is written out",
    ),
    pytest.param(
        """    def step(state: Tensor, row: Tensor):
        return state + row, row * R.sum(x)
    @script.function
    def outer(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
        @script.function
        def inner(z: f32[Tensor, n], j: R.Prim("int64")) -> f32[Tensor, n]:
            if j < 1:
                return z
            last, rows = R.scan(step, init=(R.sum(x),), inputs=(z,))
            return inner(z + rows, j - 1)
        if k < 1:
            return y
        return outer(inner(y, k), k - 1)
    return outer(x, k)
""",
        lambda x, k: x * (1 + x.sum()) ** (k * (k + 1) // 2),
        id="one within another",
    ),
]


def _twice(x: np.ndarray, k: int) -> np.ndarray:
    s = x
    for c in (1.0, 2.0):
        for _ in range(k):
            s = s * c + x
    return s


@pytest.mark.parametrize(("body", "wanted"), CALLING_THEMSELVES)
def test_they_call_themselves_natively(
    body: str, wanted: Callable[[np.ndarray, int], np.ndarray]
) -> None:
    module = parse(HEAD + body)
    assert unity.structural_equal(module, parse(print_module(module), constants_of(module)))
    exe = unity.compile(module)
    assert set(exe.native().values()) == {"native"}
    x = np.array([0.5, -0.25, 1.0], np.float32)
    for k in (0, 1, 3):
        for found in (interpret(module, "main", [x, k]), exe(x, k)):
            np.testing.assert_allclose(np.asarray(found), wanted(x, k), rtol=1e-5)


def test_their_sizes_are_those_around_them() -> None:
    module = parse("""
n = dim("n")
m = dim("m")
@script.function
def main(x: f32[Tensor, n], z: f32[Tensor, m]):
    @script.function
    def go(y: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
        if k < 1:
            return y
        return go(y + 1.0, k - 1)
    return go(z, 2)
""")
    x = np.zeros(3, np.float32)
    for run in (unity.compile(module), lambda *args: interpret(module, "main", args)):
        np.testing.assert_array_equal(np.asarray(run(x, x)), x + 2)
        with pytest.raises(unity.UnityError, match=r"symbol n|'n'"):
            run(x, np.zeros(4, np.float32))


SELF = """    c = x
    @script.function
    def go(y: f32[Tensor, n]) -> f32[Tensor, n]:
        if k < 2:
            return y
        return go(y + c)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"{SELF}    c = x * 2.0\n    return go(x)\n", "'c' has changed since the def of 'go'"),
        (f"{SELF}    return go(x, x)\n", "go takes 1 arguments, got 2"),
        (
            f"{SELF}    return R.add(go, x)\n",
            "'go' can be called only: it became a function of the module",
        ),
        (
            f"{SELF}    return go(x)\n".replace(" -> f32[Tensor, n]", ""),
            "'go' is called before it is known what it returns",
        ),
    ],
)
def test_mistakes_with_them(body: str, said: str) -> None:
    with pytest.raises(unity.UnityError, match=said) as caught:
        parse(HEAD + body)
    assert caught.value.span is not None


@script.function
def countdown(x: f32[Tensor, n], k: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
    step = x * 0.5

    @script.function
    def go(y: f32[Tensor, n], k: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
        if k < 1:
            return y
        return go(y - step, k - 1)

    return go(x, k)


def test_one_of_a_decorated_function() -> None:
    np.testing.assert_array_equal(countdown(X, 3), X - 1.5 * X)
    assert [*countdown.module().functions] == ["go", "countdown"]


def another_f() -> script.ScriptFunction[..., Tensor]:
    @script.function
    def f(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return x * 100.0

    return f


def test_they_call_the_function_around_them() -> None:
    """It may be called otherwise in a module where another one has its name."""
    other = another_f()

    @script.function
    def f(x: f32[Tensor, n], k: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
        @script.function
        def go(y: f32[Tensor, n], j: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
            if j < 1:
                return f(y, k - 1)
            return go(y + 1.0, j - 1)

        if k < 1:
            return x
        return go(x, 2)

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return other(x) + f(x, 2)

    module = main.module()
    for found in (interpret(module, "main", [X]), unity.compile(module)(X)):
        np.testing.assert_array_equal(np.asarray(found), X * 101 + 4)


@script.function
def even(x: f32[Tensor, n], k: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
    if k < 1:
        return x
    return odd(x + 1.0, k=k - 1)


@script.function
def odd(x: f32[Tensor, n], k: Annotated[int, R.Prim("int64")]) -> f32[Tensor, n]:
    if k < 1:
        return x * 2.0
    return even(x + 1.0, k - 1)


def test_functions_call_those_that_are_defined_below() -> None:
    module = script.module(even)
    assert {*module.functions} == {"even", "odd"}
    assert unity.structural_equal(module, parse(print_module(module)))
    exe = unity.compile(even)
    assert set(exe.native().values()) == {"native"}
    for k in (0, 3, 4):
        wanted = (X + k) * (2 if k % 2 else 1)
        np.testing.assert_array_equal(exe(X, k), wanted)
        np.testing.assert_array_equal(even(X, k), wanted)
        np.testing.assert_array_equal(np.asarray(interpret(module, "even", [X, k])), wanted)
    np.testing.assert_array_equal(unity.compile(odd)(X, 0), X * 2)


def test_they_do_within_a_function_of_python() -> None:
    @script.function
    def first(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return second(x) + 1.0

    with pytest.raises(unity.UnityError, match="'second' is called by a function above it"):
        script.module(first)

    @script.function
    def second(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return x * 2.0

    np.testing.assert_array_equal(first(X), X * 2 + 1)


def test_one_that_has_effects_says_so() -> None:
    @script.function
    def calls(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return prints(x)

    @script.function
    def prints(x: f32[Tensor, n]) -> f32[Tensor, n]:
        print(x)
        return x

    with pytest.raises(unity.UnityError, match="'prints' has effects") as caught:
        script.module(calls)
    assert "@script.function(pure=False)" in (caught.value.hint or "")


def test_one_that_says_so_is_called_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @script.function
    def calls(x: f32[Tensor, n]) -> f32[Tensor, n]:
        prints(x)
        return x

    @script.function(pure=False)
    def prints(x: f32[Tensor, n]) -> f32[Tensor, n]:
        print(x)
        return x

    calls(X)
    assert capsys.readouterr().out == "[0. 1. 2. 3.]\n"


UNDECLARED = """
from unity import script
from unity.script import Tensor, dim, f32

n = dim("n")


@script.function
def calls(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return later(x)


@script.function
def later(x: f32[Tensor, n])RESULT:
    return x
"""


def test_one_declares_its_result_and_is_it_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(UNDECLARED.replace("RESULT", ""))
    with pytest.raises(unity.UnityError, match="'later' is called before it is known") as caught:
        runpy.run_path(str(tmp_path / "first.py"))
    assert caught.value.span is not None
    assert caught.value.span.line == 14
    again = UNDECLARED.replace("RESULT", " -> f32[Tensor, n]")
    text = again + again[again.rindex("@script") :].replace("f32[Tensor, n]", "f32[Tensor, 4]")
    (tmp_path / "second.py").write_text(text)
    with pytest.raises(unity.UnityError, match="a function above it was told that it is"):
        script.module(runpy.run_path(str(tmp_path / "second.py"))["calls"])


def test_a_function_of_python_is_no_function_of_the_program() -> None:
    text = """
@script.function
def main(f: R.Func([f32[Tensor, 2]], f32[Tensor, 2]), x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return f(x)
"""
    compiled = unity.compile(script.parse(text))["main"]
    with pytest.raises(unity.UnityError, match="calls a function that it is given, got function"):
        compiled(lambda x: x, np.zeros(2, np.float32))
