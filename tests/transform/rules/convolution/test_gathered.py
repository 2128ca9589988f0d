"""Convolutions of small images of unknown size: their pixels are gathered for the tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.transform.cases import floats
from tests.transform.rules.convolution.test_blocked import kernel
from tests.transform.rules.kernels import lowered
from unity.interpreter import run_prim_func
from unity.ir.dims import Dim, dim
from unity.ir.prim_expr import Imm
from unity.ir.stmt import Allocate, Block, Buffer, For, IfThen, PrimFunc
from unity.ir.symbols.convert import size_var
from unity.ir.visit import variables, walk_stmt
from unity.transform.passes import Context
from unity.transform.rules.default import default_rules, default_schedule, schedule

TARGET = replace(
    Context().target, vector_bits=128, vector_registers=16, l2_bytes=1 << 14, features=("fma",)
)
N, H, W = dim("n"), dim("h", typical=5), dim("w", typical=5)
Options = dict[str, int | tuple[int, ...]]
CASES: list[tuple[tuple[int, ...], Options]] = [
    ((3, 1, 3, 3, 4, 4), {"padding": 1}),
    ((4, 2, 3, 3, 4, 4), {"padding": 1, "strides": 2}),
    ((2, 1, 5, 3, 4, 4), {"padding": (2, 0, 1, 2)}),
    ((5, 1, 2, 3, 4, 4), {"padding": (0, 2, 1, 4), "dilation": 2}),
    ((2, 2, 1, 1, 4, 4), {"strides": 2}),
    ((2, 1, 3, 3, 4, 4), {}),
]


def panels(func: PrimFunc) -> list[Buffer]:
    """What pixels are gathered in."""
    found = [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    return [b for b in found if b.name == "conv_operand_pad"]


@pytest.mark.rotated(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("w", "attrs"), CASES)
def test_laid_out_it_computes_the_same(w: tuple[int, ...], attrs: Options, threads: int) -> None:
    before = kernel((N, w[1], H, W, 4), w, **attrs)
    target = replace(TARGET, threads=threads)
    after = schedule(before, target)
    assert len(panels(after)) == 1
    low = lowered(after, target)
    for batch, height, width in ((1, 5, 5), (2, 4, 7), (0, 5, 5)):
        arrays = floats(0, (batch, w[1], height, width, 4), w)
        sizes = {size_var(N): batch, size_var(H): height, size_var(W): width}
        (expected,), *results = (run_prim_func(f, arrays, sizes) for f in (before, after, low))
        for (got,) in results:
            got = got.reshape(expected.shape)
            np.testing.assert_allclose(
                got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5
            )


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize(("w", "attrs"), CASES[:3])
def test_it_is_a_program_of_steps(w: tuple[int, ...], attrs: Options) -> None:
    """Which is known to be legal where no two sizes of the result are differences."""
    before = kernel((N, w[1], H, W, 4), w, **attrs)
    for threads in (1, 2):
        target = replace(TARGET, threads=threads)
        (rule,) = default_rules(before, target)
        assert (rule.rule, rule.passed) == ("gathered_unpadded", ())
        default_schedule(before, target)


def test_where_tiles_are_whole_nothing_but_padding_is_asked_for() -> None:
    """Lines of as many pixels as a tile has, of an unknown number."""
    target = replace(TARGET, vector_bits=512, vector_registers=32, l2_bytes=2 << 20)
    func = kernel((1, 1, 14, W, 16), (16, 1, 3, 3, 16, 16), padding=1)
    (rule,) = default_rules(func, target)
    assert (rule.rule, rule.passed, rule.decisions["rows"]) == ("gathered_unpadded", (), 14)


@pytest.mark.rotated(1)
@pytest.mark.parametrize("by_blocks", [True, False])
def test_threads_have_blocks_of_outputs_or_pixels(by_blocks: bool) -> None:
    w, target = (8, 1, 3, 3, 4, 4), replace(TARGET, threads=2)
    before = kernel((N, 1, H, W, 4), w, padding=1)
    after = default_schedule(before, target, {"conv": {"by_blocks": by_blocks}}).func
    (shared,) = (s for s in walk_stmt(after.body) if isinstance(s, For) and s.kind == "parallel")
    block = next(s for s in walk_stmt(shared) if isinstance(s, Block) and s.name == "conv")
    assert {a.var.name for a in block.axes if shared.var in variables(a.value)} == {
        "v1" if by_blocks else "v0"
    }
    arrays = floats(0, (2, 1, 3, 5, 4), w)
    sizes = {size_var(N): 2, size_var(H): 3, size_var(W): 5}
    (expected,), (got,) = (run_prim_func(f, arrays, sizes) for f in (before, after))
    got = got.reshape(expected.shape)
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


def test_threads_share_weights_that_are_more_than_pixels() -> None:
    """Each would read all of them from afar otherwise."""
    target = replace(TARGET, threads=2, l2_bytes=1 << 20)
    shared: list[object] = []
    for blocks in (64, 4):
        w = (blocks, 2, 3, 3, 4, 4)
        (rule,) = default_rules(kernel((N, 2, H, W, 4), w, padding=1), target)
        shared.append(rule.decisions["by_blocks"])
    assert shared == [True, False]


def test_tiles_are_written_once_and_none_asks_for_a_row() -> None:
    """What is behind the last pixel is computed as zeros, and not stored."""
    before = kernel((N, 2, H, W, 4), (4, 2, 3, 3, 4, 4), padding=1, strides=2)
    low = lowered(schedule(before, replace(TARGET, threads=2)), TARGET)
    sums = [s for s in walk_stmt(low.body) if isinstance(s, Allocate) and s.buffer.scope == "local"]
    assert len(sums) == 1
    assert not [x for s in walk_stmt(sums[0]) if isinstance(s, For) for x in conditions(s)]


def conditions(loop: For) -> list[IfThen]:
    """Where something is asked in a loop."""
    return [s for s in walk_stmt(loop) if isinstance(s, IfThen)]


def test_panels_of_a_thread_are_known_to_be_small() -> None:
    """What a thread gathers has a size that is known, however many pixels there are."""
    before = kernel((N, 2, H, W, 4), (4, 2, 3, 3, 4, 4), padding=1)
    target = replace(TARGET, threads=2)
    low = lowered(schedule(before, target), target)
    (panel,) = panels(low)
    assert all(isinstance(n, Imm) for n in panel.shape)


@pytest.mark.parametrize(
    ("x", "w"),
    [
        ((1, 1, dim("h", typical=300), dim("w", typical=300), 4), (4, 1, 3, 3, 4, 4)),
        ((1, 1, 5, 5, 4), (4, 1, 3, 3, 4, 4)),
        ((1, 9, H, W, 1), (4, 9, 3, 3, 1, 4)),
    ],
)
def test_long_lines_known_ones_and_single_channels_are_read_in_place(
    x: tuple[Dim, ...], w: tuple[int, ...]
) -> None:
    assert not panels(schedule(kernel(x, w, padding=1), TARGET))
