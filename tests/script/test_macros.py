"""Macros are put in place where they are called: in our language and in TVMScript, as TVM does."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.script import Buffer, R, T, Tensor, dim, f32, tvmscript

from .tvm_oracle import run_theirs

n = dim("n")
KERNEL = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    {body}
"""


def same(found: IRModule, text: str) -> None:
    difference = first_difference(found, tvmscript.parse(text))
    assert difference is None, str(difference)


def kernel(*lines: str) -> str:
    return KERNEL.format(body="\n    ".join(lines))


BODIES = {
    "defaults and keywords": (
        '@T.macro\ndef g(X, Y, k, scale=2.0, *, mode="add"):\n'
        '    if mode == "add" and not k == 7:\n        Y[k] = X[k] + T.float32(scale)\n'
        "    else:\n        Y[k] = X[k]\n",
        ["g(A, B, 1)", "g(Y=B, X=A, k=2, scale=3.0)", 'g(A, B, 3, mode="copy")', "g(A, B, 7)"],
        [
            "B[1] = A[1] + T.float32(2)",
            *("B[2] = A[2] + T.float32(3)", "B[3] = A[3]", "B[7] = A[7]"),
        ],
    ),
    "a macro's names are its own": (
        "@T.macro\ndef g(X, Y, k):\n    for i in range(4):\n        t = X[i + k]\n"
        "        Y[i] = t\n",
        ["for i in range(2):", "    g(A, B, i)", "t = A[0]", "B[7] = t"],
        [
            *("for i in range(2):", "    for j in range(4):", "        u = A[j + i]"),
            *("        B[j] = u", "t = A[0]", "B[7] = t"),
        ],
    ),
    "an expression and a macro are given": (
        "@T.macro\ndef put(Y, k, v):\n    Y[k] = v\n"
        "@T.inline\ndef g(what, Y, v):\n    what(Y, 0, v * v)\n    what(Y, 1, v)\n",
        ["g(put, B, A[2] + A[3])"],
        ["B[0] = (A[2] + A[3]) * (A[2] + A[3])", "B[1] = A[2] + A[3]"],
    ),
    "names of the call": (
        "@T.macro(hygienic=False)\ndef g(k):\n    B[k] = A[i]\n",
        ["for i in range(8):", "    g(i)"],
        ["for i in range(8):", "    B[i] = A[i]"],
    ),
    "within a function, bound later": (
        "",
        [
            *("@T.inline", "def g(A):", "    B[0] = A[0] + val"),
            *("val = T.float32(9)", "g(A)"),
        ],
        ["val = T.float32(9)", "B[0] = A[0] + val"],
    ),
    "that calls itself": (
        "",
        [
            *("@T.inline", "def g(k, c):", "    if c > 0:", "        g(k, c - 1)"),
            *("    B[k] = A[k] + T.float32(c)", "g(3, 2)"),
        ],
        [f"B[3] = A[3] + T.float32({c})" for c in range(3)],
    ),
    "blocks are numbered": (
        '@T.macro\ndef g(X, Y):\n    for i in range(8):\n        with T.sblock("b"):\n'
        '            vi = T.axis.remap("S", [i])\n            Y[vi] = X[vi] * X[vi]\n',
        ["g(A, B)", "g(B, A)"],
        [
            *("for i in range(8):", '    with T.sblock("b"):'),
            *('        vi = T.axis.remap("S", [i])', "        B[vi] = A[vi] * A[vi]"),
            *("for i in range(8):", '    with T.sblock("b_1"):'),
            *('        vi = T.axis.remap("S", [i])', "        A[vi] = B[vi] * B[vi]"),
        ],
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_macro_of_tvmscript(case: str) -> None:
    macros, calls, meaning = BODIES[case]
    same(tvmscript.parse(macros + kernel(*calls)), kernel(*meaning))


@pytest.mark.long("TVM is imported, and compiles")
@pytest.mark.parametrize("case", BODIES)
def test_the_numbers_are_tvms(case: str) -> None:
    macros, calls, _ = BODIES[case]
    text = macros + kernel(*calls)
    given = [np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)]
    theirs = run_theirs(text, given)
    ours = [a.copy() for a in given]
    func = tvmscript.parse(text)["f"]
    assert isinstance(func, PrimFunc)
    run_prim_func(func, ours)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_numbered_blocks() -> None:
    macros, calls, _ = BODIES["blocks are numbered"]
    assert '"b_1"' in script.print_module(tvmscript.parse(macros + kernel(*calls)))


def test_macros_of_a_class() -> None:
    found = tvmscript.parse("""
@I.ir_module
class M:
    @T.macro
    def copy(X, Y):
        for i in range(8):
            Y[i] = X[i]

    @R.macro
    def squared(x, y):
        t = R.add(x, y)
        return R.multiply(t, t)

    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        M.copy(A, B)

    @R.function
    def main(t: R.Tensor((8,), "float32")):
        u = R.abs(squared(R.exp(t), t))
        return u
""")
    same(
        found,
        """
@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i]

    @R.function
    def main(t: R.Tensor((8,), "float32")):
        e = R.exp(t)
        s = R.add(e, t)
        m = R.multiply(s, s)
        u = R.abs(m)
        return u
""",
    )


size = 3


@script.macro
def copy(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    """Up to a size that is known here."""
    for i in range(size):
        t = x[i]
        y[i] = t


@script.macro
def squared(x: f32[Tensor, n], times: int = 1) -> f32[Tensor, n]:
    x = x * x
    return x if times == 1 else squared(x, times - 1)


size = 5


def test_macros_of_ours() -> None:
    @script.prim_func
    def f(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
        for size in T.serial(n):
            copy(a, b)
            b[size] = a[size]

    @script.prim_func
    def meant(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
        for k in T.serial(n):
            for i in range(3):
                t = T.let(a[i])
                b[i] = t
            b[k] = a[k]

    assert str(first_difference(f.func, meant.func)) == "None"

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.exp(squared(x + x, times=2))

    @script.function
    def main_meant(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = x + x
        y = y * y
        z = y
        z = z * z
        return R.exp(z)

    assert str(first_difference(main.func, main_meant.func)) == "None"


def test_a_text_with_a_macro() -> None:
    found = script.parse("""
@script.macro
def put(y, k):
    y[k] = 1.0

@script.prim_func
def f(y: f32[Buffer, 4]) -> None:
    put(y, 2)
""")
    meant = script.parse("""
@script.prim_func
def f(y: f32[Buffer, 4]) -> None:
    y[2] = 1.0
""")
    assert first_difference(found, meant) is None


def test_python_runs_no_macro() -> None:
    called: Any = copy
    with pytest.raises(UnityError, match="'copy' is a macro: calls of it are put in place"):
        called(np.zeros(3, np.float32), np.zeros(3, np.float32))


G = "@T.macro{options}\ndef g(X, k, v=1.0):\n    {line}\n"
WRONG = [
    (G, "g(A)", "g needs 'k'", (8, 4)),
    (G, "g(A, 1, 2.0, 3)", "g takes 3 arguments, got 4", (8, 4)),
    (G, "g(A, 1, w=2.0)", "g has no parameter 'w'", (8, 12)),
    (G, "g(A, *B)", "* can't be used here", (8, 9)),
    (G, "B[0] = g(A, 1)", "'g' is a macro, which gives no value in a prim_func", (8, 11)),
    (
        G.replace("{line}", "return X[k]"),
        "g(A, 1)",
        "a macro gives no value in a prim_func",
        (4, 4),
    ),
    (G.replace("{line}", "k = 1"), "g(A, 1)", "'k' is a parameter of the macro", (4, 4)),
    (G.replace("{line}", "X[k] = B[0]"), "g(A, 1)", "unknown name 'B' in the macro 'g'", (8, 4)),
    (G.replace("{line}", "g(X, k)"), "g(A, 1)", "calls itself more than 64 deep", (4, 4)),
    (G.replace("{line}", "X[k] = what"), "g(A, 1)", "unknown name 'what'", (4, 11)),
    (G.replace("{options}", "(hygiene=True)"), "g(A, 1)", "no parameter 'hygiene'", (2, 9)),
    (G.replace("{options}", "(hygienic=1)"), "g(A, 1)", "must be True or False, got 1", (2, 18)),
    (G.replace("v=1.0", "*v"), "g(A, 1)", "a macro's parameters are plain", (3, 13)),
    (G.replace("T.macro", "R.macro"), "g(A, 1)", "it belongs in a R.function", (8, 4)),
]


@pytest.mark.parametrize(("macro", "line", "message", "place"), WRONG)
def test_mistakes(macro: str, line: str, message: str, place: tuple[int, int]) -> None:
    macro = macro.replace("{options}", "").replace("{line}", "X[k] = T.float32(v)")
    with pytest.raises(UnityError) as caught:
        tvmscript.parse("\n" + macro + kernel(line))
    assert message in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == place
    called = caught.value.span.called
    assert (called is None) == (place[0] == 8 or place[0] < 4)
    while called is not None and called.called is not None:
        called = called.called
    assert called is None or (called.line, called.column) == (8, 4)


def test_a_mistake_in_a_macro_shows_the_calls() -> None:
    """Each with its line, from the inside out; of many the first and the last."""
    text = """
@script.macro
def put(y, k, v):
    y[k] = v

@script.macro
def both(y, v):
    put(y, 0, v)

@script.prim_func
def f(y: f32[Buffer, 4]) -> None:
    both(y, 1.0)
    put(y, 2, "one")
    {}
"""
    with pytest.raises(UnityError) as caught:
        script.parse(text.format("both(y, 2.0)"), file="m.py")
    assert str(caught.value).splitlines()[0].startswith("m.py:13:15: ")  # what is given is here
    with pytest.raises(UnityError) as caught:
        script.parse(text.replace("y[k]", "y[k, 0]").format("pass"))
    first, *rest = str(caught.value).splitlines()
    file = first.partition(":")[0]
    assert first == f"{file}:4:7: y has 1 dim, got 2 indices"
    assert rest[:8] == [
        "    4 |     y[k, 0] = v",
        "              ^^^^",
        f"called at {file}:8:5:",
        "    8 |     put(y, 0, v)",
        "            ^^^^^^^^^^^^",
        f"called at {file}:12:5:",
        "   12 |     both(y, 1.0)",
        "            ^^^^^^^^^^^^",
    ]
    with pytest.raises(UnityError) as caught:
        script.parse(text.replace("put(y, 0, v)", "both(y, v)").format("pass"))
    assert "... 62 calls between" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 11


def test_what_fails_at_run_time_names_the_macros_line_and_the_calls() -> None:
    module = script.parse(
        """
n = dim("n")
m = dim("m")

@script.macro
def alike(x, y):
    z = R.match_cast(y, f32[Tensor, n])
    return x + z

@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n]:
    a = alike(x, x)
    return alike(a, y)
""",
        file="m.py",
    )
    run = unity.compile(module)
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(run(x, x), x * 3)
    with pytest.raises(UnityError, match=r"^m\.py:7:5 \(called at m\.py:13:12\): match_cast"):
        run(x, np.ones(4, np.float32))


def test_a_mistake_in_a_macro_of_another_file() -> None:
    names: dict[str, object] = {}
    text = "from unity.script import *\n@macro\ndef put(y, k):\n    y[k] = 'one'\n"
    lines: list[str] = [*text.splitlines(keepends=True)]
    linecache.cache["<macros>"] = (len(text), None, lines, "<macros>")
    exec(compile(text, "<macros>", "exec"), names)
    put = names["put"]
    assert callable(put)
    with pytest.raises(UnityError) as caught:

        @script.prim_func
        def f(y: f32[Buffer, 4]) -> None:
            y[1] = 1.0
            put(y, 2)

    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.column) == ("<macros>", 4, 11)
    assert span.called is not None
    assert span.called.file == __file__
    assert "            put(y, 2)" in str(caught.value)
    with pytest.raises(UnityError, match=r"'copy' is a macro of script\.macro"):

        @tvmscript.T.prim_func
        def g(y: Any) -> None:
            copy(y, y)
