"""Convolutions of bytes on matrix tiles: blocks of 64 outputs, half of them at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, run
from unity.interpreter import run_prim_func
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT8, INT32, UINT8, Array
from unity.ir.marks import INSTRUCTION
from unity.ir.module import IRModule
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.dot_units import has_dot
from unity.op.convolution.conv_interleaved import interleaved, interleaved_lines
from unity.op.table import OPS
from unity.transform.rules.default import schedule
from unity.transform.schedule import default_schedule

from ..kernels import lowered, unscheduled

Shape = tuple[int, ...]
TILED = replace(HOST, features=(*HOST.features, "amx-tile", "amx-int8"), threads=2)
CASES: dict[str, tuple[Shape, Shape, dict[str, int | Shape]]] = {
    "pixels in a row": ((1, 2, 5, 7, 64), (2, 2, 1, 1, 64, 64), {}),
    "lines in parts": ((1, 1, 4, 35, 64), (1, 1, 3, 3, 64, 64), {"padding": 1}),
    "two lines a tile, one left": ((2, 1, 5, 7, 64), (3, 1, 3, 3, 64, 64), {"padding": 1}),
    "strided": ((1, 1, 9, 11, 64), (2, 1, 3, 3, 64, 64), {"padding": 1, "strides": 2}),
    "blocks of one tile": ((1, 1, 6, 20, 64), (2, 1, 3, 3, 64, 16), {"padding": 1}),
    "few channels": (
        (1, 1, 9, 12, 3), (1, 1, 7, 7, 3, 64), {"padding": 3, "strides": 2, "line": 7}
    ),
}  # fmt: skip


def kernel(name: str) -> tuple[PrimFunc, Attrs, list[Array]]:
    """The unscheduled kernel of a case, all its attributes, and operands with the extremes."""
    x, w, attrs = CASES[name]
    rng = np.random.default_rng(len(name))
    image = rng.integers(0, 256, x).astype(np.uint8)
    plain = rng.integers(-128, 128, w).astype(np.int8)
    plain.flat[:64], image.flat[:64] = -128, 255
    weight = interleaved_lines(plain, 4, 64) if "line" in attrs else interleaved(plain, 4)
    given = {**attrs, "out_dtype": INT32}
    func, full = unscheduled("nn.conv2d_interleaved", (x, weight.shape), given, (UINT8, INT8))
    return func, full, [image, weight]


@pytest.mark.long("interprets tiles of a matrix element by element")
@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", CASES)
def test_laid_out_it_computes_the_same(name: str) -> None:
    before, full, arrays = kernel(name)
    reference = OPS["nn.conv2d_interleaved"].reference
    assert reference is not None
    want = reference(arrays, full)
    assert isinstance(want, np.ndarray)
    after = schedule(before, TILED)
    verify(IRModule({"main": after}))
    if name == "few channels":
        (got,) = run_prim_func(after, arrays, {})
        np.testing.assert_array_equal(got, want)
    if not has_dot(HOST, "tile", UINT8, INT8, INT32):
        return
    low = lowered(after, TILED)
    for checks in (False, True):
        got = run(low, arrays, np.full(want.shape, 7, np.int32), checks=checks)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["pixels in a row", "lines in parts", "strided"])
def test_a_step_is_four_loads_and_four_products(name: str) -> None:
    low = lowered(default_schedule(kernel(name)[0], TILED).func, TILED)
    found = Counter(s.attrs.get(INSTRUCTION) for s in walk_stmt(low.body) if isinstance(s, For))
    assert [found[f"tile_{step}"] for step in ("zero", "load", "dot", "store")] == [4, 4, 4, 4]
