"""Convolutions and pooling of every shape, compiled, against numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.codegen.llvm import host_target
from unity.interpreter import interpret
from unity.machine.target import Target
from unity.script import parse

Doubles: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[np.float32]
HOST = replace(host_target(), threads=2)
SHORT = replace(
    HOST,
    cpu="haswell",
    features=("avx", "avx2", "fma", "sse4.1", "sse4.2", "ssse3"),
    vector_bits=256,
    vector_registers=16,
)
TARGETS = pytest.mark.parametrize("target", [HOST, SHORT], ids=["host", "avx2"])


@dataclass(frozen=True)
class Case:
    """A convolution between two that make it stand in the middle of a network."""

    channels: int
    outputs: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    padding: tuple[int, int, int, int]
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1


def drawn(seed: int) -> Case:
    """Any convolution."""
    rng = np.random.default_rng(seed)

    def pair(low: int, high: int) -> tuple[int, int]:
        a, b = rng.integers(low, high + 1, 2).tolist()
        return a, b

    kernel, dilation, strides = pair(1, 5), pair(1, 2), pair(1, 3)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    padding = [int(rng.integers(0, r)) for r in (*reach, *reach)]
    size = [int(r + rng.integers(0, 20)) for r in reach]
    kind = int(rng.integers(0, 4))
    channels = int(rng.choice([1, 3, 8, 16, 20, 32]))
    outputs, groups = int(rng.choice([4, 16, 24, 48, 64])), 1
    if kind == 0:
        outputs = groups = channels = int(rng.choice([8, 16, 32, 40]))
    elif kind == 1:
        groups = int(rng.choice([2, 4]))
        channels, outputs = 8 * groups, int(rng.choice([4, 8, 16])) * groups
    return Case(
        channels,
        outputs,
        (size[0], size[1]),
        kernel,
        (padding[0], padding[1], padding[2], padding[3]),
        strides,
        dilation,
        groups,
        int(rng.integers(1, 3)),
    )


def program(
    case: Case, weight: Floats, first: Floats, sizes: tuple[int | str, int | str] | None = None
) -> unity.IRModule:
    """A 1x1 convolution, which brings blocks about, then the one in question."""
    n, (h, w) = case.batch, sizes or case.size
    symbols = "".join(f'{s} = dim("{s}", min=1)\n' for s in (h, w) if isinstance(s, str))
    return parse(
        f"""
{symbols}
@script.function
def main(x: f32[Tensor, {n}, {case.channels}, {h}, {w}]):
    with R.dataflow():
        a = R.nn.relu(R.nn.conv2d(x, R.const("first")))
        y = R.nn.conv2d(a, R.const("weight"), strides={case.strides}, padding={case.padding},
                        dilation={case.dilation}, groups={case.groups})
        z = R.nn.relu(y)
    return z
