"""Call sites in branches and loops are listed and resolved; what numpy runs is told as that."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for
from tests.generators.graph import module as random_module
from unity.codegen.engine import InterpreterEngine
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.runtime.bytecode import CallHost
from unity.script import parse
from unity.transform.graph.resolve import ENGINES, ResolveOption

NESTED = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 4], c: boolean[Tensor, ()]):
    start = R.sum(x, axis=0)
    def step(state: Tensor, row: Tensor):
        mixed = R.matmul(R.add(state, row), w)
        new = R.tanh(mixed)
        return new, new
    last, rows = R.scan(step, init=(start,), inputs=(x,))
    if c:
        grown = R.exp(rows)
        y = R.add(grown, last)
    else:
        y = R.matmul(rows, w)
    i = R.const(0)
    while R.less(i, 2):
        i = R.add(i, 1)
        y = R.sqrt(R.abs(y))
    return y
"""


@pytest.mark.parametrize(
    ("resolve", "given"), [(None, 0), ("engine:inner", 11), ({"tanh": "engine:inner"}, 1)]
)
def test_sites_in_branches_and_loops(
    resolve: ResolveOption | None, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "inner", InterpreterEngine("inner"))
    module = parse(NESTED)
    exe = unity.compile(module, resolve=resolve)
    table = exe.explain()
    ops = sorted(row.op for row in table)
    assert ops == sorted(
        ["sum", "add", "matmul", "tanh", "exp", "add", "matmul", "less", "add", "abs", "sqrt"]
    )
    assert table.counts().get("engine:inner", 0) == given
    assert table["new"].group == ("inner_new" if resolve else "")
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 4), np.float32), rng.standard_normal((4, 4), np.float32)
    for branch in (True, False):
        args = [x, w, np.array(branch)]
        expected = np.asarray(interpret(module, "main", args))
        np.testing.assert_allclose(exe(*args), expected, rtol=1e-4, atol=1e-5)


def test_one_site_of_a_loop_by_name() -> None:
    table = unity.compile(parse(NESTED), resolve={"main/mixed": "tir"}).explain()
    assert table["mixed"].reason == "override 'main/mixed'"
    with pytest.raises(UnityError, match=r"names 'main/mixd'.*\n.*did you mean main/mixed"):
        unity.compile(parse(NESTED), resolve={"main/mixd": "tir"})


HOSTED = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], u: f32[Tensor]):
    with R.dataflow():
        a = R.exp(x)
        found = R.nonzero(a)
        unknown = R.exp(u)
        flat = R.flatten(u)
        shape = R.shape_of(x)
        seen = R.reshape(a, R.shape(n * 4))
    return found, unknown, flat, shape, seen
"""


def test_what_numpy_runs_is_told() -> None:
    exe = unity.compile(parse(HOSTED))
    table = exe.explain()
    hosted = {r.site: r.reason for r in table if r.choice == "host"}
    assert hosted == {
        "main/unknown": "numpy runs it: dtype or dims are not known: float32(unknown)",
        "main/flat": "numpy runs it: dtype or dims are not known: float32(rank 1)",
    }
    code = exe.program.function("main")
    labels = zip(code.code, code.labels, strict=True)
    assert {f"main/{label}" for i, label in labels if isinstance(i, CallHost)} == set(hosted)
    assert "2 host" in table.summary()


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("seed", range(3))
def test_host_rows_are_what_the_program_calls(seed: int) -> None:
    module = random_module(Random(seed), 10)
    exe = unity.compile(module)
    hosts = {
        label
        for code in exe.program.functions
        for i, label in zip(code.code, code.labels, strict=True)
        if isinstance(i, CallHost)
    }
    told = {r.site.rpartition("/")[2] for r in exe.explain() if r.choice == "host"}
    assert hosts <= told
    args = arguments_for(module, np.random.default_rng(seed))
    exe(*args)
