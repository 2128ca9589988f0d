"""Scalars, sizes and numbers in tensors as operands and as each other: native, interpreted, loaded.

One program holds many expressions, each a field of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import SHORT_NAMES, dtype
from unity.script import constants_of, parse, print_module

X = np.arange(4, dtype=np.float32)
HEAD = 'n = dim("n")\nm = dim("m")\n'
FLOAT, INT, BOOL = 'R.Prim("float32")', 'R.Prim("int64")', 'R.Prim("bool")'
GIVEN = f"x: f32[Tensor, n], i: i64[Tensor, n], s: {FLOAT}, k: {INT}, b: {BOOL}"
ARGS = (X, np.arange(4), 2.5, 3, False)


def check(text: str, args: tuple[object, ...], expected: tuple[object, ...]) -> unity.Executable:
    """What it gives, by the interpreter and as native code."""
    module = parse(text)
    assert unity.structural_equal(module, parse(print_module(module), constants_of(module)))
    exe = unity.compile(module)
    assert set(exe.native().values()) == {"native"}, exe.native()
    for found in (interpret(module, "main", list(args)), exe(*args)):
        fields = found if isinstance(found, tuple) else (found,)
        for mine, wanted in zip(fields, expected, strict=True):
            assert np.asarray(mine).dtype == np.asarray(wanted).dtype
            np.testing.assert_allclose(np.asarray(mine), np.asarray(wanted), rtol=1e-6)
    return exe


def main(fields: tuple[str, ...], given: str = GIVEN) -> str:
    return f"{HEAD}@script.function\ndef main({given}):\n    return ({', '.join(fields)},)\n"


EXPRESSIONS: dict[str, object] = {
    "x * s": X * 2.5,
    "s - x": 2.5 - X,
    "x + k": X + 3,
    "i * k": np.arange(4) * 3,
    "x ** s": X**2.5,
    "x > s": X > 2.5,
    "i == k": np.arange(4) == 3,
    "x * (n + 1)": X * 5,
    "x * R.prim(n)": X * 4,
    "x / float(n)": X / 4,
    "x * (0.5 * n)": X * 2,
    "n * s": np.float32(10),
    "n ** 2 * x": X * 16,
    "s * 2": np.float32(5),
    "k + s": np.float32(5.5),
    "k // 2 - k % 2": np.int64(0),
    "-s": np.float32(-2.5),
    "not b": np.True_,
    "abs(-s) + R.exp(s)": np.float32(2.5 + np.exp(2.5)),
    "min(R.sum(x), s, 3.0)": np.float32(2.5),
    "max(x, 1)": np.maximum(X, 1),
    "int(s)": np.int64(2),
    "sum((s, s, 1.0))": np.float32(6),
    "x * len(x)": X * 4,
    "R.maximum(x, s)": np.maximum(X, np.float32(2.5)),
    "R.where(x > s, x, s)": np.maximum(X, np.float32(2.5)),
    "R.full((k,), s)": np.full(3, 2.5, np.float32),
    "R.full((n,), k)": np.full(4, 3),
    'R.full((n,), s, dtype="float16")': np.full(4, 2.5, np.float16),
    "R.zeros((k, R.sum(i)))": np.zeros((3, 6), np.float32),
    "R.arange(k)": np.arange(3),
    "x[:k]": X[:3],
    "R.take(x, k, axis=0)": np.float32(3),
    "R.stack((s, s))": np.full(2, 2.5, np.float32),
    'R.astype(k, "int32")': np.int32(3),
    "x * (s if b else 2 * s)": X * 5,
    "0 < k < n": np.True_,
    "k > 1 and not b": np.True_,
    "k": np.int64(3),
    "R.prim(R.sum(x))": np.float32(6),
}


@pytest.mark.parametrize("part", range(4))
def test_operands(part: int, tmp_path: Path) -> None:
    chosen = dict([*EXPRESSIONS.items()][part::4])
    exe = check(main(tuple(chosen)), ARGS, tuple(chosen.values()))
    exe.save(tmp_path / "main.unity")
    loaded = unity.load(tmp_path / "main.unity")
    assert isinstance(loaded, unity.Executable)
    for mine, wanted in zip(loaded(*ARGS), chosen.values(), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(wanted), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "scalar", "value"),
    [
        ("i32", "int32", -3), ("u8", "uint8", 200), ("i16", "int8", -7),
        ("f64", "float64", 1 / 3), ("f64", "float32", 0.5), ("f16", "int64", 3),
    ],
)  # fmt: skip
def test_a_scalar_is_of_the_dtype_beside_it(kind: str, scalar: str, value: float) -> None:
    """One that is narrower is widened, an integer becomes a float."""
    of = dtype(SHORT_NAMES[kind]).numpy
    x = np.arange(4).astype(of)
    text = main(("x * s",), f'x: {kind}[Tensor, n], s: R.Prim("{scalar}")')
    check(text, (x, value), (np.multiply(x, np.asarray(value).astype(of)),))


FLOW = f"""
@script.function
def twice(x: f32[Tensor, n], by: {FLOAT}) -> f32[Tensor, n]:
    return x * by

