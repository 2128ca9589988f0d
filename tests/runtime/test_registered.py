"""Functions of the host that programs call by name: order, types, objects, artifacts, refusals."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity import script
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.runtime.bytecode import CallHost, CallKernel, Print
from unity.runtime.hosts import registered
from unity.runtime.vm import Event
from unity.script import R, Tensor, dim, f32, parse, print_module

Array = npt.NDArray[Any]
n, m = dim("n"), dim("m")
X = np.arange(4, dtype=np.float32)
T = "f32[Tensor, n]"


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten behind it."""
    monkeypatch.setattr(registered, "_functions", dict(registered._functions))


@pytest.fixture
def log() -> list[object]:
    """What was noted, in order."""
    seen: list[object] = []
    unity.register_function("t.note", lambda *args: seen.append(args[1:]))
    return seen


note = script.extern("t.note", R.Func([f32[Tensor, n], R.Object], R.Tuple(), False))


@script.function
def noting(x: f32[Tensor, n]) -> f32[Tensor, n]:
    note(x, "begin")
    y = R.call_packed("t.scale", R.exp(x), 2.0, f32, out=f32[Tensor, n])
    note(y, n)
    R.negative(y)
    note(R.add(y, x), ("end", 3, True, (R.shape(n, 2),)))
    return y


def scaled(x: Array, by: float, kind: object) -> Array:
    assert kind == np.float32
    assert not x.flags.writeable
    return x * np.float32(by)


def runs(module: IRModule) -> dict[str, Callable[..., object]]:
    """What runs a module's main function: the interpreter, compiled, and read from its text."""
    again = parse(print_module(module), script.constants_of(module))
    assert unity.structural_equal(module, again)
    return {
        "interpreted": lambda *args: interpret(module, "main", args),
        "compiled": unity.compile(module),
        "from text": unity.compile(again),
    }


def test_calls_run_in_order_and_none_is_removed(log: list[object]) -> None:
    unity.register_function("t.scale", scaled)
    module = IRModule({"main": noting.module()["noting"], **noting.module().without("noting")})
    for name, run in runs(module).items():
        log.clear()
        np.testing.assert_allclose(np.asarray(run(X)), np.exp(X) * 2, rtol=1e-6, err_msg=name)
        assert log == [("begin",), (4,), (("end", 3, True, ((4, 2),)),)], name


def test_explain_has_a_row_for_each(log: list[object]) -> None:
    unity.register_function("t.scale", scaled)
    exe = unity.compile(noting)
    rows = exe.explain()
    host = [(r.op, r.choice) for r in rows if r.choice == "host"]
    assert host == [("t.note", "host"), ("t.scale", "host"), ("t.note", "host"), ("t.note", "host")]
    assert "registered" in rows["y"].reason if "y" in {r.site for r in rows} else True
    assert exe.native()["noting"] == "bytecode: it calls the host's function t.scale"


def test_a_pure_function_that_nobody_reads_is_not_called() -> None:
    calls: list[int] = []

    def count(x: Array) -> Array:
        calls.append(1)
        return x

    unity.register_function("t.count", count)

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        R.call_pure_packed("t.count", x, out=f32[Tensor, R.rank(1)])
        a = R.call_pure_packed("t.count", x, out=f32[Tensor, R.rank(1)])
        b = R.call_pure_packed("t.count", x, out=f32[Tensor, R.rank(1)])
        return R.match_cast(R.add(a, b), f32[Tensor, n])

    np.testing.assert_array_equal(unity.compile(main)(X), X + X)
    assert len(calls) == 1


def test_what_is_returned_is_the_programs_own() -> None:
    kept = np.ones(4, np.float32)
    unity.register_function("t.kept", lambda x: kept)
    unity.register_function("t.same", lambda x: x)

    @script.function
    def main(x: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
        a = R.call_packed("t.kept", x, out=f32[Tensor, 4])
        b = R.call_packed("t.same", x, out=f32[Tensor, 4])
        return a, b

    x = X.copy()
    a, b = unity.compile(main)(x)
    a[:], b[:] = 7, 8
    assert kept.tolist() == [1, 1, 1, 1]
    np.testing.assert_array_equal(x, X)


def test_objects_pass_through() -> None:
    unity.register_function("t.open", lambda name: {"name": name, "rows": []})
    unity.register_function("t.push", lambda state, x: state["rows"].append(x.sum()))
    unity.register_function("t.total", lambda state: np.float32(sum(state["rows"])))

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(0)]:
        state = R.call_packed("t.open", "cache", out=R.Object)
        R.call_packed("t.push", state, x)
        R.call_packed("t.push", state, R.exp(x))
        return R.call_packed("t.total", state, out=f32[Tensor, R.rank(0)])

    for name, run in runs(main.module()).items():
        got = np.asarray(run(X))
        np.testing.assert_allclose(got, X.sum() + np.exp(X).sum(), rtol=1e-6, err_msg=name)


