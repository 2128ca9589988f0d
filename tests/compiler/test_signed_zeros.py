"""Zeros keep their sign: what passes rewrite gives the bits that numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import parse

X = np.array([-0.0, 0.0, 1.5, -np.inf], np.float32)
GRAPH = {
    "less_negative": ("R.subtract(x, -0.0)", X - np.float32(-0.0)),
    "less": ("R.subtract(x, 0.0)", X),
    "more": ("R.add(x, 0.0)", X + np.float32(0.0)),
    "more_negative": ("R.add(x, -0.0)", X),
    "from_zero": ("R.subtract(0.0, x)", np.float32(0.0) - X),
    "twice": ("R.negative(R.negative(x))", X),
    "divided": ("R.divide(x, -2.0)", X / np.float32(-2)),
}
KERNELS = {
    "minus": ("-x[vi]", -X),
    "minus_minus": ("-(-x[vi])", X),
    "kernel_less": ("x[vi] - (-0.0)", X - np.float32(-0.0)),
    "kernel_more": ("x[vi] + 0.0", X + np.float32(0.0)),
}
FUNCTION = """
@script.function
def {name}(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return {value}
"""
KERNEL = """
@script.prim_func
def of_{name}(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            y[vi] = {value}
"""
CALL = "R.call_tir(of_{name}, (x,), out=f32[Tensor, 4])"
TEXT = "".join(FUNCTION.format(name=n, value=v) for n, (v, _) in GRAPH.items()) + "".join(
    KERNEL.format(name=n, value=v) + FUNCTION.format(name=n, value=CALL.format(name=n))
    for n, (v, _) in KERNELS.items()
)


@pytest.fixture(scope="module")
def executable() -> unity.Executable:
    return unity.compile(parse(TEXT), threads=1)


@pytest.mark.parametrize("name", [*GRAPH, *KERNELS])
def test_bits(name: str, executable: unity.Executable) -> None:
    _, expected = {**GRAPH, **KERNELS}[name]
    for got in (executable[name](X), interpret(parse(TEXT), name, [X])):
        assert isinstance(got, np.ndarray)
        np.testing.assert_array_equal(got.view(np.int32), expected.view(np.int32))
