"""Chunks of packed columns: the widths that cost least, the next one fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from tests.transform.cases import floats
from tests.transform.schedule.test_by_hand import lowered
from unity import te
from unity.interpreter import run_prim_func
from unity.ir.prim_expr import Intrinsic, Load, PrimExpr
from unity.ir.stmt import Allocate, Evaluate, PrimFunc, Store
from unity.ir.visit import walk_prim, walk_stmt
from unity.machine.target import Target
from unity.transform.passes import Context
from unity.transform.rules.default import default_rules, schedule
from unity.transform.tactics import packing

WIDE = replace(
    Context().target,
    features=("fma",),
    vector_bits=512,
    vector_registers=32,
    l1_bytes=48 << 10,
    l2_bytes=2 << 20,
)
SHORT = replace(WIDE, vector_bits=256, vector_registers=16, l1_bytes=32 << 10)
SHORTEST = replace(WIDE, vector_bits=128, vector_registers=16, features=())
TARGETS = [WIDE, SHORT, SHORTEST]


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """What is worth a copy at sizes that the interpreter can do."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("ROWS", 3), ("DEPTH", 2), ("STRIDE", 8)):
            patch.setattr(packing, name, value)
        yield


def product(rows: int, depth: int, columns: int, batch: int = 1, kind: str = "float32") -> PrimFunc:
    """A convolution of single pixels: ``relu(a[rows, depth] @ b[depth, columns] + bias)``."""
    a = te.placeholder((rows, depth), kind, "a")
    b = te.placeholder((batch, depth, columns), kind, "b")
    bias = te.placeholder((rows,), kind, "bias")
    k = te.reduce_axis(depth, "k")
    shape = (batch, rows, columns)
    y = te.compute(shape, lambda n, i, j: te.sum(a[i, k.var] * b[n, k.var, j], [k]), "y")

    def positive(*at: PrimExpr) -> PrimExpr:
        return te.max_(y[at] + bias[at[1]], 0.0)

    return te.create_prim_func([a, b, bias, te.compute(shape, positive, "z")])


@pytest.mark.rotated(1)
@settings(max_examples=examples(6))
@given(
    rows=st.integers(3, 20),
    depth=st.integers(2, 5),
    columns=st.integers(33, 90).filter(lambda n: n % 4),  # whole registers are panels as they are
    batch=st.integers(1, 2),
    target=st.sampled_from(TARGETS),
    threads=st.integers(1, 3),
    near=st.booleans(),
    kind=st.sampled_from(["float32", "float64"]),
)
def test_laid_out_it_computes_the_same(
    rows: int,
    depth: int,
    columns: int,
    batch: int,
    target: Target,
    threads: int,
    near: bool,
    kind: str,
) -> None:
    before = product(rows, depth, columns, batch, kind)
    target = replace(target, threads=threads, l2_bytes=1 << 20 if near else 64)
    after = schedule(before, target)
    assert "b_reindex" in {s.buffer.name for s in walk_stmt(after.body) if isinstance(s, Allocate)}
    arrays = [x.astype(kind) for x in floats(0, (rows, depth), (batch, depth, columns), (rows,))]
    (expected,) = run_prim_func(before, arrays, {})
    for made in (after, lowered(after, target)):
        (got,) = run_prim_func(made, arrays, {})
        flat = got.astype(float).ravel()
        np.testing.assert_allclose(flat, expected.astype(float).ravel(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "tiles"),
    [
        (64, 256, 3136, {(8, 3), (8, 1)}),  # three vectors: eight rows leave none
        (256, 64, 3136, {(6, 4), (4, 4)}),  # the panel stays in the first cache
        (1024, 1024, 1024, {(6, 4), (4, 4)}),  # rows a page apart: eight would fill its ways
        (128, 768, 768, {(8, 3)}),
    ],
)
def test_tiles_that_cost_least(
    rows: int, depth: int, columns: int, tiles: set[tuple[int, int]]
) -> None:
    sums = {r * v for r, v in tiles}
    assert set(accumulators(product(rows, depth, columns), WIDE)) == sums


@pytest.mark.parametrize("target", TARGETS)
def test_accumulators_fit_the_registers(target: Target) -> None:
    for n in accumulators(product(48, 64, 500), target):
        assert n + 2 <= target.vector_registers


def test_strips_are_shared_evenly() -> None:
    """With three vectors there would be eleven chunks for two threads."""
    func = product(512, 512, 512)
    assert max(accumulators(func, replace(WIDE, threads=1))) == 8 * 3
    assert max(accumulators(func, replace(WIDE, threads=2))) == 6 * 4


def test_the_next_strip_is_fetched_if_columns_are_more_than_the_cache_holds() -> None:
    func = product(64, 256, 3136)
    assert fetches(schedule(func, WIDE))
    assert not fetches(schedule(func, replace(WIDE, l2_bytes=4 << 20)))
    assert not fetches(schedule(product(8, 256, 3136), WIDE))  # one tile: no one has time
    assert not fetches(schedule(product(64, 256, 4096), WIDE))  # rows lie in the same sets
    assert fetches(schedule(product(64, 64, 3200), replace(WIDE, l2_bytes=1 << 19)))


@pytest.mark.parametrize(
    ("target", "rows", "steps"), [(WIDE, 64, 2), (WIDE, 1024, 4), (SHORT, 64, 4)]
)
def test_so_many_steps_stand_in_a_row_where_a_panel_is_copied(
    target: Target, rows: int, steps: int
) -> None:
    """Of tiles of 24 sums two, where the one that copies counts; of 12 sums four."""
    (applied,) = default_rules(product(rows, 256, 3136), replace(target, threads=1))
    assert applied.decisions["copied"]
    assert applied.decisions["steps"] == steps


def accumulators(func: PrimFunc, target: Target) -> list[int]:
    """How many vectors each tile sums up in."""
    return [
        sum(isinstance(x, Store) and x.buffer is s.buffer and not _adds(x) for x in walk_stmt(s))
        for s in walk_stmt(lowered(schedule(func, target), target).body)
        if isinstance(s, Allocate) and s.buffer.scope == "local"
    ]


def _adds(s: Store) -> bool:
    return any(isinstance(x, Load) and x.buffer is s.buffer for x in walk_prim(s.value))


def fetches(func: PrimFunc) -> int:
    """How many statements ask for something ahead."""
    return sum(
        isinstance(s, Evaluate) and isinstance(s.value, Intrinsic) and s.value.name == "prefetch"
        for s in walk_stmt(func.body)
    )
