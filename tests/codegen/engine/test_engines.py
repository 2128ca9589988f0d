"""Engines as parts of a program: equal numbers, all sizes, clear errors, several threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for
from tests.generators.graph import module as random_module
from unity.codegen.engine import (
    InterpreterEngine,
    OnnxRuntimeEngine,
    register_engine,
    register_engines,
)
from unity.codegen.engine.interpreter import InterpretedModule
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform.graph.resolve.engine import ENGINES

from .stub import Stage, StubEngine

TARGET = Target("cpu", "", "generic", ())

PROGRAM = """
n = dim("n")
@script.function
def main(
    x: f32[Tensor, n, 96], w: f32[Tensor, 96, 80]
) -> R.Tuple(f32[Tensor, n, 80], f32[Tensor, 80, n]):
    with R.dataflow():
        a = R.exp(x)
        y = R.matmul(a, w)
        z = R.nn.relu(y)
        t = R.permute_dims(z, (1, 0))
        s = R.sqrt(z)
    return (s, t)
"""


NOBODY = """
@script.function(attrs={"private": True})
def part(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.exp(x)
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.call_engine("nobody", part, (x,), out=f32[Tensor, 4])
    return y
"""


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register_engines()
    before = dict(ENGINES)
    register_engine(InterpreterEngine())
    yield
    ENGINES.clear()
    ENGINES.update(before)


def installed(name: str) -> str:
    if ENGINES[name].missing() is not None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.mark.rotated(3)
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "interpreter"])
@pytest.mark.parametrize("where", ["*", "matmul", "main/z", "exp"])
def test_engines_give_the_numbers_of_our_kernels(engine: str, where: str) -> None:
    if engine != "interpreter":
        installed(engine)
    exe = unity.compile(parse(PROGRAM), resolve={where: f"engine:{engine}"})
    assert exe.native() == {"main": "native"}
    assert f"engine:{engine}" in exe.explain().counts()
    rng = np.random.default_rng(0)
    w = rng.standard_normal((96, 80)).astype(np.float32)
    for n in (1, 7, 40):
        x = rng.standard_normal((n, 96)).astype(np.float32)
        z = np.maximum(np.exp(x) @ w, 0)
        for threads in (1, 2):
            exe.threads = threads
            s, t = exe(x, w)
            np.testing.assert_allclose(s, np.sqrt(z), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(t, z.T, rtol=1e-4, atol=1e-4)


@pytest.mark.rotated(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_cut_at_random_keep_their_meaning(seed: int) -> None:
    module = random_module(Random(seed), 14, control_flow=seed % 3 == 0)
    rng = Random(seed)
    exe = unity.compile(
        module, resolve=lambda site, candidates: rng.choice([c.implementation for c in candidates])
        if not site.glue else "tir"
    )  # fmt: skip
    args = arguments_for(module, np.random.default_rng(seed))
    expected, got = interpret(module, "main", args), exe(*args)
    flat = got if isinstance(got, tuple) else (got,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for mine, theirs in zip(flat, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(mine, np.float64), np.asarray(theirs, np.float64), rtol=2e-4, atol=2e-4
        )


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("compile", "the engine broken can't compile .*: no licence"),
        ("run", r"the engine broken failed in .* shapes \(2, 96\).*: out of luck"),
    ],
)
def test_a_failing_engine_is_told_of(at: Stage, message: str) -> None:
    register_engine(StubEngine("broken", at))
    x, w = np.ones((2, 96), np.float32), np.ones((96, 80), np.float32)
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(PROGRAM), resolve={"matmul": "engine:broken"})(x, w)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_several_threads_may_call_at_once(engine: str) -> None:
    exe = unity.compile(parse(PROGRAM), resolve=f"engine:{installed(engine)}", threads=1)
    rng = np.random.default_rng(3)
    w = rng.standard_normal((96, 80)).astype(np.float32)
    inputs = [rng.standard_normal((2, 96)).astype(np.float32) for _ in range(2)]
    wanted = [np.sqrt(np.maximum(np.exp(x) @ w, 0)) for x in inputs]

    def wrong(which: int) -> int:
        results = (exe(inputs[which], w)[0] for _ in range(300))
        return sum(not np.allclose(r, wanted[which], rtol=1e-3, atol=1e-3) for r in results)

    with ThreadPoolExecutor(2) as workers:
        assert list(workers.map(wrong, (0, 1))) == [0, 0]


def test_nothing_runs_twice_when_an_engine_fails() -> None:
    runs: list[int] = []

    def fails_once(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise RuntimeError("not yet")
        for y in outputs:
            y.fill(1)

    register_engine(StubEngine("fails_once", run=fails_once))
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": "engine:fails_once"})
    x, w = np.ones((2, 96), np.float32), np.ones((96, 80), np.float32)
    with pytest.raises(UnityError, match="not yet"):
        exe(x, w)
    assert len(runs) == 1
    np.testing.assert_array_equal(exe(x, w)[0], np.ones((2, 80), np.float32))


def test_a_library_call_inside_what_an_engine_would_take() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 3, 8], w: f32[Tensor, 5, 8]) -> f32[Tensor, 3, 5]:
    with R.dataflow():
        e = R.exp(w)
        t = R.permute_dims(e, (1, 0))
        y = R.matmul(x, t)
        z = R.nn.relu(y)
    return z
"""
    exe = unity.compile(
        parse(text),
        resolve={"*": f"engine:{installed('onnxruntime')}", "matmul": "library:openblas"},
    )
    assert {"engine:onnxruntime", "library:openblas.gemm"} <= exe.explain().counts().keys()
    rng = np.random.default_rng(4)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((3, 8), (5, 8)))
    np.testing.assert_allclose(exe(x, w), np.maximum(x @ np.exp(w).T, 0), rtol=1e-4, atol=1e-4)