def test_a_size_that_the_host_decides() -> None:
    unity.register_function("t.odd", lambda x: x[1::2])

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
        y = R.call_packed("t.odd", x, out=f32[Tensor, m])
        return R.exp(y)

    for name, run in runs(main.module()).items():
        np.testing.assert_allclose(np.asarray(run(X)), np.exp(X[1::2]), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda x: x.astype(np.float64), "expected dtype float32, got float64"),
        (lambda x: x[:2], "expected 4, got 2"),
        (lambda x: None, "expected a tensor, got tuple"),
        (lambda x: "text", "expected a tensor, got str"),
    ],
)
def test_a_wrong_result_is_refused(gives: Callable[[Array], object], said: str) -> None:
    unity.register_function("t.wrong", gives)

    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        return R.call_packed("t.wrong", x, out=f32[Tensor, 4])

    with pytest.raises(unity.UnityError, match=said) as error:
        unity.compile(main)(X)
    assert "t.wrong" in error.value.message
    with pytest.raises(unity.UnityError, match=r"t\.wrong"):
        interpret(main.module(), "main", [X])


def test_a_result_whose_sizes_do_not_fit_is_called_by_the_functions_name() -> None:
    unity.register_function("t.short", lambda x: x[1:])

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = R.call_packed("t.short", x, out=f32[Tensor, n])
        return R.exp(y)

    with pytest.raises(unity.UnityError) as error:
        unity.compile(main)(X)
    place, _, said = error.value.message.partition(": ")
    assert said == "the result of t.short axis 0: symbol n is 3 here but 4 from before"
    assert place.startswith(f"{__file__}:")


@pytest.mark.parametrize("call", ["R.call_packed('t.same', x, out={})", "R.match_cast(x, {})"])
def test_a_symbol_that_no_size_tells_is_refused(call: str) -> None:
    unity.register_function("t.same", lambda x: x)
    told = call.format("f32[Tensor, m // 2]")
    module = parse(
        f"n = dim('n')\nm = dim('m')\n@script.function\ndef main(x: {T}):\n"
        f"    y = {told}\n    return R.exp(y)\n"
    )
    with pytest.raises(unity.UnsupportedError, match=r"no size in .* tells m, by being m alone"):
        unity.compile(module)


def test_a_wrong_argument_is_refused() -> None:
    unity.register_function("t.two", lambda a, b: None)
    two = script.extern("t.two", R.Func([f32[Tensor, m], f32[Tensor, m]], R.Tuple(), False))

    @script.function
    def main(x: f32[Tensor, R.rank(1)], y: f32[Tensor, R.rank(1)]) -> f32[Tensor, R.rank(1)]:
        two(x, y)
        return x

    exe = unity.compile(main)
    exe(X, X)
    with pytest.raises(unity.UnityError, match="symbol m is 2 here but 4"):
        exe(X, X[:2].copy())


def test_errors_of_the_function_are_its_own() -> None:
    def broken(x: Array) -> Array:
        raise ValueError("no such file")

    unity.register_function("t.broken", broken)

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.call_packed("t.broken", x, out=f32[Tensor, n])

    with pytest.raises(ValueError, match="no such file") as told:
        unity.compile(main)(X)
    line = inspect.getsourcelines(broken)[1] + 7
    (note,) = told.value.__notes__
    assert note == f"called by the program at {__file__}:{line}:16"


