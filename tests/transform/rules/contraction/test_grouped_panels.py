"""Products by panels of groups, on tiles and in lanes: any number of rows, columns and depth."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.llvm.run_kernel import HOST, run
from tests.rotation import examples
from unity.codegen.llvm import compile_kernels
from unity.interpreter import run_prim_func
from unity.ir.dims import Dim, dim
from unity.ir.dtype import BFLOAT16, FLOAT32, Array
from unity.ir.marks import INSTRUCTION
from unity.ir.stmt import For, PrimFunc
from unity.ir.symbols.convert import size_var
from unity.ir.visit import walk_stmt
from unity.machine.dot_units import DotForm, has_dot
from unity.machine.target import Target
from unity.op.contraction.matmul_interleaved import interleaved
from unity.transform.rules.default import schedule

from ..kernels import lowered, unscheduled

ROWS = dim("rows")
TILES = Target(
    "cpu",
    "x86_64-unknown-linux-gnu",
    "sapphirerapids",
    ("amx-bf16", "amx-tile", "avx512bf16", "avx512bw", "avx512f", "avx512vl"),
    vector_bits=512,
    vector_registers=32,
)
LANES = replace(TILES, features=tuple(f for f in TILES.features if not f.startswith("amx")))
UNITS = {"tile_dot": TILES, "lane_dot": LANES}


def kernel(x: tuple[Dim, ...], weight: tuple[int, ...], columns: int) -> PrimFunc:
    """The unscheduled kernel of matmul_interleaved."""
    attrs = {"columns": columns, "out_dtype": FLOAT32}
    return unscheduled("matmul_interleaved", (x, weight), attrs, BFLOAT16)[0]


def operands(
    x: tuple[int, ...], columns: int, width: int
) -> tuple[list[Array], npt.NDArray[np.float64]]:
    """Random x and panels of a random matrix, and their product."""
    rng = np.random.default_rng(sum(x) + columns)
    left = np.asarray(rng.standard_normal(x)).astype(BFLOAT16.numpy)
    right = np.asarray(rng.standard_normal((x[-1], columns))).astype(BFLOAT16.numpy)
    product = left.astype(np.float64) @ right.astype(np.float64)
    return [left, interleaved(right, width, 2, 16)], product


def instructions(func: PrimFunc) -> set[str]:
    found = (s.attrs.get(INSTRUCTION) for s in walk_stmt(func.body) if isinstance(s, For))
    return {str(name) for name in found if name is not None}


def shaped(x: tuple[Dim, ...], panels: Array, columns: int) -> PrimFunc:
    return kernel(x, tuple(panels.shape), columns)


@pytest.mark.rotated(1)
@settings(max_examples=examples(8))
@given(
    rows=st.integers(1, 40),
    known=st.booleans(),
    depth=st.integers(1, 40),
    columns=st.integers(1, 40),
    width=st.sampled_from([16, 32]),
    threads=st.integers(1, 3),
    unit=st.sampled_from(["tile_dot", "lane_dot"]),
)
def test_laid_out_it_computes_the_same(
    rows: int, known: bool, depth: int, columns: int, width: int, threads: int, unit: str
) -> None:
    arrays, want = operands((rows, depth), columns, width)
    before = shaped((rows if known else ROWS, depth), arrays[1], columns)
    after = schedule(before, replace(UNITS[unit], threads=threads))
    single = columns == 1  # a vector, or a number: there are no columns
    assert single or unit in instructions(after)
    (got,) = run_prim_func(after, arrays, {} if known else {size_var(ROWS): rows})
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


SHAPES = [
    (1, 64, 32), (7, 33, 70), (16, 32, 16), (17, 40, 33), (33, 64, 31), (100, 320, 200),
    (101, 400, 402), (129, 1, 7),
]  # fmt: skip


@pytest.mark.rotated(7)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_it_computes_the_same(shape: tuple[int, int, int], known: bool, unit: str) -> None:
    rows, depth, columns = shape
    arrays, want = operands((rows, depth), columns, 32 if columns > 16 else 16)
    before = shaped((rows if known else ROWS, depth), arrays[1], columns)
    target = UNITS[unit]
    after = schedule(before, replace(target, threads=2))
    low = lowered(after, target)
    form: DotForm = "tile" if unit == "tile_dot" else "lanes"
    if not has_dot(HOST, form, BFLOAT16, BFLOAT16, FLOAT32):
        compile_kernels({"main": low}, target)
        return
    for checks in (False, True):
        out = np.full(want.shape, 7, np.float32)
        got = run(low, arrays, out, {} if known else {ROWS.name: rows}, checks=checks)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("x", [(3, 5, 64), (2, 3, ROWS, 40), (ROWS, 4, 32), (64,)])
def test_leading_axes_are_rows_too(x: tuple[Dim, ...], unit: str) -> None:
    given = tuple(5 if e is ROWS else int(str(e)) for e in x)
    arrays, want = operands(given, 40, 32)
    after = schedule(shaped(x, arrays[1], 40), UNITS[unit])
    assert unit in instructions(after)
    (got,) = run_prim_func(after, arrays, {size_var(ROWS): 5} if ROWS in x else {})
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


def test_no_rows_are_no_work() -> None:
    counts: tuple[Dim, ...] = (0, ROWS)
    for rows, target in itertools.product(counts, UNITS.values()):
        arrays, want = operands((0, 64), 40, 32)
        after = schedule(shaped((rows, 64), arrays[1], 40), replace(target, threads=2))
        (got,) = run_prim_func(after, arrays, {size_var(ROWS): 0} if rows is ROWS else {})
        assert got.shape == want.shape


@pytest.mark.parametrize("features", [("avx512f",), ("amx-tile", "amx-int8", "avx512f")])
def test_a_target_without_such_tiles_gets_none(features: tuple[str, ...]) -> None:
    arrays, _ = operands((32, 64), 32, 32)
    after = schedule(shaped((32, 64), arrays[1], 32), replace(TILES, features=features))
    assert not instructions(after)


def test_tiles_are_not_given_up_for_a_sum_in_pieces() -> None:
    """One task leaves a thread idle, but tiles of a matrix are more than several threads' lanes."""
    func = kernel((64, 128), (2, 64, 32, 2), 64)
    assert "tile_dot" in instructions(schedule(func, replace(TILES, threads=2)))
