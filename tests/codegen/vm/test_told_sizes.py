"""Symbols that only expressions tell: `2 * k` elements, on every road, against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from tests.codegen.export.tensors import Exported, Failed
from tests.codegen.vm.results import agree
from unity import runtime
from unity.interpreter import interpret
from unity.script import parse
from unity.transform.graph import InlineFunctions

HEAD = "".join(f'{s} = dim("{s}")\n' for s in "knmj") + 'big = dim("big", min=2, multiple_of=2)\n'
NATIVE = {
    "given": """
def main(x: f32[Tensor, 2 * k + n], y: f32[Tensor, n]) -> f32[Tensor, k]:
    return R.multiply(R.zeros((k,)), R.sum(R.add(R.sum(x), y)))
""",
    "checked": """
def main(x: f32[Tensor, n]) -> f32[Tensor, k + 1]:
    y = R.match_cast(R.exp(x), f32[Tensor, 3 * k + 1])
    return R.add(R.sum(y), R.zeros((k + 1,)))
""",
    "falling": """
def main(x: f32[Tensor, n - 2 * k], y: f32[Tensor, n]) -> f32[Tensor, k]:
    return R.add(R.sum(R.add(R.sum(x), y)), R.zeros((k,)))
""",
    "a factor": """
def main(x: f32[Tensor, m * k], y: f32[Tensor, m]) -> f32[Tensor, k]:
    return R.add(R.sum(R.add(R.sum(x), y)), R.zeros((k,)))
""",
    "facts": """
def main(x: f32[Tensor, 3 * big]) -> f32[Tensor, big]:
    return R.add(R.sum(x), R.zeros((big,)))
""",
    "a number": """
def main(x: f32[Tensor, n], s: R.Prim("int64", 2 * k + 1)) -> f32[Tensor, k]:
    return R.add(R.sum(x), R.zeros((k,)))
""",
    "a shape": """
def main(x: f32[Tensor, n], s: R.Shape(k + n, 4)) -> f32[Tensor, k]:
    return R.add(R.sum(x), R.zeros((k,)))
""",
    "a call": """
def half(x: f32[Tensor, 2 * k + m], y: f32[Tensor, m]) -> f32[Tensor, m]:
    return R.add(R.sum(R.exp(x)), R.multiply(y, R.sum(R.ones((k,)))))
@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, m]:
    return R.exp(half(R.negative(x), y))
""",
    "data": """
def main(x: f32[Tensor, n]) -> i64[Tensor, R.rank(2)]:
    found = R.nonzero(x)
    pairs = R.match_cast(found, i64[Tensor, 1, 2 * k])
    return R.reshape(pairs, (2, k))
""",
    "read": """
def main(x: f32[Tensor, n], s: i64[Tensor, 2]) -> f32[Tensor, R.rank(2)]:
    sizes = R.match_cast(R.tensor_to_shape(s), R.Shape(2 * k + j, j))
    return R.add(R.sum(x), R.zeros((k, j)))
""",
}
LOOP = """
def main(s: i64[Tensor, 2, 2], x: f32[Tensor, 1]) -> f32[Tensor, 1]:
    i = R.const(0)
    y = x
    while R.less(i, 2):
        row = R.take(s, i, axis=0)
        sizes = R.match_cast(R.tensor_to_shape(row), R.Shape(2 * j, j))
        y = R.add(y, R.sum(R.ones((j,))))
        i = R.add(i, 1)
    return y
"""
BYTECODE = {
    "of a call": """
def found(x: f32[Tensor, n]) -> i64[Tensor, 2 * k]:
    return R.match_cast(R.reshape(R.nonzero(x), (-1,)), i64[Tensor, 2 * k])
@script.function
def main(x: f32[Tensor, n]) -> i64[Tensor, R.rank(1)]:
    return R.sum(R.reshape(found(x), (-1, 2)), axis=(1,))