@script.function
def falls(k: {INT}) -> boolean[Tensor, ()]:
    return k > 0 and falls(k - 1)

@script.function
def power(x: f32[Tensor, n], k: {INT}) -> f32[Tensor, n]:
    if k == 0:
        return x
    return power(k=k - 1, x=2.0 * x)

@script.function
def main({GIVEN}):
    if R.sum(x) > s:
        s = s * 2.0
        first = k
    else:
        first = n
    for j in range(k, 0, -2):
        if j > 2:
            continue
        k += j
    while True:
        s += 1.0
        if s > 7.5:
            break
    return s, first, k, twice(by=s, x=x), twice(x, R.sum(x)), twice(x, n), power(x, k), falls(k)
"""


def test_through_branches_loops_and_calls() -> None:
    numbers = (np.float32(8), np.int64(3), np.int64(4))
    calls = (X * 8, X * 6, X * 4, X * 16, np.False_)
    check(HEAD + FLOW, ARGS, (*numbers, *calls))


def test_what_decides_alone_is_asked_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """``and`` and ``or`` ask what follows only where it matters, if it may have effects."""
    module = parse(f"""
@script.function
def asked(k: {INT}) -> boolean[Tensor, ()]:
    print("asked", k)
    return k > 2

@script.function
def main(k: {INT}):
    return k > 1 and asked(k), k > 1 or asked(k)
""")
    runs: list[Callable[[int], object]] = [
        lambda k: interpret(module, "main", [k]),
        unity.compile(module),
    ]
    for run in runs:
        for k, answer in ((3, True), (1, False)):
            found = run(k)
            assert isinstance(found, tuple)
            assert [bool(np.asarray(v)) for v in found] == [answer, answer]
            assert capsys.readouterr().out == f"asked {k}\n"


def test_a_size_is_not_negative() -> None:
    module = parse(main(("R.zeros((k,))", "x[k:]")))
    exe = unity.compile(module)
    given = (*ARGS[:3], -1, False)
    with pytest.raises(unity.UnityError, match="symbol k is -1, but it must be at least 0"):
        exe(*given)
    with pytest.raises(unity.UnityError, match="'k_1' is k, got -1"):
        interpret(module, "main", list(given))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("i * s", "'x2': a scalar float32 does not go with int64"),
        ('R.astype(x, "float16") * s', "a scalar float32 does not go with float16"),
        ('R.astype(i, "int32") + k', "a scalar int64 does not go with int32"),
        ("k + 1.5", "1.5 is no int64"),
        ("n / 2", r"a dim must be an integer expression, got 'n / 2'"),
        ("R.zeros((s,))", r"got 's', which is R.Prim\(\"float32\"\)"),
        ("R.clip(x, 0.0, s)", "an attribute is known when the program is compiled, 's' when"),
        ("R.sum(x, axis=k)", "an attribute is known when the program is compiled, 'k' when"),
        ("(x, i)[k]", "which field it is must be known when the program is compiled"),
        ("R.const(s)", "'s' is known when the program runs"),
        ('R.prim(s, "int32")', "'s' is no scalar int32"),
        ("R.prim(x)", r"item: 'x' must be a tensor of rank 0"),
        ('R.scalar_tensor(s, dtype="int32")', "the scalar is float32, not int32"),
        ("R.scalar_tensor(x, dtype='float32')", "'value' must be a scalar"),
        ("n ** -1", "a dim takes powers of 0 to 8, got -1"),
        ("R.logical_not(n)", "must be of bool|must be bool|dtype bool"),
    ],
)
def test_refused(line: str, said: str) -> None:
    with pytest.raises(unity.UnityError, match=said):
        parse(main((line,)))


def test_a_step_must_be_known() -> None:
    for step in ("0", "k"):
        text = f"{HEAD}@script.function\ndef main({GIVEN}):\n    for j in range(0, k, {step}):\n"
        with pytest.raises(unity.UnityError, match="the step of a range must be a number other"):
            parse(text + "        x = x + 1.0\n    return x")


CALLED = f"""{HEAD}
@script.function
def f(x: f32[Tensor, n], s: {FLOAT}) -> f32[Tensor, n]:
    return x * s

@script.function
def main(x: f32[Tensor, n]):
    return CALL
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("f(x, t=2.0)", "f has no parameter 't'"),
        ("f(x, x=2.0)", "f got 'x' twice"),
        ("f(s=2.0)", "f needs 'x'"),
        ("f(x, 2.0, 3.0)", "takes 2 arguments, got 3"),
        ("f(x, s=1, attrs=2)", "attrs must be a dict"),
    ],
)
def test_keywords_that_do_not_fit(call: str, said: str) -> None:
    with pytest.raises(unity.UnityError, match=said):
        parse(CALLED.replace("CALL", call))
