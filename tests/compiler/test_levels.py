"""Every default rule on every level of x86, run here; and compiled for aarch64.

A sample each time: half of the pairs, a third for aarch64; all of it as slow tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.codegen.llvm.levels import ARM, LEVELS, emitted_here, runs_here
from tests.transform.cases import floats
from unity.codegen.llvm import compile_kernels
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, pipeline

WEIGHTS = {
    "matrix": (40, 72),
    "column": (40, 1),
    "w16": (16, 16, 3, 3),
    "w1": (32, 16, 1, 1),
    "deep": (16, 1, 3, 3),
    "first": (16, 3, 5, 5),
    "grouped": (32, 8, 3, 3),
    "square": (64, 64, 3, 3),
    "up": (16, 8, 2, 2),
}


@dataclass(frozen=True)
class Case:
    """A result of one input, and the sizes that the input is run at."""

    shape: str
    sizes: tuple[int, ...]
    value: str


CASES = {
    "product of two": Case("13, 24", (13, 24), "R.matmul(x, R.permute_dims(R.exp(x), (1, 0)))"),
    "weights in panels": Case("13, 40", (13, 40), "R.nn.gelu(R.matmul(x, R.const('matrix')))"),
    "rows of any number": Case("n, 40", (9, 40), "R.matmul(x, R.const('matrix'))"),
    "one row": Case("1, 40", (1, 40), "R.matmul(x, R.const('matrix'))"),
    "one column": Case("33, 40", (33, 40), "R.matmul(x, R.const('column'))"),
    "first layer": Case(
        "1, 3, 13, 15", (1, 3, 13, 15), "R.nn.conv2d(x, R.const('first'), padding=2, strides=2)"
    ),
    "convolution": Case(
        "1, 16, 9, 11",
        (1, 16, 9, 11),
        "R.nn.relu(R.nn.conv2d(x, R.const('w16'), padding=1, strides=2))",
    ),
    "Winograd": Case(
        "1, 64, 14, 14", (1, 64, 14, 14), "R.nn.conv2d(x, R.const('square'), padding=1)"
    ),
    "Winograd of any size": Case(
        "1, 64, h, w", (1, 64, 13, 6), "R.nn.relu(R.nn.conv2d(x, R.const('square'), padding=1))"
    ),
    "gathered": Case(
        "1, 16, s, s", (1, 16, 6, 6), "R.nn.conv2d(x, R.const('w16'), padding=1, strides=2)"
    ),
    "depthwise": Case(
        "1, 16, 9, 11",
        (1, 16, 9, 11),
        "R.nn.conv2d(R.nn.conv2d(x, R.const('w16'), padding=1), R.const('deep'), groups=16)",
    ),
    "single pixels": Case(
        "1, 16, 7, 9", (1, 16, 7, 9), "R.add(R.nn.conv2d(x, R.const('w1')), 1.0)"
    ),
    "groups": Case("1, 32, 7, 9", (1, 32, 7, 9), "R.nn.conv2d(x, R.const('grouped'), groups=4)"),
    "transposed convolution": Case(
        "1, 16, 5, 6", (1, 16, 5, 6), "R.nn.conv2d_transpose(x, R.const('up'), strides=2)"
    ),
    "pool": Case(
        "1, 16, 9, 9",
        (1, 16, 9, 9),
        "R.nn.max_pool2d(R.nn.conv2d(x, R.const('w16')), pool_size=3, strides=2, padding=1)",
    ),
    "softmax": Case("7, 83", (7, 83), "R.nn.softmax(x, axis=-1)"),
    "softmax of columns": Case("19, 21", (19, 21), "R.nn.softmax(x, axis=0)"),
    "norm of rows": Case("n, 70", (5, 70), "R.subtract(x, R.mean(x, axis=-1, keepdims=True))"),
    "sum of rows": Case("33, 70", (33, 70), "R.sum(x, axis=-1)"),
    "greatest of columns": Case("33, 70", (33, 70), "R.max(x, axis=0)"),
    "sum of all": Case("n, 70", (33, 70), "R.sum(x)"),
    "running sums": Case("9, 37", (9, 37), "R.cumsum(x, axis=1)"),
    "transpose": Case("45, 37", (45, 37), "R.tanh(R.permute_dims(x, (1, 0)))"),
    "elementwise": Case("3, n", (3, 45), "R.divide(R.exp(x), R.add(R.abs(x), 2.0))"),
    "pad and concat": Case(
        "5, n", (5, 13), "R.concat((R.nn.pad(x, (1, 0, 0, 3)), R.nn.pad(x, (0, 1, 3, 0))), axis=0)"
    ),
    "attention": Case(
        "1, 2, 19, 32", (1, 2, 19, 32), "R.nn.attention(x, R.exp(x), R.tanh(x), scale=0.25)"
    ),
}


def module(name: str) -> IRModule:
    case = CASES[name]
    constants = dict(zip(WEIGHTS, floats(0, *WEIGHTS.values()), strict=True))
    return parse(
        f"""