""",
    "of the host": """
def main(x: f32[Tensor, n]) -> f32[Tensor, k]:
    y = R.call_packed("told.same", x, out=f32[Tensor, 2 * k + 1])
    return R.add(R.sum(y), R.zeros((k,)))
""",
    "of a closure": """
def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, m]:
    @script.function
    def inner(z: f32[Tensor, 2 * k + n]) -> f32[Tensor, m]:
        return R.add(R.multiply(y, R.sum(R.ones((k,)))), R.add(R.sum(z), R.sum(x)))
    return inner(y)
""",
}
Given = Sequence[Any]


def module_of(case: str) -> unity.IRModule:
    return parse(HEAD + "@script.function" + {**NATIVE, **BYTECODE}[case])


def compiled(module: unity.IRModule) -> unity.Executable:
    return unity.compile(module, pipeline=unity.pipeline().without(InlineFunctions))


def calls(case: str) -> list[Given]:
    """Calls that fit and calls that don't."""
    x = [np.linspace(-1, 1, n, dtype=np.float32) for n in range(13)]
    match case:
        case "checked" | "facts" | "of the host":
            return [[a] for a in x]
        case "a number":
            return [[x[2], s] for s in (1, 4, 7, 0, -1)]
        case "a shape":
            return [[x[3], s] for s in ((3, 4), (5, 4), (2, 4), (5, 3))]
        case "data" | "of a call":
            return [[np.arange(n, dtype=np.float32)] for n in range(6)]
        case "read":
            sizes = ([7, 3], [6, 3], [2, 3], [0, 0], [-4, 2], [4, -2], [1 << 40, 2])
            return [[x[3], np.array(s)] for s in sizes]
        case _:
            return [
                [x[n], x[m]] for n, m in ((6, 2), (5, 2), (2, 6), (1, 6), (0, 0), (3, 0), (9, 3))
            ]


def outcome(run: Callable[..., Any], args: Given) -> Any:
    try:
        return run(*args)
    except (unity.UnityError, MemoryError):
        return None


def same(got: Any, want: Any, args: Given) -> None:
    assert (got is None) == (want is None), [np.shape(a) for a in args]
    if want is not None:
        agree(got, want)


@pytest.fixture(autouse=True, scope="module")
def _host() -> None:
    unity.register_function("told.same", lambda x: x)


@pytest.mark.parametrize("case", [*NATIVE, *BYTECODE])
def test_they_are_told_on_every_road(case: str, tmp_path: Path) -> None:
    module = module_of(case)
    exe = compiled(module)
    assert (exe.native()["main"] == "native") == (case in NATIVE)
    exe.save(tmp_path / "told.unity")
    loaded = runtime.load(tmp_path / "told.unity")
    fits = 0
    for args in calls(case):
        want = outcome(lambda *a: interpret(module, "main", list(a)), args)
        fits += want is not None
        for run in (exe, lambda *a: exe.trace(lambda _: None, *a), loaded):
            same(outcome(run, args), want, args)
    assert 0 < fits < len(calls(case))


@pytest.mark.parametrize("case", [c for c in NATIVE if c not in ("data", "read")])
def test_c_is_told_them(case: str, tmp_path: Path) -> None:
    module = module_of(case)
    compiled(module).export_library(tmp_path / "libtold.so")
    library = Exported(tmp_path / "libtold.so")
    for args in calls(case):
        want = outcome(lambda *a: interpret(module, "main", list(a)), args)
        given = [a if isinstance(a, np.ndarray) else np.asarray(a, np.int64) for a in args]
        if want is None:
            with pytest.raises(Failed):
                library.run(given, [np.empty(4, np.float32)])
            continue
        ((size,),) = library.shapes(given, [1])
        found = np.empty(size, np.float32)
        library.run(given, [found])
        agree(found, want)


