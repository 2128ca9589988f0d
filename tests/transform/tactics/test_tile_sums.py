"""Blocks of sums on matrix tiles: registers taken once a task, all rows and columns of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, run
from unity.codegen.llvm import compile_kernels
from unity.errors import UnityError
from unity.interpreter.kernel import run_prim_func
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.ir.module import IRModule
from unity.ir.prim_expr import Load, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Buffer, For, PrimFunc
from unity.ir.verify import verify
from unity.machine.dot_units import SIDE, has_dot
from unity.machine.target import Target
from unity.transform import Context
from unity.transform.blocks.extents import number
from unity.transform.blocks.tree import sequence
from unity.transform.pipeline import TENSOR
from unity.transform.schedule.marked import Access
from unity.transform.tactics.tile_sums import configured, tile_sums

GROUPS = 32
"""Of two elements, in a row of the left operand: two steps."""


def product(rows: int, columns: int, blocks: int) -> PrimFunc:
    """Blocks of rows times one panel, in parallel."""
    a = Buffer("a", (imm(blocks * rows * SIDE), imm(2 * GROUPS)), BFLOAT16)
    b = Buffer("b", (imm(GROUPS), imm(columns * SIDE), imm(2)), BFLOAT16)
    c = Buffer("c", (a.shape[0], imm(columns * SIDE)), FLOAT32)
    block, step = PrimVar("block"), PrimVar("step")
    registers = tile_sums(BFLOAT16, BFLOAT16, FLOAT32)
    sums = registers.part(rows, columns)
    first = multiply(block, imm(rows * SIDE))
    deep = multiply(step, imm(SIDE))

    def left_at(i: int) -> Access:
        return lambda x: Load(
            a,
            (
                add(add(first, imm(i * SIDE)), x[0]),
                add(multiply(add(deep, x[1]), imm(2)), x[2]),
            ),
        )

    def right_at(j: int) -> Access:
        return lambda x: Load(b, (add(deep, x[0]), add(imm(j * SIDE), x[1]), x[2]))

    def target(i: int, j: int) -> Access:
        return lambda x: Load(c, (add(add(first, imm(i * SIDE)), x[0]), add(imm(j * SIDE), x[1])))

    steps = For(step, imm(0), imm(GROUPS // SIDE), sums.step(left_at, right_at))
    body = sequence([sums.zero(), steps, sums.store(target)])
    return PrimFunc(
        (a, b, c), configured(registers, For(block, imm(0), imm(blocks), body, "parallel"))
    )


@pytest.mark.rotated(2)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_blocks_of_a_product(rows: int, columns: int) -> None:
    func = product(rows, columns, blocks=5)
    verify(IRModule({"main": func}))
    rng = np.random.default_rng(rows + 2 * columns)
    shapes = [tuple(number(e) or 0 for e in b.shape) for b in func.buffers]
    a, b = (np.asarray(rng.standard_normal(s)).astype(BFLOAT16.numpy) for s in shapes[:2])
    wide = b.astype(np.float64).transpose(0, 2, 1).reshape(2 * GROUPS, columns * SIDE)
    want = a.astype(np.float64) @ wide
    out = np.full(shapes[2], 7, np.float32)
    run_prim_func(func, [a, b, out], {})
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=0, atol=1e-4)
    low = TENSOR.run(IRModule({"main": func}), Context(HOST)).prim_funcs()["main"]
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        with pytest.raises(UnityError, match="the target has no"):
            run(low, [a, b], out)
        return
    for checks in (False, True):
        out.fill(7)
        got = run(low, [a, b], out, checks=checks)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


def test_registers_are_taken_once_a_task() -> None:
    func = product(2, 2, blocks=5)
    low = TENSOR.run(IRModule({"main": func}), Context(HOST)).prim_funcs()["main"]
    target = Target(
        "cpu", "x86_64-unknown-linux-gnu", "sapphirerapids", ("amx-tile", "amx-bf16", "avx512f")
    )
    text = compile_kernels({"main": low}, target).llvm("main")
    _, _, body = text.partition("task0.body")
    configure, loop = body.index("@llvm.x86.ldtilecfg"), body.index("phi i64")
    assert configure < loop < body.index("@llvm.x86.tilezero")
