"""Products over panels: tiles that fit the registers, for every number of rows and columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transform.cases import floats
from unity.interpreter import run_prim_func
from unity.ir.convert import size_var
from unity.ir.dims import Dim, dim
from unity.ir.dtype import INT64
from unity.ir.prim_expr import Compare, Imm, imm
from unity.ir.stmt import Evaluate, For, IfThen, PrimFunc, Stmt
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.transform.passes import Context
from unity.transform.rules.default import schedule

from ..kernels import accumulators, unscheduled

WIDE = replace(Context().target, vector_bits=512, vector_registers=32)
SHORT = replace(WIDE, vector_bits=256, vector_registers=16)
SHORTEST = replace(WIDE, vector_bits=128, vector_registers=16)
TARGETS = [WIDE, SHORT, SHORTEST]


def kernel(x: tuple[Dim, ...], w: tuple[int, ...], columns: int) -> PrimFunc:
    """The unscheduled kernel of matmul_packed."""
    return unscheduled("matmul_packed", (x, w), {"columns": columns})[0]


def same(before: PrimFunc, target: Target, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    arrays = floats(0, x, w)
    sizes = {size_var(ROWS): x[0]}
    (expected,) = run_prim_func(before, arrays, sizes)
    (got,) = run_prim_func(schedule(before, target), arrays, sizes)
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


ROWS = dim("rows")


@pytest.mark.rotated(1)
@settings(max_examples=20)
@given(
    rows=st.integers(0, 16),
    known=st.booleans(),
    depth=st.integers(1, 6),
    count=st.integers(1, 2),
    vectors=st.integers(1, 4),
    missing=st.integers(0, 15),
    target=st.sampled_from(TARGETS),
    threads=st.integers(1, 3),
    near=st.booleans(),
)
def test_laid_out_it_computes_the_same(
    rows: int,
    known: bool,
    depth: int,
    count: int,
    vectors: int,
    missing: int,
    target: Target,
    threads: int,
    near: bool,
) -> None:
    width = target.vector_bits // 32 * min(vectors, 4 if target.vector_registers == 32 else 2)
    columns = max(1, count * width - missing)
    x, w = (rows, depth), (-(-columns // width), depth, width)
    before = kernel((rows if known else ROWS, depth), w, columns)
    l2_bytes = target.l2_bytes if near else 64
    same(before, replace(target, threads=threads, l2_bytes=l2_bytes), x, w)


def test_no_rows_are_no_work_for_several_threads() -> None:
    same(kernel((0, 3), (2, 3, 64), 100), replace(WIDE, threads=2), (0, 3), (2, 3, 64))


def test_batches_of_matrices_are_outer_loops() -> None:
    before = kernel((2, ROWS, 5), (2, 2, 5, 8), 13)
    laid_out = schedule(before, SHORTEST)
    arrays, sizes = floats(0, (2, 3, 5), (2, 2, 5, 8)), {size_var(ROWS): 3}
    (expected,), (got,) = (run_prim_func(f, arrays, sizes) for f in (before, laid_out))
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)
    assert accumulators(laid_out)


@pytest.mark.parametrize("target", TARGETS)
def test_accumulators_fit_the_registers_and_use_them(target: Target) -> None:
    vectors, lanes = 4 if target.vector_registers == 32 else 2, target.vector_bits // 32
    func = kernel((ROWS, 64), (4, 64, vectors * lanes), 4 * vectors * lanes)
    tiles = [n // lanes for n in accumulators(schedule(func, target))]
    assert max(tiles) + vectors + 1 <= target.vector_registers
    most = (target.vector_registers - 1 - vectors) // vectors * vectors
    assert max(tiles) == most


def test_known_rows_go_evenly_to_tiles() -> None:
    func = kernel((13, 8), (1, 8, 16), 16)  # three of five would be one of three, which waits
    tiles = accumulators(schedule(func, SHORT))
    assert sorted(n // 16 for n in tiles) == [4, 5]


def test_unknown_rows_end_in_one_tile_of_any_smaller_size() -> None:
    func = kernel((ROWS, 8), (1, 8, 64), 64)
    heights = sorted({n // 64 for n in accumulators(schedule(func, WIDE))})
    assert heights == [1, 2, 3, 4, 5, 6]


def test_tiles_fetch_the_next_panel_together() -> None:
    func = kernel((7, 64), (3, 64, 16), 48)
    little = replace(SHORT, l2_bytes=16 << 10)
    assert fetches(schedule(func, little)) == {2}
    assert not fetches(schedule(func, SHORT))  # all of it stays in the cache


def test_of_unknown_rows_few_alone_fetch_nothing() -> None:
    func = schedule(kernel((ROWS, 64), (3, 64, 64), 192), replace(WIDE, l2_bytes=64 << 10))
    few = Compare("lt", size_var(ROWS), imm(4))
    apart = [s for s in walk_stmt(func.body) if isinstance(s, IfThen) and s.condition == few]
    assert len(apart) == 3  # tails of one, two, three rows

    def asks(s: Stmt | None) -> bool:
        return s is not None and any(isinstance(x, Evaluate) for x in walk_stmt(s))

    assert all(not asks(s.then) and asks(s.orelse) for s in apart)


@pytest.mark.parametrize(("depth", "runs"), [(64, 1), (256, 1), (512, 4), (509, 1)])
def test_long_panels_are_taken_in_runs_of_steps(depth: int, runs: int) -> None:
    func = schedule(kernel((7, depth), (3, depth, 16), 48), replace(SHORT, l2_bytes=128 << 10))
    found = [s.extent for s in walk_stmt(func.body) if isinstance(s, For) and s.var.name == "run"]
    assert found == ([Imm(runs, INT64)] if runs > 1 else [])


@pytest.mark.rotated(1)
@settings(max_examples=10)
@given(
    rows=st.integers(0, 20),
    known=st.booleans(),
    quarters=st.integers(3, 8),
    columns=st.integers(1, 20),
    target=st.sampled_from([SHORT, SHORTEST]),
    threads=st.integers(1, 3),
)
def test_in_runs_they_compute_the_same(
    rows: int, known: bool, quarters: int, columns: int, target: Target, threads: int
) -> None:
    width, depth = target.vector_bits // 32, 4 * quarters
    x, w = (rows, depth), (-(-columns // width), depth, width)
    before = kernel((rows if known else ROWS, depth), w, columns)
    same(before, replace(target, threads=threads, l2_bytes=depth * width * 4 * 6), x, w)


def fetches(func: PrimFunc) -> set[int]:
    """How many lines are fetched at a time."""
    found = set()
    for s in walk_stmt(func.body):
        if isinstance(s, For) and isinstance(s.body, Evaluate):
            assert isinstance(s.extent, Imm)
            assert isinstance(s.extent.value, int)
            found.add(s.extent.value)
    return found
