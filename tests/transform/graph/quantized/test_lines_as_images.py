"""Convolutions of quantized lines as those of images: in integers, to the quantum, in a chain."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import SimplifyOps

from .test_integer_products import BYTES, PAIRS, assert_within_a_quantum, integers

RNG = np.random.default_rng(8)
CHAIN = """
{symbol}@script.function
def main(x: f32[Tensor, 2, 8, {length}]) -> f32[Tensor, 2, 32, {length}]:
    q = R.quantize(x, 0.05, R.const(117, "uint8"), out_dtype="uint8")
    a = R.dequantize(q, 0.05, R.const(117, "uint8"))
    w = R.dequantize(R.const("w"), R.const("outputs"), R.const(0, "int8"), axis=0)
    y = R.nn.relu(R.add(R.nn.conv1d(a, w, padding={padding}, dilation={step}), R.const("bias")))
    cut = R.strided_slice(y, axes=(-1,), begin=(0,), end=({length},))
    r = R.quantize(cut, 0.04, R.const(0, "uint8"), out_dtype="uint8")
    b = R.dequantize(r, 0.04, R.const(0, "uint8"))
    v = R.dequantize(R.const("v"), 0.003, R.const(0, "int8"), axis=0)
    p = R.dequantize(R.nn.pad(r, pad_width=(0, 0, 0, 0, 2, 0)), 0.04, R.const(0, "uint8"))
    z = R.add(R.nn.conv1d(p, v, groups={groups}), b)
    s = R.quantize(z, 0.06, R.const(120, "uint8"), out_dtype="uint8")
    return R.dequantize(s, 0.06, R.const(120, "uint8"))
"""


def chain(length: str, padding: str = "(4, 4)", step: int = 2, groups: int = 1) -> IRModule:
    """Two convolutions, one cut and one padded at an end, with a residual."""
    symbol = "" if length.isdigit() else f'{length} = dim("{length}", min=1)\n'
    text = CHAIN.format(symbol=symbol, length=length, padding=padding, step=step, groups=groups)
    constants: dict[str, Array] = {
        "w": RNG.integers(-128, 128, (32, 8, 3), dtype=np.int8),
        "v": RNG.integers(-128, 128, (32, 32 // groups, 3), dtype=np.int8),
        "outputs": np.linspace(0.001, 0.002, 32, dtype=np.float32),
        "bias": RNG.standard_normal((1, 32, 1)).astype(np.float32),
    }
    return parse(text, constants)


@pytest.mark.parametrize("context", [BYTES, PAIRS], ids=["bytes", "pairs of int16"])
@pytest.mark.parametrize("length", ["21", "t"])
def test_chains_are_of_integers(length: str, context: Context) -> None:
    module = chain(length)
    after = integers(module, context)
    verify(after)
    text = print_module(SimplifyOps()(after, context))
    assert text.count('out_dtype="int32"') == 2
    assert "nn.conv1d" not in text
    assert text.count("R.reshape") == 2, "one at either end"
    compiled = unity.compile(module, cache=None)
    for size in (21,) if length == "21" else (21, 1, 64):
        x = RNG.standard_normal((2, 8, size)).astype(np.float32) * 3
        want = np.asarray(interpret(module, "main", [x]))
        for got in (interpret(after, "main", [x]), compiled(x)):
            assert_within_a_quantum(got, want)


def test_groups_stay_lines() -> None:
    text = print_module(integers(chain("21", groups=4)))
    assert text.count('out_dtype="int32"') == 1
    assert text.count("nn.conv1d") == 1


def test_lines_without_integers_stay() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 1, 16, 40]) -> f32[Tensor, 1, 16, 38]:
    return R.nn.relu(R.nn.conv1d(x, R.const("w")))
""", {"w": RNG.standard_normal((16, 16, 3)).astype(np.float32)})  # fmt: skip
    assert "nn.conv1d" in print_module(integers(module))
