"""What was chosen by estimate and fails is left out and told of; what was asked for is an error."""

from __future__ import annotations

import ctypes.util
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unity
from tests.codegen.engine.stub import PickyEngine, StubEngine
from unity.codegen.engine import register_engine, register_engines
from unity.codegen.library import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    SharedLibrary,
    fixed_kernel,
    register_libraries,
    register_library_function,
)
from unity.errors import UnityError
from unity.op.registry import OpClass
from unity.script import parse
from unity.transform import backend_of, register_backend
from unity.transform.backend import BACKENDS
from unity.transform.graph.resolve.engine import ENGINES
from unity.transform.pattern import any_, op

PROGRAM = """
@script.function
def main(x: f32[Tensor, 300, 96], w: f32[Tensor, 96, 800]) -> f32[Tensor, 300, 800]:
    with R.dataflow():
        y = R.matmul(x, w)
        z = R.cos(y)
    return z
"""
X, W = np.full((300, 96), 0.1, np.float32), np.full((96, 800), 0.1, np.float32)


@pytest.fixture(autouse=True)
def _tempted() -> Iterator[None]:
    register_engines()
    register_libraries()
    engines, functions = dict(ENGINES), dict(LIBRARY_FUNCTIONS)
    cpu = backend_of("cpu")
    fast: Mapping[OpClass, float] = {"contraction": 100.0, "elementwise": 100.0}
    promised = {**cpu.efficiency, "engine:tempting": fast, "library:tempting": fast}
    register_backend(replace(cpu, efficiency=promised))
    yield
    BACKENDS["cpu"] = cpu
    ENGINES.clear()
    ENGINES.update(engines)
    LIBRARY_FUNCTIONS.clear()
    LIBRARY_FUNCTIONS.update(functions)


def right(exe: unity.Executable) -> None:
    np.testing.assert_allclose(exe(X, W), np.cos(X @ W), rtol=1e-4, atol=1e-4)


def test_an_engine_that_cannot_compile(caplog: pytest.LogCaptureFixture) -> None:
    register_engine(StubEngine("tempting", "compile"))
    exe = unity.compile(parse(PROGRAM), resolve="static")
    right(exe)
    assert "engine:tempting is left out: the engine tempting can't compile" in caplog.text
    row = exe.explain()["y"]
    assert row.choice != "engine:tempting"
    (why,) = [c.why_not for c in row.candidates if c.implementation == "engine:tempting"]
    assert why is not None
    assert why.endswith("ValueError: no licence")


@pytest.mark.parametrize(
    "resolve",
    [
        "engine:tempting",
        {"matmul": "engine:tempting"},
        {"main/y": "engine:tempting", "*": "static"},
        lambda site, found: found[-1],
    ],
)
def test_an_engine_asked_for_that_cannot_compile(
    resolve: str, caplog: pytest.LogCaptureFixture
) -> None:
    register_engine(StubEngine("tempting", "compile"))
    with pytest.raises(UnityError, match=r"tempting can't compile .*: no licence\nhint: compile"):
        unity.compile(parse(PROGRAM), resolve=resolve)
    assert not caplog.text


def test_an_engine_whose_package_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    register_engine(StubEngine("tempting", "missing"))
    exe = unity.compile(parse(PROGRAM), resolve="static")
    right(exe)
    (why,) = [
        c.why_not for c in exe.explain()["y"].candidates if c.implementation == "engine:tempting"
    ]
    assert why == "it was never built"
    with pytest.raises(UnityError, match=r"'tempting' can't be used: it was never built"):
        unity.compile(parse(PROGRAM), resolve="engine:tempting")
    assert not caplog.text


@pytest.mark.parametrize("resolve", ["static", "engine:tempting"])
def test_an_engine_that_fails_when_it_runs(resolve: str) -> None:
    """Nothing may run twice, so there is no second road: the caller is told."""
    register_engine(StubEngine("tempting", "run"))
    exe = unity.compile(parse(PROGRAM), resolve=resolve)
    with pytest.raises(
        UnityError, match=r"tempting failed in .* shapes \(300, 96\).*: out of luck"
    ):
        exe(X, W)


COSINES = """
n = dim("n")
m = dim("m")
@script.prim_func
def cosines(x: f32[Buffer, n, m], y: f32[Buffer, n, m]) -> None:
    for i, j in T.grid(n, m):
        y[i, j] = T.call_extern("tempting.FUNCTION", x[i, j], dtype="float32")
"""


