"""Functions that call Python, called by native code: order, errors, what is kept and refused."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for, module
from tests.interpreter.test_pipeline import arrays
from unity.codegen.vm.native import module as native_module
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.runtime.bytecode import FunctionCode, Program
from unity.runtime.hosts import registered
from unity.script import parse
from unity.transform.graph import InlineFunctions

HEAD = """
n = dim("n")
m = dim("m")
note = script.extern("interpreted.note", R.Func([R.Object], R.Tuple(), False))
scale = script.extern(
    "interpreted.scale",
    R.Func([f32[Tensor, n], R.Prim("float32"), R.Object], f32[Tensor, n], False),
)
make = script.extern(
    "interpreted.make", R.Func([R.Object], R.Tuple(R.Object, R.Prim("int64")), False)
)
"""
X = np.linspace(-1, 2, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def log() -> Iterator[list[object]]:
    """What `note` was given."""
    noted: list[object] = []

    def scale(x: Array, by: float, how: object) -> Array:
        noted.append(("scale", x.tolist(), by, how))
        return np.multiply(x, np.float32(by), dtype=np.float32)

    unity.register_function("interpreted.note", lambda what: noted.append(what), override=True)
    unity.register_function("interpreted.scale", scale, override=True)
    unity.register_function("interpreted.make", lambda of: ((of,), 7), override=True)
    yield noted
    for name in ("note", "scale", "make"):
        del registered._functions[f"interpreted.{name}"]


def compiled(text: str, **options: Any) -> unity.Executable:
    """A module whose functions stay apart."""
    return unity.compile(
        parse(HEAD + text), pipeline=unity.pipeline().without(InlineFunctions), **options
    )


def test_every_kind_of_argument_and_result(log: list[object]) -> None:
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n], s: R.Object, k: R.Prim("int64"), b: R.Prim("bool")) -> R.Tuple(
    f32[Tensor, n], R.Object, R.Prim("int64")
):
    note(("text", R.dtype("int8"), s, k, b, R.shape(n, 2), (x, (2.5,)), n + 1))
    y = scale(x + 1.0, 0.5, "how")
    made = make(s)
    return y * 2.0, made[0], made[1] + k
""")
    assert exe.native() == {"main": "native"}
    one = object()
    y, made, k = exe(X, one, -3, True)
    np.testing.assert_allclose(y, X + 1, rtol=1e-6)
    assert made == (one,)
    assert k == 4
    noted, scaled = log
    assert isinstance(noted, tuple)
    text, kind, given, number, flag, shape, (x, (half,)), size = noted
    assert (text, kind, given, number, flag) == ("text", np.dtype("int8"), one, -3, True)
    assert (shape, half, size) == ((4, 2), 2.5, 5)
    np.testing.assert_array_equal(x, X)
    assert scaled == ("scale", (X + 1).tolist(), 0.5, "how")


def test_what_python_keeps_stays_as_it_was(log: list[object]) -> None:
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.exp(x)
    note(y)
    z = R.negative(y)
    note(z)
    return z + y * x
""")
    assert exe.native() == {"main": "native"}
    xs = [np.full(50_000, k, np.float32) for k in range(3)]
    for x in xs:
        exe(x)
    gc.collect()
    for k, x in enumerate(xs):
        np.testing.assert_allclose(np.asarray(log[2 * k]), np.exp(x), rtol=1e-5)
        np.testing.assert_allclose(np.asarray(log[2 * k + 1]), -np.exp(x), rtol=1e-5)


@pytest.mark.parametrize("inlined", [False, True])
def test_nothing_is_called_twice_where_native_code_fails(inlined: bool, log: list[object]) -> None:
    text = """
@script.function(pure=False)
def inner(x: f32[Tensor, n], s: R.Object) -> tuple[f32[Tensor, n], R.Object]:
    note("inner")
    made = make(s)
    return scale(x, 2.0, made[0]), made[0]
@script.function(pure=False)
def main(x: f32[Tensor, n], s: R.Object) -> tuple[f32[Tensor, n], R.Object]:
    note("begin")
    y, t = inner(x, s)
    note(t)
    assert R.sum(y) > 0.0, f"a sum of {R.sum(y)}"
    note("end")
    return y, t
"""
    exe = unity.compile(parse(HEAD + text)) if inlined else compiled(text)
    assert set(exe.native().values()) == {"native"}
    y, t = exe["main"](X, 5)
    np.testing.assert_array_equal(y, X * 2)
    assert t == (5,)
    once = ["begin", "inner", ("scale", X.tolist(), 2.0, (5,)), (5,)]
    assert log == [*once, "end"]
    log.clear()
    with pytest.raises(unity.UnityError, match=r"a sum of -4\.0"):
        exe["main"](-X, 5)
    once[2] = ("scale", (-X).tolist(), 2.0, (5,))
    assert log == once
    log.clear()
    exe["main"](X, 6)  # nothing is left of the one that failed
    assert len(log) == 5


def test_what_python_raises_is_raised_with_its_place_and_nothing_is_kept() -> None:
    def fail(x: Array, by: float, how: object) -> Array:
        raise LookupError(f"no {how}")

    unity.register_function("interpreted.scale", fail, override=True)
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n], s: R.Object) -> f32[Tensor, n]:
    made = make(s)
    return scale(x, 1.0, made[0])
""")
    mark = object()
    before = sys.getrefcount(mark)
    for _ in range(3):
        with pytest.raises(LookupError, match="no ") as caught:
            exe(X, mark)
        assert any("called by the program at" in n for n in caught.value.__notes__)
        del caught
    gc.collect()
    gc.collect()
    assert sys.getrefcount(mark) == before


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda x, by, how: x[:-1], "result of interpreted.scale.*3.*4"),
        (lambda x, by, how: x.astype(np.float64), "result of interpreted.scale.*float32.*float64"),
        (lambda x, by, how: None, "result of interpreted.scale"),
        (lambda x, by, how: (x, x), "result of interpreted.scale"),
    ],
)
def test_results_are_checked(gives: Any, said: str) -> None:
    unity.register_function("interpreted.scale", gives, override=True)
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return scale(x, 1.0, "how")
""")
    with pytest.raises(unity.UnityError, match=said):
        exe(X)


def test_objects_live_until_the_call_ends() -> None:
    class Made:
        alive = 0

        def __init__(self) -> None:
            Made.alive += 1

        def __del__(self) -> None:
            Made.alive -= 1

    unity.register_function("interpreted.make", lambda of: (Made(), 1), override=True)
    seen: list[int] = []
    unity.register_function("interpreted.note", lambda what: seen.append(Made.alive), override=True)
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n]) -> tuple[f32[Tensor, n], R.Object]:
    a = make("first")
    b = make("second")
    note(a[0])
    return x * 2.0, b[0]
""")
    assert exe.native() == {"main": "native"}
    _, made = exe(X)
    gc.collect()
    assert isinstance(made, Made)
    assert (seen, Made.alive) == ([2], 1)
    del made
    gc.collect()
    assert Made.alive == 0