n = dim("n")
h = dim("h")
w = dim("w")
s = dim("s", typical=6)
@script.function
def main(x: f32[Tensor, {case.shape}]) -> f32[Tensor, ...]:
    y = {case.value}
    return y
""",
        constants,
    )


def array(name: str) -> Array:
    return np.asarray(floats(1, CASES[name].sizes)[0])


@cache
def expected(name: str) -> npt.NDArray[np.float64]:
    """What the interpreter computes."""
    found = interpret(module(name), "main", [array(name)])
    assert isinstance(found, np.ndarray)
    return found.astype(np.float64)


def off(got: Array, name: str) -> float:
    """The largest error, relative to the largest number."""
    wanted = expected(name)
    assert got.shape == wanted.shape
    return float(abs(got.astype(np.float64) - wanted).max() / abs(wanted).max())


@pytest.mark.rotated(12)
@pytest.mark.parametrize(
    ("name", "level"),
    [(name, level) for name in CASES for level in LEVELS if "dots" not in level],
)
def test_every_rule_computes_the_same(name: str, level: str) -> None:
    target = LEVELS[level]
    if not runs_here(target) and level == "avx512":
        target = emitted_here(target.vector_bits, target.vector_registers)
    elif not runs_here(target):
        pytest.skip("this machine has no such instructions")
    assert off(unity.compile(module(name), target)(array(name)), name) < 2e-5


@pytest.mark.rotated(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["weights in panels", "convolution", "first layer", "attention"])
def test_narrow_floats_compute_where_there_are_instructions(name: str, level: str) -> None:
    target = LEVELS[level]
    if not runs_here(target):
        pytest.skip("this machine has no such instructions")
    if target.has("avx512bf16"):
        got = unity.compile(module(name), target, precision="bf16")(array(name))
        assert 0 < off(got, name) < 3e-2
    else:
        with pytest.raises(UnityError, match="bf16") as error:
            unity.compile(module(name), target, precision="bf16")
        assert error.value.hint
    if target.has("f16c"):
        got = unity.compile(module(name), target, precision="f16")(array(name))
        assert off(got, name) < 4e-3
    else:
        with pytest.raises(UnityError, match="f16") as error:
            unity.compile(module(name), target, precision="f16")
        assert error.value.hint


@pytest.mark.rotated(9)
@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_every_rule_compiles_for_aarch64(name: str) -> None:
    assert objects(module(name), ARM["neon"])


@pytest.mark.rotated(3)
@pytest.mark.parametrize("machine", ARM)
def test_other_machines_of_aarch64_compile(machine: str) -> None:
    assert objects(module("Winograd of any size"), ARM[machine])


def objects(program: IRModule, target: Target) -> int:
    """How many kernels became object code."""
    functions = pipeline("cpu").run(program, Context(target)).prim_funcs()
    return len(compile_kernels(functions, target).objects)
