"""Convolutions of integers in blocks that fill rows of matrix tiles, where all of them do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unity.interpreter import interpret
from unity.ir.graph import Call, Op
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import ConvertLayout, EliminateDeadCode

TILES = ("avx2", "avx512f", "avx512vl", "avx512vnni", "amx-tile", "amx-int8")
CPU = Target("cpu", "x86_64-unknown-linux-gnu", "generic", TILES, 512, 32, threads=2)
TEXT = """
{dims}
@script.function
def main(x: u8[Tensor, 1, 3, {size}]) -> i32[Tensor, 1, {last}, {size}]:
    a = R.nn.conv2d(x, R.const("first"), padding=1, out_dtype="int32")
    b = R.astype(R.right_shift(a, 9), dtype="uint8")
    c = R.nn.conv2d(b, R.const("second"), padding=1, out_dtype="int32")
    d = R.add(c, a)
    {more}
    return d
"""
RNG = np.random.default_rng(5)


def module(channels: int, size: str = "9, 7", dims: str = "", more: str = "") -> IRModule:
    """Two convolutions and a sum, of so many channels."""
    text = TEXT.format(size=size, last=channels, dims=dims, more=more)
    shapes = {"first": (channels, 3, 3, 3), "second": (channels, channels, 3, 3)}
    weights = {k: RNG.integers(-128, 128, s).astype(np.int8) for k, s in shapes.items()}
    real = RNG.standard_normal((channels, channels, 1, 1)).astype(np.float32)
    return parse(text, {**weights, "real": real})


def blocks(before: IRModule, target: Target) -> tuple[set[int], IRModule]:
    """The outputs of the blocks that convolutions of integers give, and what they stand in."""
    context = replace(Context(), target=target)
    after = EliminateDeadCode()(ConvertLayout()(before, context), context)
    verify(after)
    found: set[int] = set()
    for b in walk_bindings(after.graph_functions()["main"]):
        if isinstance(b.value, Call) and b.value.callee == Op("nn.conv2d_interleaved"):
            kind = atom_type(b.var)
            assert isinstance(kind, TensorType)
            assert isinstance(kind.shape, tuple)
            assert isinstance(kind.shape[-1], int)
            found.add(kind.shape[-1])
    return found, after


REAL = """
    e = R.nn.conv2d(R.astype(b, dtype="float32"), R.const("real"))
    d = R.add(d, R.astype(e, dtype="int32"))"""


@pytest.mark.parametrize(
    ("channels", "features", "more", "block"),
    [
        (64, TILES, "", 64),
        (120, TILES, "", 64),
        (96, TILES, "", 16),
        (64, TILES[:-2], "", 16),
        (64, TILES, REAL, 16),
    ],
)
def test_blocks_are_as_wide_as_all_can_fill(
    channels: int, features: tuple[str, ...], more: str, block: int
) -> None:
    before = module(channels, more=more)
    found, after = blocks(before, replace(CPU, features=features))
    assert found == {block}
    x = RNG.integers(0, 256, (1, 3, 9, 7)).astype(np.uint8)
    got, want = (np.asarray(interpret(m, "main", [x])) for m in (after, before))
    np.testing.assert_array_equal(got, want)


def test_images_of_unknown_size_have_blocks_of_a_register() -> None:
    dims = "\n".join(f'{x} = dim("{x}", min=2)' for x in "hw")
    assert blocks(module(64, "h, w", dims), CPU)[0] == {16}