def tempting_library(file: str | Path, function: str) -> None:
    library = SharedLibrary("tempting", [file], hint="get it at the usual place").register()
    kernel = parse(COSINES.replace("FUNCTION", function)).prim_funcs()["cosines"]
    register_library_function(
        LibraryFunction(
            "tempting.cos",
            fixed_kernel(kernel),
            np.cos,
            pattern=op("cos", any_("x")),
            inputs=("x",),
            missing=library.missing,
        )
    )


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF and nothing else"])
def test_a_library_that_cannot_be_loaded(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "libtempting.so"
    if content is not None:
        file.write_bytes(content)
    tempting_library(file, "cosf")
    exe = unity.compile(parse(PROGRAM), resolve="static")
    right(exe)
    (why,) = [c.why_not for c in exe.explain()["z"].candidates if "tempting" in c.implementation]
    assert why is not None
    assert why.startswith(f"the library 'tempting' can't be loaded: {file}: ")
    with pytest.raises(UnityError, match="'tempting' can't be used: the library 'tempting' can't"):
        unity.compile(parse(PROGRAM), resolve={"cos": "library:tempting"})


def test_a_library_without_the_function(caplog: pytest.LogCaptureFixture) -> None:
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no C library of mathematics")
    tempting_library(name, "cosine_of_my_own")
    exe = unity.compile(parse(PROGRAM), resolve="static")
    right(exe)
    told = "the kernel 'cos' calls 'tempting.cosine_of_my_own': the library 'tempting' "
    assert f"library:tempting is left out: {told}" in caplog.text
    (why,) = [c.why_not for c in exe.explain()["z"].candidates if "tempting" in c.implementation]
    assert why is not None
    assert why.endswith("has no function 'cosine_of_my_own'")
    with pytest.raises(UnityError, match=r"no function 'cosine_of_my_own'\nhint: looked for cos"):
        unity.compile(parse(PROGRAM), resolve={"cos": "library:tempting"})


def test_a_call_in_the_program_itself_is_asked_for() -> None:
    register_engine(StubEngine("tempting", "compile"))
    text = """
@script.function(attrs={"private": True})
def part(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.exp(x)
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.call_engine("tempting", part, (x,), out=f32[Tensor, 4])
    return y
"""
    with pytest.raises(UnityError, match=r"tempting can't compile .*: no licence"):
        unity.compile(parse(text), resolve="static")


PARTS = """
@script.function
def main(x: f32[Tensor, 3, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, 3, 4]:
    with R.dataflow():
        a = R.exp(x)
        y = R.matmul(a, w)
        b = R.tanh(y)
        c = R.sqrt(R.abs(b))
    return c
"""


@pytest.mark.parametrize(
    ("engine", "ours"),
    [
        (PickyEngine(refuses=frozenset(("matmul",))), {"y"}),
        (PickyEngine(refuses=frozenset(("exp", "sqrt"))), {"a", "c"}),
        (PickyEngine(together=frozenset(("exp", "sqrt"))), {"a", "y", "b", "abs", "c"}),
    ],
)
@pytest.mark.parametrize("resolve", ["engine:picky", {"*": "engine:picky"}])
def test_parts_that_an_engine_cannot_compile_are_ours(
    engine: PickyEngine, ours: set[str], resolve: str, caplog: pytest.LogCaptureFixture
) -> None:
    register_engine(engine)
    exe = unity.compile(parse(PARTS), resolve=resolve)
    x, w = np.full((3, 4), 0.5, np.float32), np.full((4, 4), 0.25, np.float32)
    wanted = np.sqrt(np.abs(np.tanh(np.exp(x) @ w)))
    np.testing.assert_allclose(exe(x, w), wanted, rtol=1e-5)
    rows = list(exe.explain())
    assert {r.site.removeprefix("main/") for r in rows if r.choice == "tir"} == ours
    for row in rows:
        if row.choice == "tir":
            assert "engine:picky can't have it: " in row.reason
            assert "no kernel for" in row.reason
    assert "engine:picky is left out at main/" in caplog.text


def test_a_call_asked_for_that_an_engine_cannot_compile() -> None:
    register_engine(PickyEngine(refuses=frozenset(("matmul",))))
    message = "main/y can't be resolved to 'engine:picky': RuntimeError: no kernel for matmul"
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(PARTS), resolve={"main/y": "engine:picky"})
    message = "main/y: the function chose 'engine:picky': RuntimeError: no kernel for matmul"
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(PARTS), resolve=lambda site, found: "engine:picky")
