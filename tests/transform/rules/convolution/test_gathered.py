"""Convolutions of small images of unknown size: their pixels are gathered for the tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.transform.cases import floats
from tests.transform.rules.convolution.test_blocked import kernel
from unity.interpreter import run_prim_func
from unity.ir.convert import size_var
from unity.ir.dims import Dim, dim
from unity.ir.stmt import Allocate, Buffer, PrimFunc
from unity.ir.visit import walk_stmt
from unity.transform.passes import Context
from unity.transform.rules.default import schedule

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
    return [b for b in found if b.name == "gathered"]


@pytest.mark.rotated(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("w", "attrs"), CASES)
def test_laid_out_it_computes_the_same(w: tuple[int, ...], attrs: Options, threads: int) -> None:
    before = kernel((N, w[1], H, W, 4), w, **attrs)
    after = schedule(before, replace(TARGET, threads=threads))
    assert len(panels(after)) == 1
    for batch, height, width in ((1, 5, 5), (2, 4, 7), (0, 5, 5)):
        arrays = floats(0, (batch, w[1], height, width, 4), w)
        sizes = {size_var(N): batch, size_var(H): height, size_var(W): width}
        (expected,), (got,) = (run_prim_func(f, arrays, sizes) for f in (before, after))
        np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


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