""",
        {"weight": weight, "first": first},
    )


@pytest.mark.rotated(10)
@TARGETS
@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_convolution(seed: int, target: Target) -> None:
    check(drawn(seed), target)


@pytest.mark.rotated(8)
@TARGETS
@pytest.mark.parametrize(
    "case",
    [
        Case(32, 64, (14, 14), (3, 3), (1, 1, 1, 1)),
        Case(32, 32, (7, 7), (3, 3), (1, 1, 1, 1)),
        Case(16, 32, (29, 29), (3, 3), (1, 1, 1, 1), (2, 2)),
        Case(64, 64, (9, 30), (3, 3), (1, 1, 1, 1), groups=64),
        Case(64, 64, (15, 15), (5, 5), (2, 2, 2, 2), (2, 2), groups=64),
        Case(32, 32, (4, 40), (1, 9), (0, 4, 0, 4)),
        Case(3, 32, (33, 31), (7, 7), (3, 3, 3, 3), (2, 2)),
        Case(16, 16, (3, 3), (3, 3), (4, 4, 4, 4)),
        Case(16, 16, (6, 6), (2, 2), (0, 0, 3, 3), (3, 3)),
    ],
    ids=str,
)
def test_a_known_convolution(case: Case, target: Target) -> None:
    check(case, target)


SIZES = ((5, 6), (7, 7), (9, 13), (14, 14), (23, 8), (40, 41))
"""Of images: lines shorter than a tile, such as end in smaller ones, and some tiles."""


@pytest.mark.rotated(1)
@TARGETS
@pytest.mark.parametrize(
    "case",
    [
        Case(64, 64, (0, 0), (3, 3), (1, 1, 1, 1)),
        Case(256, 64, (0, 0), (3, 3), (1, 1, 1, 1)),
        Case(48, 96, (0, 0), (3, 3), (1, 1, 1, 1), (2, 2)),
        Case(96, 96, (0, 0), (3, 3), (1, 1, 1, 1), groups=96),
        Case(32, 32, (0, 0), (5, 5), (2, 2, 2, 2), (2, 2), groups=32),
        Case(40, 72, (0, 0), (3, 3), (2, 2, 2, 2), dilation=(2, 2)),
        Case(3, 32, (0, 0), (7, 7), (3, 3, 3, 3), (2, 2)),
        Case(64, 24, (0, 0), (1, 1), (0, 0, 0, 0)),
    ],
    ids=str,
)
def test_a_convolution_of_any_size(case: Case, target: Target) -> None:
    """Some seconds each: a kernel of unknown size has a version of its tiles for each rest."""
    weight, first = weights(case)
    module = program(case, weight, first, ("h", "w"))
    exe = unity.compile(module, replace(target, threads=1), cache=None)
    for size in SIZES:
        compare(exe, replace(case, size=size), weight, first)


def check(case: Case, target: Target) -> None:
    """Compile it for its size."""
    weight, first = weights(case)
    exe = unity.compile(program(case, weight, first), target, cache=None)
    compare(exe, case, weight, first)


def weights(case: Case) -> tuple[Floats, Floats]:
    """Those of the convolution in question, and of the one before."""
    rng = np.random.default_rng(0)
    shape = (case.outputs, case.channels // case.groups, *case.kernel)
    weight = rng.standard_normal(shape).astype(np.float32)
    return weight, rng.standard_normal((case.channels, case.channels, 1, 1)).astype(np.float32)


def compare(exe: unity.Executable, case: Case, weight: Floats, first: Floats) -> None:
    """Compare compiled code with float64 arithmetic."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((case.batch, case.channels, *case.size)).astype(np.float32)
    ones = first[:, :, 0, 0].astype(np.float64)
    a = np.maximum(np.einsum("nchw,oc->nohw", x.astype(np.float64), ones), 0)
    expected = np.maximum(convolved(a, weight.astype(np.float64), case), 0)
    got = exe(x)
    assert got.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(got / scale, expected / scale, atol=2e-6)


def convolved(x: Doubles, weight: Doubles, case: Case) -> Doubles:
    """The convolution, tap by tap."""
    top, left, bottom, right = case.padding
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    (sh, sw), (dh, dw), (kh, kw) = case.strides, case.dilation, case.kernel
    oh = (padded.shape[2] - dh * (kh - 1) - 1) // sh + 1
    ow = (padded.shape[3] - dw * (kw - 1) - 1) // sw + 1
    g = case.groups
    total = np.zeros((case.batch, g, case.outputs // g, oh, ow))
    for i in range(kh):
        for j in range(kw):
            seen = padded[:, :, i * dh :, j * dw :][:, :, ::sh, ::sw][:, :, :oh, :ow]
            seen = seen.reshape(case.batch, g, case.channels // g, oh, ow)
            taps = weight[:, :, i, j].reshape(g, case.outputs // g, -1)
            total += np.einsum("ngchw,goc->ngohw", seen, taps)
    return total.reshape(case.batch, case.outputs, oh, ow)


@pytest.mark.rotated(4)
@TARGETS
@pytest.mark.parametrize(
    "pool",
    [
        "R.nn.max_pool2d(a, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))",
        "R.nn.max_pool2d(a, pool_size=(5, 5), strides=(1, 1), padding=(2, 2, 2, 2))",
        "R.nn.avg_pool2d(a, pool_size=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1))",
        "R.nn.avg_pool2d(a, pool_size=(2, 3), strides=(2, 2), ceil_mode=True)",
        "R.mean(a, axis=[2, 3], keepdims=True)",
    ],
)
def test_pooling_on_blocks(pool: str, target: Target) -> None:
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((32, 16, 1, 1)).astype(np.float32)
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, 16, 13, 18]):
    with R.dataflow():
        a = R.nn.conv2d(x, R.const("w"))
        y = {pool}
        z = R.nn.relu(R.nn.conv2d(y, R.const("v")))
    return z
""",
        {"w": weight, "v": rng.standard_normal((16, 32, 1, 1)).astype(np.float32)},
    )
    x = rng.standard_normal((1, 16, 13, 18)).astype(np.float32)
    exe = unity.compile(module, target, cache=None)
    expected = interpret(module, "main", (x,))
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(exe(x), expected.astype(np.float64), rtol=1e-3, atol=1e-4)
