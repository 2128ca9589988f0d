"""Convolutions of one input become one: the same numbers, and nothing is copied afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.transform.graph.memory.moving import kernels
from unity.interpreter import interpret
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, MergeConvolutions
from unity.transform.graph.merge.merge_estimate import Window, merging_gains

Floats = npt.NDArray[np.float32]
SIZE = 6


def context(bits: int = 256, threads: int = 1) -> Context:
    ctx = Context()
    return replace(ctx, target=replace(ctx.target, vector_bits=bits, threads=threads))


def merged(module: IRModule, ctx: Context | None = None) -> IRModule:
    ctx = ctx or context()
    got = EliminateDeadCode()(MergeConvolutions()(module, ctx), ctx)
    verify(got)
    return got


def convolutions(module: IRModule) -> int:
    values = [b.value for b in walk_bindings(module.graph_functions()["main"])]
    return sum(isinstance(v, Call) and v.callee == Op("nn.conv2d") for v in values)


class Branches:
    """A random program: branches of one image that end differently, put together."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.constants: dict[str, Floats] = {}
        self.inputs = int(self.rng.choice([8, 12, 16]))
        lines, ends, channels = ["y = R.nn.max_pool2d(x)"], [], 0
        count = int(self.rng.integers(2, 5))
        alike = self.rng.random() < 0.7
        kinds = [self.rng.choice(6)] * count if alike else self.rng.choice(6, count)
        for i, kind in enumerate(kinds):
            outputs = int(self.rng.choice([8, 16, 24, 6, 7, 13]))
            lines += self.branch(i, outputs, int(kind))
            deeper = self.rng.random() < 0.9
            if deeper:
                weight = self.constant(f"d{i}", (8, outputs, 3, 3))
                lines.append(f"e{i} = R.nn.conv2d(r{i}, {weight}, padding=1)")
            ends.append(f"e{i}" if deeper else f"r{i}")
            channels += 8 if deeper else outputs
        body = "\n        ".join(lines)
        self.module = parse(
            f"""
@script.function
def main(x: f32[Tensor, 1, {self.inputs}, {SIZE}, {SIZE}]) -> f32[Tensor, ...]:
    with R.dataflow():
        {body}
        z = R.concat(({", ".join(ends)}), axis=1)
        out = R.nn.conv2d(z, {self.constant("last", (8, channels, 1, 1))})
    return out
""",
            self.constants,
        )
        self.x = self.rng.standard_normal((1, self.inputs, SIZE, SIZE), np.float32)

    def constant(self, name: str, shape: tuple[int, ...]) -> str:
        self.constants[name] = self.rng.standard_normal(shape, np.float32)
        return f'R.const("{name}")'

    def branch(self, i: int, outputs: int, kind: int) -> list[str]:
        weight = self.constant(f"w{i}", (outputs, self.inputs, 1, 1))
        bias = self.constant(f"b{i}", (1, outputs, 1, 1))
        lines = [f"c{i} = R.nn.conv2d(y, {weight})"]
        sums = f"R.add(c{i}, {bias})" if self.rng.random() < 0.9 else f"R.multiply(c{i}, 0.5)"
        lines.append(f"a{i} = {sums}")
        last = (
            f"R.nn.relu(a{i})",
            f"R.clip(a{i}, min=-0.5, max=1.0)",
            f"R.multiply(a{i}, R.sigmoid(a{i}))",
            f"R.nn.leakyrelu(a{i})",
            f"R.multiply(R.clip(R.add(a{i}, 3.0), min=0.0, max=6.0), a{i})",
            f"R.add(a{i}, c{i})",
        )
        return [*lines, f"r{i} = {last[kind]}"]


def test_random_branches_give_the_same_numbers() -> None:
    fewer = 0
    for seed in range(24):
        program = Branches(seed)
        after = merged(program.module)
        fewer += convolutions(after) < convolutions(program.module)
        want, got = (np.asarray(interpret(m, "main", [program.x])) for m in (program.module, after))
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max(), seed
    assert fewer >= 12


@pytest.mark.rotated(3)
@pytest.mark.parametrize("seed", range(4))
def test_random_branches_compiled(seed: int) -> None:
    program = Branches(seed)
    want = np.asarray(interpret(program.module, "main", [program.x]))
    got = unity.compile(program.module)(program.x)
    assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()


TWO = """
n = dim("n")
@script.function
def main(x: f32[Tensor, {shape}]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.max_pool2d(x)
        a = R.nn.max_pool2d(R.nn.conv2d(y, R.const("a"){first}))
        b = R.nn.max_pool2d(R.nn.conv2d(y, R.const("b"){second}))
        z = R.nn.conv2d(R.concat((a, b), axis=1), R.const("c"))
    return z
"""