def test_a_missing_engine_is_a_reason_in_the_explanation() -> None:
    register_engine(StubEngine("broken", "missing"))
    exe = unity.compile(parse(PROGRAM), resolve="static")
    row = exe.explain()["y"]
    (why,) = [c.why_not for c in row.candidates if c.implementation == "engine:broken"]
    assert why == "it was never built"
    with pytest.raises(UnityError, match="it was never built"):
        unity.compile(parse(PROGRAM), resolve={"main/y": "engine:broken"})


def test_a_written_engine_call_of_an_unknown_engine_is_told_of() -> None:
    with pytest.raises(UnityError, match="no engine 'nobody' is registered"):
        unity.compile(parse(NOBODY))


def test_what_an_engine_compiled_is_saved_and_loaded() -> None:
    module = IRModule({"main": parse(PROGRAM).graph_functions()["main"]})
    x, w = np.ones((3, 96), np.float32), np.full((96, 80), 0.01, np.float32)
    z = np.maximum(np.exp(x) @ w, 0)
    for engine in (InterpreterEngine(), OnnxRuntimeEngine()):
        if engine.missing() is not None:
            continue
        again = engine.load(engine.compile(module, TARGET, 1).save(), TARGET, 1)
        s, t = np.empty((3, 80), np.float32), np.empty((80, 3), np.float32)
        again([x, w], [s, t])
        np.testing.assert_allclose(s, np.sqrt(z), rtol=1e-5)
        np.testing.assert_allclose(t, z.T, rtol=1e-5)


@dataclass(frozen=True, slots=True)
class Looking(InterpreterEngine):
    """Looks at what it is given as any pass would, and stumbles."""

    name: str = "looking"

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> InterpretedModule:
        names = [b.var.name for blk in subgraph.graph_functions()["main"].body.blocks
                 for b in blk.bindings]  # fmt: skip
        raise KeyError(names[0])


def test_an_engine_is_given_a_plain_graph_function_and_the_error_names_the_exception() -> None:
    register_engine(Looking())
    with pytest.raises(UnityError, match=r"can't compile looking_s: KeyError: 'a'"):
        unity.compile(parse(PROGRAM), resolve={"*": "engine:looking", "permute_dims": "tir"})


def test_the_explanation_says_places_and_shapes_as_messages_do() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 4, 2]) -> f32[Tensor, 8]:
    with R.dataflow():
        y = R.reshape(x, (8,))
    return y
""")
    row = unity.compile(module, resolve="static").explain()["y"]
    assert row.place.endswith(":5:13")
    assert row.shapes == "float32(4, 2), shape(8) -> float32(8,)"


def test_a_region_does_not_reach_across_what_stands_between_two_blocks() -> None:
    """`early` and `late` meet in `both`, but `late` comes of a scan, which comes of `early`."""
    module = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 8]:
    with R.dataflow():
        early = R.exp(R.sum(x, axis=0))


    def step(state: Tensor, row: Tensor):
        new = R.tanh(R.add(state, row))
        return new, new

    last, rows = R.scan(step, init=(early,), inputs=(x,))
    with R.dataflow():
        late = R.sqrt(R.abs(last))
        both = R.concat((early, late), axis=0)
    return both
""")
    exe = unity.compile(module, resolve={"*": "engine:onnxruntime"})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_allclose(exe(x), np.asarray(interpret(module, "main", [x])), rtol=1e-5)
