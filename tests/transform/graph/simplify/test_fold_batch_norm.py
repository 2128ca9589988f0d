"""FoldBatchNorm: fewer ops, the same numbers within rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transform.cases import floats, keeps_meaning
from unity.ir.dtype import Array
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse
from unity.transform.graph import EliminateDeadCode, FoldBatchNorm

STEPS = [FoldBatchNorm(), EliminateDeadCode()]
NORM = (
    'R.nn.batch_norm({x}, R.const("gamma"), R.const("beta"), R.const("mean"), R.const("variance"))'
)


def constants(groups: int = 1) -> dict[str, Array]:
    weight, bias, gamma, beta, mean, spread = floats(
        0, (6, 4 // groups, 3, 3), (1, 6, 1, 1), (6,), (6,), (6,), (6,)
    )
    return {
        "weight": weight,
        "bias": bias,
        "gamma": gamma,
        "beta": beta,
        "mean": mean,
        "variance": np.abs(spread) + np.float32(0.1),
    }


def program(lines: str, groups: int = 1, channels: int = 4) -> IRModule:
    text = f"""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, {channels}, 5, 5]) -> f32[Tensor, n, 6, 5, 5]:
    with R.dataflow():
{lines}
    return y
"""
    return parse(text, constants(groups))


def ops(module: IRModule) -> list[str]:
    found = []
    for binding in walk_bindings(module.graph_functions()["main"]):
        assert isinstance(binding.value, Call)
        assert isinstance(binding.value.callee, Op)
        found.append(binding.value.callee.name)
    return found


@pytest.mark.parametrize("groups", [1, 2])
def test_into_a_convolution(groups: int) -> None:
    lines = f"""
        c = R.nn.conv2d(x, R.const("weight"), padding=1, groups={groups})
        y = {NORM.format(x="c")}
"""
    got = keeps_meaning(STEPS, program(lines, groups), floats(1, (2, 4, 5, 5)))
    assert ops(got) == ["nn.conv2d", "add"]


def test_into_a_convolution_with_bias() -> None:
    lines = f"""
        c = R.nn.conv2d(x, R.const("weight"), padding=1)
        b = R.add(c, R.const("bias"))
        y = {NORM.format(x="b")}
"""
    got = keeps_meaning(STEPS, program(lines), floats(1, (2, 4, 5, 5)))
    assert ops(got) == ["nn.conv2d", "add"]


def test_a_convolution_used_twice_is_left_alone() -> None:
    lines = f"""
        c = R.nn.conv2d(x, R.const("weight"), padding=1)
        d = {NORM.format(x="c")}
        y = R.add(c, d)
"""
    got = keeps_meaning(STEPS, program(lines), floats(1, (2, 4, 5, 5)))
    assert ops(got) == ["nn.conv2d", "multiply", "add", "add"]


def test_after_something_else_it_is_scale_and_shift() -> None:
    lines = f"""
        r = R.nn.relu(x)
        y = {NORM.format(x="r")}
"""
    got = keeps_meaning(STEPS, program(lines, channels=6), floats(1, (2, 6, 5, 5)))
    assert ops(got) == ["nn.relu", "multiply", "add"]
