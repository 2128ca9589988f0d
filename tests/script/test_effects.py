"""`print` and `assert` in graph functions: their order, what they say, and that none is removed."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import Annotated

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.script import R, Tensor, dim, f32, i64, parse, print_module
from unity.transform import Context
from unity.transform import pipeline as standard_pipeline

n = dim("n")
X = np.arange(4, dtype=np.float32)


@script.function
def main(x: f32[Tensor, n], k: i64[Tensor, ()]) -> f32[Tensor, n]:
    print("begin", n, x)
    R.exp(x)
    assert n > 2, f"too few: {n}"
    y = R.exp(x)
    i = R.const(0)
    while i < k:
        print(f"step {i} of {k}: {R.sum(y):.3f} {{}}")
        y = y * 2.0
        if R.sum(y) > 100.0:
            print("large")
        else:
            R.print(y, i, format="{} at {}")
        i = i + 1
    assert R.sum(y) < 1000.0
    return y


LINES = """\
begin 4 [0. 1. 2. 3.]
step 0 of 2: 31.193 {}
[ 2.         5.4365635 14.778112  40.171074 ] at 0
step 1 of 2: 62.386 {}
large
"""


def runs(module: IRModule, name: str = "main") -> list[Callable[..., object]]:
    again = parse(print_module(module), script.constants_of(module))
    assert unity.structural_equal(module, again)
    return [lambda *args: interpret(module, name, args), unity.compile(module)]


def test_they_print_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    for run in runs(main.module()):
        run(X, np.asarray(2))
        assert capsys.readouterr().out == LINES


def test_what_fails_is_named_with_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    for run in runs(main.module()):
        with pytest.raises(unity.UnityError, match=r"test_effects\.py:\d+.* failed: too few: 2$"):
            run(X[:2].copy(), np.asarray(1))
        assert capsys.readouterr().out == "begin 2 [0. 1.]\n"
        with pytest.raises(unity.UnityError, match=r"assertion failed: R\.sum\(y\) < 1000\.0$"):
            run(X, np.asarray(9))
        capsys.readouterr()


@script.function
def checked(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.exp(x)
    assert R.max(y) < 100.0, f"the largest is {R.max(y):.1f}"
    return R.negative(y)


def test_an_assert_is_native_code() -> None:
    exe = unity.compile(checked)
    assert exe.native() == {"checked": "native"}
    np.testing.assert_allclose(exe(X), -np.exp(X), rtol=1e-6)
    with pytest.raises(unity.UnityError, match=r"failed: the largest is 8103\.1"):
        exe(X + 6)


def test_an_assert_of_sizes_known_now() -> None:
    @script.function
    def fits(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        assert x.shape[0] == 4, "four"
        return x

    assert "assert" not in print_module(fits.module())
    with pytest.raises(unity.UnityError, match="the assertion 'four' never holds"):

        @script.function
        def never(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            assert x.shape[0] == 5, "four"
            return x


def test_explain_says_that_python_prints() -> None:
    rows = [r for r in unity.compile(main).explain() if r.op == "print"]
    assert [r.choice for r in rows] == ["host"] * 4
    assert unity.compile(main).native() == {"main": "native"}


def test_a_format_that_does_not_fit_names_the_line() -> None:
    @script.function
    def whole(x: f32[Tensor, n]) -> f32[Tensor, n]:
        print(f"{x:.2f}")
        return x

    said = r"test_effects\.py:\d+:9: the format '\{:\.2f\}' does not fit"
    for call in (unity.compile(whole), unity.compile(whole, check_bounds=True)):
        with pytest.raises(UnityError, match=said):
            call(X)


class Full:
    """A standard output that has room for so many lines."""

    def __init__(self, lines: int) -> None:
        self.lines: list[str] = []
        self.room = lines

    def write(self, text: str) -> int:
        if len(self.lines) == self.room:
            raise OSError("no room")
        self.lines += text.splitlines() if text != "\n" else []
        return len(text)


def test_what_printing_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    exe = unity.compile(main)
    for room in (0, 2):
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", Full(room))
            with pytest.raises(OSError, match="no room"):
                exe(X, np.asarray(2))
    exe(X, np.asarray(2))


@script.function
def told(
    x: f32[Tensor, n],
    k: Annotated[int, R.Prim("int64")],
    s: Annotated[float, R.Prim("float64")],
    b: Annotated[bool, R.Prim("bool")],
) -> f32[Tensor, n]:
    print("of all kinds", x.shape, k, s, b, (x, (k, s)), R.dtype("int8"), R.shape(n, 2))
    for i in range(k):
        print(i, R.astype(x, "bfloat16"), x[:0], R.sum(x) > 1.0, R.prim(R.sum(x)))
        assert i < 2
    return x


def test_values_of_all_kinds_in_native_code(capsys: pytest.CaptureFixture[str]) -> None:
    exe, said = unity.compile(told), list[str]()
    assert exe.native() == {"told": "native"}
    for k in (0, 2, 4, 1):
        for run in runs(told.module(), "told"):
            fails = pytest.raises(unity.UnityError, match="assertion failed")
            with fails if k > 2 else nullcontext():
                run(X, k, 0.1, True)
            said.append(capsys.readouterr().out)
    assert len(said) == 8
    assert said[::2] == said[1::2]
    assert [text.count("\n") for text in said[::2]] == [1, 3, 4, 2]


def test_threads_print_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    """What one thread printed before it failed is not left out by another."""
    exe = unity.compile(told)

    def work(k: int) -> None:
        for _ in range(20):
            with suppress(unity.UnityError):
                exe(X, k, 0.1, True)

    threads = [Thread(target=work, args=(k,)) for k in (1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().out.count("of all kinds") == 40


def test_files_and_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exe = unity.compile(main)
    exe.save(tmp_path / "main.unity")
    unity.load(tmp_path / "main.unity")(X, np.asarray(2))
    assert capsys.readouterr().out == LINES
    with pytest.raises(unity.UnsupportedError, match="main prints, which Python does"):
        exe.export_library(tmp_path / "libmain.so")
    unity.compile(checked).export_library(tmp_path / "libchecked.so")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print(x, end='')", "print takes values alone"),
        ("print(f'{x!r}')", "an f-string here takes"),
        ("R.print(x, frmt='a')", "has no parameter 'frmt'"),
        ("assert x, 'a tensor'", "the condition must be a scalar bool"),
        ("assert 1 > 2", "never holds"),
        ("with R.dataflow():\n        print(x)", "can't stand in a dataflow block"),
    ],
)
def test_mistakes(line: str, said: str) -> None:
    text = f"""
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    {line}
    return x
