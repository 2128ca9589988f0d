"""Objects of Python in native functions: taken, handed on, chosen, carried, printed, given back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.interpreter.values import to_host
from unity.script import parse
from unity.transform.graph import InlineFunctions

MODULE = parse("""
n = dim("n")
@script.function
def keep(x: f32[Tensor, n], s: R.Object) -> tuple[f32[Tensor, n], R.Object]:
    return x + 1.0, s
@script.function
def through(x: f32[Tensor, n], s: R.Object) -> R.Object:
    y, t = keep(x, s)
    z, u = keep(y, t)
    return u
@script.function
def chosen(x: f32[Tensor, n], p: R.Tuple(R.Object, R.Object)) -> R.Tuple(R.Object, f32[Tensor, n]):
    if R.sum(x) > 0.0:
        o = p[0]
    else:
        o = p[1]
    return o, x * 2.0
@script.function
def carried(x: f32[Tensor, n], a: R.Object, b: R.Object, k: R.Prim("int64")) -> R.Tuple(
    R.Object, R.Object, f32[Tensor, n]
):
    for i in range(k):
        a, b = b, a
        x = x + 1.0
    return a, b, x
@script.function
def deep(k: R.Prim("int64"), s: R.Object) -> R.Object:
    if k <= 0:
        return s
    return deep(k - 1, s)
@script.function
def unused(x: f32[Tensor, n], s: R.Object) -> f32[Tensor, n]:
    return R.exp(x)
@script.function
def twice(x: f32[Tensor, n], s: R.Object) -> R.Tuple(R.Object, R.Tuple(R.Object, f32[Tensor, n])):
    return s, (s, unused(x, s))
""")
X = np.linspace(-1, 2, 4, dtype=np.float32)
A, B = object(), ["b"]
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("keep", (X, A)),
    ("through", (X, B)),
    ("chosen", (X, (A, B))),
    ("chosen", (-X, (A, B))),
    ("carried", (X, A, B, 3)),
    ("carried", (X, A, B, 4)),
    ("carried", (X, A, A, 0)),
    ("deep", (10, A)),
    ("unused", (X, None)),
    ("twice", (X, X)),
]


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(MODULE, pipeline=unity.pipeline().without(InlineFunctions))


def same(got: object, want: object) -> None:
    """Assert that objects are the same ones, and tensors are close."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple)
        for mine, theirs in zip(got, want, strict=True):
            same(mine, theirs)
    elif isinstance(want, np.ndarray):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    else:
        assert got is want


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_call_gives_the_objects_themselves(
    name: str, args: tuple[Any, ...], exe: unity.Executable
) -> None:
    want = to_host(interpret(MODULE, name, args))
    same(exe[name](*args), want)


def test_all_are_native(exe: unity.Executable) -> None:
    assert set(exe.native().values()) == {"native"}


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_no_reference_is_kept_or_lost(
    name: str, args: tuple[Any, ...], exe: unity.Executable
) -> None:
    call, mark = exe[name], object()

    def marked(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(marked, value))
        return mark if value in (A, None) or value is B else value

    given = [marked(v) if not isinstance(v, np.ndarray) else v for v in args]
    before = sys.getrefcount(mark)
    for _ in range(20):
        call(*given)
    assert sys.getrefcount(mark) == before
    result = call(*given)
    del result
    assert sys.getrefcount(mark) == before


def test_tensors_of_other_libraries_stay_what_they_are_as_objects(exe: unity.Executable) -> None:
    class Tensor:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
            raise AssertionError("an object is not looked at")

    one = Tensor()
    y, kept = exe["keep"](X, one)
    assert kept is one
    np.testing.assert_array_equal(y, X + 1)
    y, kept = exe["keep"](s=one, x=X)
    assert kept is one


def test_what_does_not_fit_is_told_with_its_name(exe: unity.Executable) -> None:
    with pytest.raises(unity.UnityError, match=r"input 'x': .*float32"):
        exe["keep"](X.astype(np.float64), A)
    with pytest.raises(unity.UnityError, match=r"input 'p': expected a tuple of 2"):
        exe["chosen"](X, (A,))
    with pytest.raises(unity.UnityError, match="missing s"):
        exe["keep"](X)


def test_objects_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    module = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n], s: R.Object) -> R.Object:
    print(s, n, "text")
    return s
""")
    exe = unity.compile(module)
    assert exe.native() == {"main": "native"}
    assert exe(X, {"a": 1}) == {"a": 1}
    assert capsys.readouterr().out == "{'a': 1} 4 text\n"


def test_texts_of_the_program_are_handed_on() -> None:
    module = parse("""
n = dim("n")
@script.function
def echo(x: f32[Tensor, n], s: R.Object) -> R.Object:
    return s
@script.function
def main(x: f32[Tensor, n], first: R.Prim("bool")) -> tuple[R.Object, R.Object]:
    if first:
        s = echo(x, "one")
    else:
        s = echo(x, "two")
    return s, R.text("three")
""")
    exe = unity.compile(module, pipeline=unity.pipeline().without(InlineFunctions))
    why = "bytecode: it gives a text or a dtype"
    assert exe.native() == {"echo": "native", "main": why}
    assert exe["main"](X, True) == ("one", "three")
    assert exe["main"](X, False) == ("two", "three")


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ('"one"', "one"),
        ('("one", n)', ("one", 4)),
        ('R.dtype("int8")', np.dtype("int8")),
        ("(x.shape, 2.5)", ((4,), 2.5)),
    ],
)
def test_what_is_declared_as_anything_may_be_returned(result: str, value: object) -> None:
    module = parse(f"""
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> R.Object:
    return {result}
""")
    exe = unity.compile(module)
    assert exe(X) == value
    assert to_host(interpret(module, "main", [X])) == value
    text = isinstance(value, str | np.dtype) or (isinstance(value, tuple) and "one" in value)
    assert exe.native() == {"main": "bytecode: it gives a text or a dtype" if text else "native"}


def test_shapes_are_returned_as_declared() -> None:
    module = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> R.Tuple(R.Shape(n, 1), f32[Tensor, n]):
    return (n, 1), x
@script.function
def whole(x: f32[Tensor, n]) -> R.Shape(n):
    return x.shape
""")
    exe = unity.compile(module)
    assert exe["main"](X)[0] == (4, 1)
    assert exe["whole"](X) == (4,)


def test_c_is_told_that_it_has_no_objects(exe: unity.Executable, tmp_path: Path) -> None:
    with pytest.raises(unity.UnsupportedError, match="objects of Python"):
        exe.export_library(tmp_path / "libobjects.so")


def test_a_saved_program_takes_objects(exe: unity.Executable, tmp_path: Path) -> None:
    exe.save(tmp_path / "program.unity")
    loaded = unity.load(tmp_path / "program.unity")
    y, kept = loaded["keep"](X, B)
    assert kept is B
    np.testing.assert_array_equal(y, X + 1)