def test_python_may_call_the_program_again(log: list[object]) -> None:
    def again(x: Array, by: float, how: Any) -> Array:
        (k,) = how
        log.append(k)
        found: Array = x if k == 0 else exe(x, k - 1)
        return found

    unity.register_function("interpreted.scale", again, override=True)
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
    made = make(k)
    y = scale(x, 2.0, made[0])
    assert R.sum(y) > 0.0, "none"
    return y + x
""")
    np.testing.assert_allclose(exe(X, 3), X * 5, rtol=1e-6)
    assert log == [3, 2, 1, 0]
    log.clear()
    with pytest.raises(unity.UnityError, match="none"):
        exe(-X, 3)
    assert log == [3, 2, 1, 0]


def test_threads_have_their_own(log: list[object]) -> None:
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n], k: R.Prim("int64")) -> tuple[f32[Tensor, n], R.Object]:
    made = make(k)
    y = scale(R.exp(x), 2.0, made[0])
    return y, made[0]
""")
    wrong: list[object] = []

    def run(k: int) -> None:
        x = np.full(3000 + k, k / 8, np.float32)
        for _ in range(40):
            y, made = exe(x, k)
            if made != (k,) or not np.allclose(y, np.exp(x) * 2, rtol=1e-5):
                wrong.append((k, made))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "    for i in range(k):\n        x = scale(x, 2.0, s)\n    return x",
            "in a loop it calls",
        ),
        ("    return deep(x, k)", "calls itself"),
    ],
)
def test_loops_and_recursion_stay_bytecode(body: str, why: str, log: list[object]) -> None:
    exe = compiled(f"""
@script.function(pure=False)
def deep(x: f32[Tensor, n], k: R.Prim("int64")) -> f32[Tensor, n]:
    if k <= 0:
        return x
    y = scale(x, 2.0, "how")
    return deep(y, k - 1)
@script.function(pure=False)
def main(x: f32[Tensor, n], k: R.Prim("int64"), s: R.Object) -> f32[Tensor, n]:
{body}
""")
    assert any(why in how for how in exe.native().values())
    np.testing.assert_allclose(exe["main"](X, 3, "s"), X * 8, rtol=1e-6)
    assert len(log) == 3


def test_a_function_with_sizes_that_only_data_tells(log: list[object]) -> None:
    """Its own code stays bytecode; who calls it is native, since what it gives has a known size."""
    exe = compiled("""
@script.function
def found(x: f32[Tensor, n]) -> f32[Tensor, n]:
    where = R.match_cast(R.nonzero(x > 0.0), i64[Tensor, 1, m])
    total = R.sum(R.astype(where, "float32"))
    return x + total
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return found(R.negative(x)) * 2.0
""")
    want = 2 * (-X + np.nonzero(-X > 0)[0].sum())
    np.testing.assert_allclose(exe["main"](X), want, rtol=1e-6)
    assert exe.native()["main"] == "native"


@pytest.mark.parametrize("seed", [15, 18, 24, 99, 118, 121, 130, 137])
def test_random_programs_with_functions_that_the_interpreter_runs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(code: FunctionCode, program: Program) -> str:
        return "" if code.name == "main" else "a test says so"

    program = module(Random(seed))
    monkeypatch.setattr(native_module, "host_call", said)
    exe = unity.compile(program, pipeline=unity.pipeline().without(InlineFunctions))
    assert exe.native()["main"] == "native"
    args = arguments_for(program, np.random.default_rng(seed))
    want = arrays(interpret(program, "main", args))
    for _ in range(2):
        for mine, theirs in zip(arrays(exe(*args)), want, strict=True):
            np.testing.assert_allclose(
                mine.astype(np.float64), theirs.astype(np.float64), rtol=1e-4, atol=1e-5
            )


def test_a_library_for_c_has_no_python(tmp_path: Path) -> None:
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return scale(x, 1.0, "how")
""")
    with pytest.raises(unity.UnsupportedError, match=r"interpreted\.scale"):
        exe.export_library(tmp_path / "libscale.so")


def test_a_saved_program_calls_python(tmp_path: Path, log: list[object]) -> None:
    exe = compiled("""
@script.function(pure=False)
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return scale(x, 3.0, "how") + 1.0
""")
    exe.save(tmp_path / "main.unity")
    again = unity.load(tmp_path / "main.unity")
    assert again.native() == {"main": "native"}
    np.testing.assert_allclose(again(X), X * 3 + 1, rtol=1e-6)
