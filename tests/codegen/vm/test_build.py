"""Bytecode from every form of module: planned or not, closures, scans, calls; gaps all at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.codegen.vm.build import build_program
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.runtime.bytecode import AllocTensor, CallHost, View
from unity.script import R, Tensor, dim, f32, function, module, parse
from unity.transform import pipeline
from unity.transform.graph import PlanMemory

HEAD = 'n = dim("n")\n\n@script.function\n'
CHAIN = (
    HEAD
    + """
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    y = R.nn.softmax(x, axis=-1)
    z = R.nn.softmax(R.matmul(y, R.matmul(R.permute_dims(x, axes=(1, 0)), y)), axis=-1)
    return R.nn.softmax(z, axis=0)
"""
)
CALLS = """
n = dim("n")

@script.function
def halved(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.multiply(x, R.const(0.5, "float32"))

@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, n]) -> f32[Tensor, n]:
    @script.function
    def shifted(z: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.add(halved(z), y)
    return R.add(shifted(x), shifted(y))
"""
X = np.linspace(-1, 1, 12, dtype=np.float32)


def test_a_module_that_is_not_planned_runs_as_well() -> None:
    x = X.reshape(3, 4)
    parsed = parse(CHAIN)
    planned = unity.compile(parsed)
    loose = unity.compile(parsed, pipeline=pipeline("cpu").without(PlanMemory))
    np.testing.assert_array_equal(planned(x), loose(x))
    kinds = [type(i) for i in loose.program.function("main").code]
    assert View not in kinds
    assert kinds.count(AllocTensor) > 1


def test_functions_call_functions_and_closures() -> None:
    parsed = parse(CALLS)
    exe = unity.compile(parsed)
    np.testing.assert_allclose(exe(X, X), np.asarray(interpret(parsed, "main", [X, X])), 1e-6)
    np.testing.assert_allclose(exe["halved"](X), X / 2)
    with pytest.raises(unity.UnityError, match=r"input 'y' axis 0: symbol n is 3 here but 12"):
        exe(X, X[:3])


n = dim("n")


def negate_into(source: npt.NDArray[np.float32], destination: npt.NDArray[np.float32]) -> None:
    np.negative(source, out=destination)


def test_python_functions_write_into_their_destination() -> None:
    @function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = R.call_python(negate_into, (x,), out=f32[Tensor, n])
        return R.exp(y)

    exe = unity.compile(module(main))
    np.testing.assert_allclose(exe(X), np.exp(-X), rtol=1e-5)
    assert exe.native()["main"] == "bytecode: it calls Python (python:negate_into)"
    hosts = [i for i in exe.program.function("main").code if isinstance(i, CallHost)]
    assert [h.destination for h in hosts] == [True]


def test_all_gaps_are_told_at_once() -> None:
    text = HEAD + (
        "def main(x: f32[Tensor, n // 2]) -> f32[Tensor, n // 2]:\n"
        '    y = R.call_library("one", (x,), out=f32[Tensor, n // 2])\n'
        '    z = R.call_library("two", (y,), out=f32[Tensor, n // 2])\n'
        "    return z\n"
    )
    parsed: IRModule = parse(text)
    with pytest.raises(unity.UnsupportedError) as error:
        build_program(parsed)
    assert error.value.gaps == (
        "no size in the inputs of main tells n, by being n alone, or linear in it",
        "main: library call one",
        "main: library call two",
    )
