"""Convolutions of lines in company are of images: what follows them, where they end, what stays."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.codegen.llvm.levels import emitted_here, small_caches
from unity.codegen.llvm import host_target
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import ConvertLines, EliminateDeadCode

RNG = np.random.default_rng(3)
HERE = host_target(threads=2)
TARGETS = {"here": HERE, "small caches": small_caches(HERE), "wide": emitted_here(512, 32)}
CONSTANTS: dict[str, Array] = {
    "w": RNG.standard_normal((32, 16, 3)).astype(np.float32) / 7,
    "v": RNG.standard_normal((32, 32, 3)).astype(np.float32) / 10,
    "u": RNG.standard_normal((48, 32, 2)).astype(np.float32) / 8,
    "one": RNG.standard_normal((32, 32, 1)).astype(np.float32) / 6,
    "alone": RNG.standard_normal((32, 1, 3)).astype(np.float32),
    "bias": RNG.standard_normal((1, 32, 1)).astype(np.float32),
}
HEAD = 't = dim("t", min=1)\n\n@script.function\ndef main(x: f32[Tensor, {n}, 16, {t}])'
CHAINS = {
    "causal": """
    a = R.nn.relu(R.add(R.nn.conv1d(x, R.const("w"), padding=(2, 0)), R.const("bias")))
    b = R.nn.relu(R.nn.conv1d(a, R.const("v"), padding=(8, 0), dilation=4))
    y = R.add(a, R.nn.conv1d(b, R.const("v"), padding=(16, 0), dilation=8))
""",
    "around": """
    a = R.nn.gelu(R.nn.conv1d(x, R.const("w"), padding=1))
    y = R.nn.conv1d(a, R.const("u"), padding=(3, 1), dilation=3)
""",
    "pooled": """
    a = R.nn.max_pool1d(R.nn.conv1d(x, R.const("w"), padding=1), pool_size=3, padding=1)
    b = R.nn.avg_pool1d(R.nn.conv1d(a, R.const("v"), padding=1), pool_size=2, strides=2, padding=1)
    y = R.mean(R.nn.conv1d(b, R.const("v"), padding=1), axis=(2,), keepdims=True)
""",
    "joined": """
    a = R.nn.conv1d(x, R.const("w"), padding=1)
    b = R.nn.conv1d(a, R.const("v"), padding=(0, 2))
    y = R.strided_slice(R.concat((a, b), axis=1), axes=(2,), begin=(0,), end=(1,))
""",
    "repeated": """
    a = R.repeat(R.nn.conv1d(x, R.const("w"), padding=1), repeats=2, axis=-1)
    y = R.nn.conv1d(R.nn.pad(a, pad_width=(0, 0, 0, 0, 2, 1)), R.const("u"))
""",
    "beside others": """
    a = R.nn.conv1d(x, R.const("w"), padding=1)
    b = R.nn.conv1d(R.nn.softmax(a, axis=1), R.const("alone"), groups=32, padding=1)
    y = R.add(R.nn.conv1d(R.add(a, b), R.const("v"), padding=1), R.mean(a))
""",
}


def chain(name: str, n: int | str, t: int | str) -> IRModule:
    """A function of lines, of some number and length."""
    head = HEAD.format(n=n, t=t) if t == "t" else HEAD.format(n=n, t=t).partition("\n\n")[2]
    return parse(f"{head} -> f32[Tensor, ...]:{CHAINS[name]}    return y\n", CONSTANTS)


@pytest.mark.rotated(1)
@pytest.mark.long("chains are compiled, and interpreted at many lengths")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CHAINS)
def test_chains_compute_the_same(name: str, target: str) -> None:
    """At lengths around those of tiles, and of the chunks that tasks have."""
    module = chain(name, 1, "t")
    exe = unity.compile(module, TARGETS[target], cache=None)
    for size in (1, 2, 5, 23, 31, 32, 33, 47, 48, 49, 64, 97, 200, 511, 1030):
        x = RNG.standard_normal((1, 16, size)).astype(np.float32)
        assert_same(exe(x), interpret(module, "main", [x]))


@pytest.mark.rotated(1)
@pytest.mark.long("chains of known length are compiled anew for each")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_known_length_compute_the_same(name: str, target: str) -> None:
    for size in (21, 450):
        module = chain(name, 3, size)
        x = RNG.standard_normal((3, 16, size)).astype(np.float32)
        got = unity.compile(module, TARGETS[target], cache=None)(x)
        assert_same(got, interpret(module, "main", [x]))


def assert_same(got: object, want: object) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5, atol=2e-5)


def converted(module: IRModule) -> str:
    """What the pass makes of a module."""
    context = Context(HERE)
    return print_module(EliminateDeadCode()(ConvertLines()(module, context), context))


@pytest.mark.parametrize("name", ["causal", "around", "pooled", "joined", "repeated"])
def test_nothing_between_convolutions_stays_a_line(name: str) -> None:
    text = converted(chain(name, 1, "t"))
    assert "conv1d(" not in text
    assert "pool1d(" not in text
    assert text.count("R.reshape") == 2, "one at either end"


STAY = {
    "no company": 'y = R.nn.conv1d(x, R.const("w"), padding=1)',
    "single pixels, alone": 'y = R.nn.relu(R.nn.conv1d(R.concat((x, x), axis=1), R.const("one")))',
    "strides": """a = R.nn.conv1d(x, R.const("w"), strides=2, padding=1)
    y = R.nn.conv1d(a, R.const("v"), strides=2, padding=1)""",
    "apart": """a = R.nn.softmax(R.nn.conv1d(x, R.const("w")), axis=2)
    y = R.nn.conv1d(a, R.const("v"))""",
}


@pytest.mark.parametrize("case", STAY)
def test_others_stay_lines(case: str) -> None:
    head = HEAD.format(n=1, t="t")
    text = f"{head} -> f32[Tensor, ...]:\n    {STAY[case]}\n    return y\n"
    module = parse(text, CONSTANTS)
    assert "conv2d" not in converted(module)
    assert ConvertLines()(module, Context(HERE))["main"] is module["main"]


def test_narrow_registers_leave_lines() -> None:
    scalar = Target("cpu", "x86_64-unknown-linux-gnu", "x86-64", (), vector_bits=64)
    module = chain("around", 1, "t")
    assert ConvertLines()(module, Context(scalar)) is module