@pytest.mark.parametrize(
    ("case", "args", "said"),
    [
        (
            "given",
            (8, 3),
            r"input 'x' axis 0: expected n \+ \(k \* 2\) \(n = 3 from input 'y' axis 0\), got 8, "
            "which does not tell a size k",
        ),
        ("falling", (4, 2), "input 'x' axis 0: .* got 4, which does not tell a size k"),
        ("a factor", (0, 0), "m = 0 from input 'y' axis 0.*, got 0, which does not tell a size k"),
        ("facts", (9,), "symbol big is 3, but it must be a multiple of 2"),
        ("of a call", (2,), "got 1, which does not tell a size k"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(case: str, args: tuple[int, ...], said: str) -> None:
    exe = compiled(module_of(case))
    with pytest.raises(unity.UnityError, match=said):
        exe(*(np.arange(n, dtype=np.float32) for n in args))


def test_rounds_of_a_loop_are_told_anew() -> None:
    """The second row would fit what the first told."""
    module = parse(f"{HEAD}@script.function{LOOP}")
    exe, x = compiled(module), np.ones(1, np.float32)
    assert exe.native()["main"] == "native"
    agree(exe(np.array([[4, 2], [6, 3]]), x), np.array([6.0]))
    with pytest.raises(unity.UnityError, match=r"expected j \* 2 = 6 \(j = 3"):
        exe(np.array([[4, 2], [4, 3]]), x)


def test_c_says_what_does_not_fit(tmp_path: Path) -> None:
    compiled(module_of("given")).export_library(tmp_path / "libtold.so")
    library = Exported(tmp_path / "libtold.so")
    x = np.zeros(9, np.float32)
    for n, m, said in ((2, 3, r"is not n \+ \(k \* 2\), whatever k is"), (8, 3, "is not")):
        with pytest.raises(Failed, match=said):
            library.run([x[:n], x[:m]], [np.empty(4, np.float32)])


@pytest.mark.parametrize("size", ["k * m", "k // 2", "min(k, 3)", "k * k"])
def test_what_tells_no_one_number_is_refused(size: str) -> None:
    with pytest.raises(unity.UnsupportedError, match="no size in the inputs of main tells k"):
        unity.compile(
            parse(
                f"{HEAD}@script.function\ndef main(x: f32[Tensor, {size}]) -> f32[Tensor, k]:\n"
                "    return R.zeros((k,))\n"
            )
        )


def test_random_sizes_are_told_as_the_interpreter_tells_them() -> None:
    rng = random.Random(7)
    fits = refused = 0
    for _ in range(16):
        sizes = [_linear(rng) for _ in range(4)]
        text = (
            f"{HEAD}@script.function\ndef main(x: f32[Tensor, {sizes[0]}, {sizes[1]}], "
            f"y: f32[Tensor, {sizes[2]}, {sizes[3]}]):\n"
            "    return R.prim(k), R.prim(n), R.prim(m)\n"
        )
        try:
            module = parse(text)
            exe = unity.compile(module)
        except unity.UnityError:
            refused += 1
            continue
        for turn in range(8):
            values = {s: rng.randint(1, 4) for s in "knm"}
            shape = [max(eval(size, dict(values)), 0) for size in sizes]
            if turn % 2:
                shape[rng.randrange(4)] += rng.randint(0, 1)
            args = [np.ones(shape[:2], np.float32), np.ones(shape[2:], np.float32)]
            want = outcome(lambda *a, m=module: interpret(m, "main", list(a)), args)
            fits += want is not None
            same(outcome(exe, args), want, args)
            same(outcome(lambda *a, e=exe: e.trace(lambda _: None, *a), args), want, args)
    assert fits > 20
    assert refused < 12


def _linear(rng: random.Random) -> str:
    terms = rng.sample(["k", "n", "m", "n * m", "1"], rng.randint(1, 2))
    return " + ".join(f"{rng.choice((1, 1, 2, 3, -1))} * {term}" for term in terms)
