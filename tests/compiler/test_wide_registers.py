"""What is laid out for registers of 512 bits, run in those that are here, against onnxruntime.

LLVM makes several instructions of one where registers are narrower, and vectors of bools where none
hold masks, so that lanes, tiles, tails and masks of AVX-512 are judged on any machine. Only its own
instructions, as of dot products, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

import unity
from tests.bench.attention.works import ATTENTION, Attention
from tests.bench.lone.shapes import LONE, Lone
from tests.bench.peers import relative_error
from tests.bench.work import Feeds
from tests.codegen.llvm.levels import emitted_here, with_masks
from unity.codegen.llvm import build
from unity.machine.target import Target
from unity.runtime.executable import Executable

WIDE = emitted_here(512, 32)
SIZES = (1, 2, 7, 8, 15, 16, 17, 31, 33, 47, 65)
NEEDS = {"TopK": 200, "Gather": 9}
"""Elements of an unknown axis that what a model holds speaks of."""


@pytest.fixture(autouse=True)
def masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are written as for registers of masks."""
    monkeypatch.setattr(Target, "masked", True)
    monkeypatch.setattr(build, "abilities", with_masks)


def compiled(model: onnx.ModelProto) -> Executable:
    """For this machine with such registers; not of the cache, which knows of it without."""
    return unity.compile(model, WIDE, cache=None)


def windows(lone: Lone) -> int:
    """How many elements a model's axes need at least."""
    shape = lone.constants[0].shape[2:] if lone.kind == "Conv" else ()
    kernel: Sequence[int] = lone.attrs.get("kernel_shape", shape)
    return max([1, NEEDS.get(lone.kind, 1), *(2 * k - 1 for k in kernel)])


def resized(lone: Lone, n: int) -> Lone:
    """The same with so many elements where they are unknown."""
    inputs = tuple(
        tuple(n if k == axis else e for k, e in enumerate(shape))
        for shape, axis in zip(lone.inputs, lone.unknown, strict=True)
    )
    return replace(lone, inputs=inputs)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """The model, as onnxruntime runs it."""
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def assert_same(exe: Executable, peer: onnxruntime.InferenceSession, feeds: Feeds) -> None:
    for got, want in zip(exe.run(feeds).values(), peer.run(None, feeds), strict=True):
        assert relative_error(got, want) < 3e-5


@pytest.mark.rotated(8)
@pytest.mark.parametrize("name", LONE)
def test_operators(name: str) -> None:
    lone = LONE[name]
    rng = np.random.default_rng(len(name))
    sizes = [windows(lone) - 1 + int(n) for n in rng.choice(SIZES, 4, replace=False)]
    model = lone.model(known=False)
    exe, peer = compiled(model), session(model)
    for n in sizes:
        assert_same(exe, peer, resized(lone, n).feeds())
    fixed = resized(lone, sizes[0])
    model = fixed.model(known=True)
    assert_same(compiled(model), session(model), fixed.feeds())


@pytest.mark.rotated(4)
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    work = ATTENTION[name]
    rng = np.random.default_rng(len(name))

    def drawn() -> Attention:
        length = int(rng.choice(SIZES))
        more = int(rng.choice(SIZES)) + (length if work.mask == "causal" else 0)
        keys = length if work.keys == work.length else more
        return replace(work, batch=int(rng.integers(1, 4)), length=length, keys=keys)

    model = work.model(known=False)
    exe, peer = compiled(model), session(model)
    for _ in range(4):
        assert_same(exe, peer, drawn().feeds())
    fixed = drawn()
    model = fixed.model(known=True)
    assert_same(compiled(model), session(model), fixed.feeds())