def test_errors_of_functions_that_are_declared_and_of_pythons_name_the_line() -> None:
    def broken(x: Array, *out: Array) -> Array:
        raise KeyError("none")

    unity.register_function("t.declared", broken)
    declared = script.extern("t.declared", R.Func([f32[Tensor, n]], f32[Tensor, n], False))

    @script.function
    def by_name(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.negative(declared(x))

    @script.function
    def itself(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.call_python(broken, (x,), out=f32[Tensor, n])

    for function in (by_name, itself):
        with pytest.raises(KeyError, match="none") as told:
            unity.compile(function)(X)
        assert [n.startswith("called by the program at ") for n in told.value.__notes__] == [True]


def test_a_name_that_is_not_registered_is_refused() -> None:
    unity.register_function("t.known", lambda x: x)

    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.call_packed("t.knwon", x, out=f32[Tensor, n])

    with pytest.raises(unity.UnityError, match=r"'t\.knwon'.*did you mean t\.known") as error:
        unity.compile(main)
    assert "unity.register_function('t.knwon'" in (error.value.hint or "")


def test_an_artifact_finds_it_by_name(tmp_path: Path) -> None:
    unity.register_function("t.scale", scaled)
    unity.register_function("t.note", lambda *args: None)
    path = tmp_path / "noting.unity"
    unity.compile(noting).save(path)
    unity.register_function("t.scale", lambda x, by, kind: x, override=True)
    np.testing.assert_allclose(unity.load(path)(X), np.exp(X), rtol=1e-6)
    del registered._functions["t.scale"]
    with pytest.raises(unity.UnityError, match=r"'t\.scale', and no function of that name"):
        unity.load(path)


def test_a_library_for_c_is_refused(tmp_path: Path, log: list[object]) -> None:
    unity.register_function("t.scale", scaled)
    with pytest.raises(unity.UnsupportedError, match=r"t\.note"):
        unity.compile(noting).export_library(tmp_path / "libnoting.so")


def test_registering_twice_is_refused() -> None:
    def first(x: Array) -> Array:
        return x

    assert unity.register_function("t.first", first) is first
    unity.register_function("t.first", first)
    with pytest.raises(unity.UnityError, match=r"there is a function 't\.first' already"):
        unity.register_function("t.first", lambda x: x)
    with pytest.raises(unity.UnityError, match="is no name of a function"):
        unity.register_function(" t", first)


def test_python_calls_no_extern() -> None:
    with pytest.raises(unity.UnityError, match="called by programs, not by Python"):
        note(X, "begin")


@pytest.mark.parametrize("gives", [(X, X, X), X, (X, (X, X))])
def test_another_number_of_results_is_refused(gives: object) -> None:
    unity.register_function("t.pair", lambda x: gives)

    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        pair = R.call_packed("t.pair", x, out=(f32[Tensor, 4], f32[Tensor, 4]))
        return pair[0]

    with pytest.raises(unity.UnityError, match=r"the result of t\.pair"):
        unity.compile(main)(X)
    with pytest.raises(unity.UnityError, match=r"the result of t\.pair"):
        interpret(main.module(), "main", [X])


def calls_of(exe: unity.Executable, *args: object) -> tuple[int, int]:
    """How many kernels and how many calls of the host a run has."""
    kernels = hosts = 0

    def watch(event: Event) -> None:
        nonlocal kernels, hosts
        kernels += isinstance(event.instruction, CallKernel)
        hosts += isinstance(event.instruction, CallHost | Print)

    exe.trace(watch, *args)
    return kernels, hosts


@pytest.mark.parametrize("seed", range(8))
def test_what_runs_is_what_explain_says(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """In random programs without branches: each row `host` is a call, the others are kernels."""
    pick = random.Random(seed)
    unity.register_function("t.twice", lambda x: x * 2)
    lines, last = [], "x"
    for i in range(pick.randint(3, 9)):
        match pick.randrange(5):
            case 0:
                lines.append(f'y{i} = R.call_packed("t.twice", {last}, out=f32[Tensor, n])')
            case 1:
                lines.append(f"y{i} = R.match_cast(R.scatter_elements({last}, k, {last}), {T})")
            case 2:
                lines.append(f"print({last})\n    y{i} = R.exp({last})")
            case 3:
                count = f'R.sum(R.astype(R.nonzero({last}), "float32"))'
                lines.append(f"y{i} = R.add({last}, {count} * 0.0 + 1.0)")
            case _:
                lines.append(f"y{i} = R.nn.softmax({last})")
        last = f"y{i}"
    body = "\n    ".join([*lines, f"return {last}"])
    head = "def main(x: f32[Tensor, n], k: i64[Tensor, n]):"
    text = f'n = dim("n")\n@script.function(pure=False)\n{head}\n    {body}\n'
    exe = unity.compile(parse(text))
    rows = exe.explain()
    hosted = [r for r in rows if r.choice == "host"]
    kernels, hosts = calls_of(exe, X, np.arange(4))
    capsys.readouterr()
    assert hosts == len(hosted), (body, str(rows))
    assert kernels <= len(rows) - len(hosted)
    assert (kernels > 0) == (len(rows) > len(hosted)), (body, str(rows))


def test_a_function_that_takes_fewer_arguments_is_named() -> None:
    def once(x: Array) -> Array:
        return x

    def broken(*_: Array) -> Array:
        raise TypeError("its own")

    unity.register_function("t.once", once)
    unity.register_function("t.broken", broken)
    text = """
@script.function(pure=False)
def main(x: f32[Tensor, 4]):
    return R.call_packed("t.NAME", x, x, out=f32[Tensor, 4])
"""
    with pytest.raises(unity.UnityError, match=r"gives 't.once' 2 arguments: .*once\(\) takes 1"):
        unity.compile(parse(text.replace("NAME", "once")))(X)
    with pytest.raises(TypeError, match="its own"):
        unity.compile(parse(text.replace("NAME", "broken")))(X)