@pytest.mark.parametrize(
    ("shape", "first", "second", "left"),
    [
        ("1, 16, 8, 8", "", "", 2),
        ("1, 16, 8, 8", ", strides=2, padding=1", ", strides=2, padding=1", 2),
        ("1, 16, 8, 8", ", padding=1", ", strides=2", 3),
        ("1, 16, 8, 8", "", ", algorithm='gemm'", 3),
        ("2, 16, 8, 8", "", "", 3),
        ("n, 16, 8, 8", "", "", 3),
        ("1, 16, n, 8", "", "", 3),
    ],
)
def test_windows_and_sizes(shape: str, first: str, second: str, left: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"a": (8, 16, 3, 3), "b": (16, 16, 3, 3), "c": (8, 24, 1, 1)}
    constants = {k: rng.standard_normal(v, np.float32) for k, v in shapes.items()}
    text = TWO.format(shape=shape, first=first, second=second)
    try:
        module = parse(text, constants)
    except unity.UnityError:
        pytest.skip("these results do not fit")
    assert convolutions(merged(module)) == left


def test_infinite_bounds_leave_what_is_not_bounded() -> None:
    """The value that has no relu, not-a-numbers and infinities included."""
    rng = np.random.default_rng(0)
    constants = {"a": np.zeros((8, 8, 1, 1), np.float32), "b": np.zeros((8, 8, 1, 1), np.float32)}
    for i in range(8):
        constants["a"][i, i] = constants["b"][i, i] = 1.0
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, 8, {SIZE}, {SIZE}]) -> f32[Tensor, 1, 16, {SIZE}, {SIZE}]:
    with R.dataflow():
        y = R.nn.max_pool2d(x)
        a = R.nn.max_pool2d(R.nn.relu(R.nn.conv2d(y, R.const("a"))))
        b = R.nn.max_pool2d(R.nn.conv2d(y, R.const("b")))
        z = R.concat((a, b), axis=1)
    return z
""",
        constants,
    )
    after = merged(module)
    assert convolutions(after) == 1
    x = rng.standard_normal((1, 8, SIZE, SIZE), np.float32) * 1e38
    got = np.asarray(interpret(after, "main", [x]))
    np.testing.assert_array_equal(got, np.asarray(interpret(module, "main", [x])))


INCEPTION = """
@script.function
def main(x: f32[Tensor, 1, 64, 28, 28]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.max_pool2d(R.nn.relu(R.nn.conv2d(x, R.const("stem"), padding=1)), 2, 2)
        s = R.nn.relu(R.nn.conv2d(R.nn.max_pool2d(y, 3, 1, padding=1), R.const("s")))
        p = R.nn.relu(R.nn.conv2d(y, R.const("p")))
        q = R.nn.relu(R.nn.conv2d(y, R.const("q")))
        q3 = R.nn.relu(R.nn.conv2d(q, R.const("q3"), padding=1))
        r = R.nn.relu(R.nn.conv2d(y, R.const("r")))
        r3 = R.nn.relu(R.nn.conv2d(r, R.const("r3"), padding=1))
        z = R.concat((p, q3, r3, s), axis=1)
        out = R.nn.conv2d(z, R.const("last"), padding=1)
    return out
"""
WEIGHTS = {
    "stem": (128, 64, 3, 3),
    "p": (64, 128, 1, 1),
    "q": (48, 128, 1, 1),
    "q3": (64, 48, 3, 3),
    "r": (24, 128, 1, 1),
    "r3": (32, 24, 3, 3),
    "s": (32, 128, 1, 1),
    "last": (64, 192, 3, 3),
}


def test_an_inception_module_copies_nothing() -> None:
    """What begins the concatenation is the end of the merged result: both overlap."""
    rng = np.random.default_rng(0)
    constants = {k: rng.standard_normal(v, np.float32) for k, v in WEIGHTS.items()}
    found = kernels(parse(INCEPTION, constants), context(512).target)
    assert sum("conv2d" in name for name in found) == 6
    assert not [name for name in found if "slice" in name or "concat" in name]


def test_the_estimate() -> None:
    """A pass over a large input is saved; tiles that fit worse may cost more than that."""
    target = replace(context(512).target, vector_registers=32, features=("avx512f", "fma"))
    assert merging_gains((2, 7, 10), Window(14, 14, 512, 400_000), target) > 0
    assert merging_gains((4, 3), Window(56, 56, 4608, 0), target) < 0