"""
    with pytest.raises(unity.UnityError, match=said):
        parse(text)


unity.register_function("test.effects.tell", lambda _: np.asarray(1), override=True)


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("print(x)", "it prints"),
        (
            "for i in range(R.const(3)):\n        assert R.sum(x) > 0.0\n        x = x + 1.0",
            "asserts",
        ),
        ("R.call_packed('test.effects.tell', x)", "it calls .*, which has effects"),
    ],
)
def test_what_is_declared_pure_has_no_effects(line: str, does: str) -> None:
    """Else its calls are left out, and what they do with them."""
    text = """
@script.function(OPTIONS)
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    LINE
    return x
""".replace("LINE", line)
    with pytest.raises(unity.UnityError, match=f"declared pure, but .*{does}"):
        parse(text.replace("OPTIONS", "pure=True"))
    for options in ("", "pure=False"):
        main = parse(text.replace("OPTIONS", options))["main"]
        assert isinstance(main, Function)
        assert not main.pure
    with pytest.raises(unity.UnityError, match=r"test_effects\.py:\d+.*it prints"):

        @script.function(pure=True)
        def shows(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            print(x)
            return x


CALLERS = """
@script.function
def first(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return second(x)

@script.function
def second(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    if R.sum(x) > 1.0:
        return first(x - 1.0)
    return third(x)

@script.function
def third(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    @script.function
    def shows(y: f32[Tensor, 4]) -> f32[Tensor, 4]:
        LINE
        return y
    return shows(x)

@script.function
def alone(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return x
"""


def test_a_text_finds_out_what_is_pure() -> None:
    """As the decorator does: by what a function calls, in whatever order they are written."""
    plain = parse(CALLERS.replace("LINE", "pass"))
    assert all(f.pure for f in plain.graph_functions().values())
    module = parse(CALLERS.replace("LINE", "print(y)"))
    assert {n for n, f in module.graph_functions().items() if f.pure} == {"alone"}
    again = parse(print_module(module))
    assert unity.structural_equal(module, again)
    assert [f.pure for f in again.graph_functions().values()] == [False, False, False, True]
    declared = CALLERS.replace("LINE", "print(y)").replace(
        "n\ndef first", "n(pure=True)\ndef first"
    )
    with pytest.raises(unity.UnityError, match="declared pure, but it calls second"):
        parse(declared)


def test_what_never_holds_in_a_branch() -> None:
    """It may not be run: it is checked there, when it is."""

    @script.function
    def small(x: f32[Tensor, n]) -> f32[Tensor, n]:
        if R.sum(x) > 10.0:
            assert False, f"too large: {n}"  # noqa: B011, PT015
        return x * 2.0

    for run in runs(small.module(), "small"):
        np.testing.assert_array_equal(np.asarray(run(X)), X * 2)
        with pytest.raises(unity.UnityError, match="failed: too large: 4"):
            run(X * 9)


def test_a_builder_prints_values_one_by_one() -> None:
    """A tuple in a variable would be read back as the only value."""
    builder = unity.GraphBuilder()
    pair = builder.param("pair", R.Tuple(f32[Tensor, 4], f32[Tensor, 4]))
    with pytest.raises(unity.UnityError, match="print takes its values one by one"):
        builder.op("print", pair, format="{} {}")


def test_a_format_that_does_not_fit() -> None:
    @script.function
    def shows(x: f32[Tensor, n]) -> f32[Tensor, n]:
        print(f"{x:.3f}")
        return x

    for run in runs(shows.module(), "shows"):
        with pytest.raises(unity.UnityError, match=r"the format '\{:\.3f\}' does not fit"):
            run(X)


def program(seed: int) -> str:
    """A random program: pure work that nobody reads, effects everywhere, branches and loops."""
    pick = random.Random(seed)
    lines: list[str] = []
    count = iter(range(1000))

    def body(indent: str, depth: int) -> None:
        for _ in range(pick.randint(2, 4)):
            match pick.randrange(6 if depth else 4):
                case 0:
                    lines.append(f"{indent}y = R.{pick.choice(['exp', 'negative', 'tanh'])}(y)")
                case 1:
                    lines.append(f"{indent}R.exp(y)")
                case 2:
                    lines.append(f'{indent}print("at {next(count)}", y)')
                case 3:
                    limit = pick.choice([50.0, 1e9, 1e30])
                    lines.append(f'{indent}assert R.max(y) < {limit}, f"at {next(count)}: {{n}}"')
                case 4:
                    lines.append(f"{indent}if R.sum(y) > {pick.choice([0.0, 3.0])}:")
                    body(indent + "    ", depth - 1)
                    lines.append(f"{indent}else:")
                    body(indent + "    ", depth - 1)
                case _:
                    i = f"i{next(count)}"
                    lines.append(f"{indent}{i} = R.const(0)")
                    lines.append(f"{indent}while {i} < 2:")
                    body(indent + "    ", depth - 1)
                    lines.append(f"{indent}    {i} = {i} + 1")

    body("    ", 2)
    head = "n = dim('n')\n@script.function(pure=False)\ndef main(x: f32[Tensor, n]):\n    y = x"
    return "\n".join([head, *lines, "    return y"])


def outcome(run: Callable[..., object], capsys: pytest.CaptureFixture[str]) -> str:
    """What a run prints, and what it fails by."""
    try:
        run(X)
        failed = ""
    except unity.UnityError as error:
        failed = error.message
    return capsys.readouterr().out + failed


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_keep_every_effect(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    np.set_printoptions(precision=3)
    module = parse(program(seed))
    wanted = outcome(lambda x: interpret(module, "main", [x]), capsys)
    assert outcome(unity.compile(module), capsys) == wanted
    ctx, once = Context(unity.compile(checked).target), module
    for step in standard_pipeline().passes[:32]:
        once = step(once, ctx)
    assert outcome(lambda x: interpret(once, "main", [x]), capsys) == wanted
