"""A product on matrix tiles by steps: tiles of sums that stay in registers over all of a sum."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest

from tests.transform.rules.contraction.test_grouped_panels import (
    TILES,
    instructions,
    operands,
    shaped,
)
from unity.codegen.llvm import compile_kernels
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform import Context
from unity.transform.pipeline import TENSOR
from unity.transform.schedule import BlockRef, LoopRef, Schedule
from unity.transform.tensor.compact_buffers import compact

SCOPE = "amx.tile"
UNIT = "amx_bf16"


def tiled(sch: Schedule, *, padded: bool) -> None:
    """Blocks of two by two tiles; rows that fill no tile are copied with zeros behind them."""
    result, sums = sch.reindex("matmul", "write", 0), sch.get_block("matmul")
    sch.set_scope(sums, 0, "local")
    copies: tuple[BlockRef, ...] = ()
    if padded:
        operand = sch.cache_operand(sums, 0, "local")
        copies = sch.pad_einsum(sums, [16, 32, 1, 1])
        sch.compute_inline(operand)
    kept = sch.cache_write(sums, 0, SCOPE)
    left, right = (sch.cache_operand(sums, k, SCOPE) for k in (0, 1))
    row, column, depth, place = sch.get_loops(sums)
    pair, i, m = sch.split(row, [None, 2, 16])
    panel, j, n = sch.split(column, [None, 2, 16])
    step, k = sch.split(depth, [None, 16])
    sch.reorder(panel, pair, step, i, j, m, n, k, place)
    for block in (kept, result):
        sch.reverse_compute_at(block, pair)
    init = sch.decompose_reduction(sums, step)
    for block in (right, left):
        sch.compute_at(block, step)
        sch.store_at(block, 0, step)
    for block in (kept, sums):
        sch.store_at(block, 0, pair)
    for copy in copies:
        sch.compute_at(copy, panel)
        sch.store_at(copy, 0, panel)
    sch.transform_layout(sums, 0, lambda r, c: (r // 16, c // 16, r % 16, c % 16))
    sch.transform_layout(left, 0, lambda r, k, p: (r // 16, k // 16, r % 16, k % 16, p))
    sch.transform_layout(right, 0, lambda c, k, p: (c // 16, k // 16, k % 16, c % 16, p))
    *_, rows, columns = sch.get_loops(kept)
    (a, b), (c, d) = sch.split(rows, [None, 16]), sch.split(columns, [None, 16])
    sch.reorder(a, c, b, d)
    *_, rows, _, _ = sch.get_loops(left)
    e, f = sch.split(rows, [None, 16])
    *_, columns, groups, _ = sch.get_loops(right)
    g, h = sch.split(columns, [None, 16])
    sch.reorder(g, groups, h)
    *_, x, y, zero, _ = sch.get_loops(init)
    ends: dict[str, LoopRef] = {"zero": zero, "left": f, "right": groups, "dot": m, "store": b}
    for name, loop in ends.items():
        sch.tensorize(loop, f"{UNIT}_{name}")
    for loop in (i, j, x, y, a, c, e, g):
        sch.unroll(loop)
    _, lane = sch.split(sch.get_loops(result)[-1], [None, 16])
    sch.vectorize(lane)
    sch.parallel(panel)


def scheduled(
    rows: int, depth: int, columns: int
) -> tuple[PrimFunc, list[Array], npt.NDArray[np.float64]]:
    """A product by steps, its operands and its value."""
    arrays, want = operands((rows, depth), columns, 32)
    sch = Schedule(shaped((rows, depth), arrays[1], columns), TILES)
    tiled(sch, padded=bool(rows % 16 or columns % 32 or depth % 32))
    return compact(sch.func), arrays, want


@pytest.mark.rotated(1)
@pytest.mark.parametrize("shape", [(32, 64, 32), (17, 31, 20), (49, 32, 32)])
def test_it_computes_the_same(shape: tuple[int, int, int]) -> None:
    func, arrays, want = scheduled(*shape)
    assert instructions(func) == {"tile_zero", "tile_load", "tile_dot", "tile_store"}
    low = TENSOR.run(IRModule({"main": func}), Context(TILES)).prim_funcs()["main"]
    for each, given in ((func, arrays), (low, [x.reshape(-1) for x in arrays])):
        (got,) = run_prim_func(each, given, {})
        close = got.astype(np.float64).reshape(want.shape)
        np.testing.assert_allclose(close, want, rtol=0, atol=1e-4)


def test_a_step_is_four_loads_and_four_products() -> None:
    """And registers are taken once for each thread's part."""
    func, _, _ = scheduled(64, 320, 64)
    low = TENSOR.run(IRModule({"main": func}), Context(TILES)).prim_funcs()["main"]
    asm = compile_kernels({"main": low}, TILES).asm("main")
    names = ("tileloadd", "tdpbf16ps", "tilezero", "tilestored", "ldtilecfg", "tilerelease")
    found = [len(re.findall(rf"\b{name}\b", asm)) for name in names]
    assert found == [4, 4, 4, 4, 1, 1]


def test_which_tile_it_is_must_be_known() -> None:
    func, _, _ = scheduled(64, 64, 64)
    text = str(func).replace("in T.unroll(2)", "in range(2)")
    module = parse(text)
    with pytest.raises(UnityError, match="it is not known at compile time which of the tiles"):
        TENSOR.run(module, Context(TILES))


def test_tiles_lie_in_their_scope() -> None:
    arrays, _ = operands((16, 32), 32, 32)
    sch = Schedule(shaped((16, 32), arrays[1], 32), TILES)
    copy = sch.cache_operand("matmul", 0, "local")
    with pytest.raises(UnityError, match=r"is of scope 'local', not 'amx\.tile'"):
        sch.tensorize(sch.get_loops(copy)[0], f"{UNIT}_left")
