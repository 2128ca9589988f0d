"""VectorizeLoops picks from memory in all lanes, not under a mask, where all lanes may."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.prim_expr import Load, Select
from unity.ir.stmt import IfThen, Let, PrimFunc, Store
from unity.ir.visit import prim_loads, stmt_exprs, walk_stmt
from unity.script import parse
from unity.transform.tensor import FlattenBuffers, VectorizeLoops


def picking(held: str) -> PrimFunc:
    """Elements of a table at places that are read, where these are odd."""
    return parse(f"""
n = dim("n")

@script.prim_func
def main(table: f32[Buffer, n], at: i64[Buffer, 8], c: f32[Buffer, 8]) -> None:
    for i in T.vectorized(8):
        c[i] = T.select(at[i] % 2 == 1, {held}, 0.0)
""").prim_funcs()["main"]


def masked(func: PrimFunc) -> list[Load]:
    exprs = [e for s in walk_stmt(func.body) for e in stmt_exprs(s)]
    return [x for e in exprs for x in prim_loads(e) if x.predicate is not None]


SAFE = "T.select(n > 0, table[T.min(T.max(at[i], 0), n - 1)], 0.0)"


def test_a_place_that_is_surely_inside_is_read_in_every_lane() -> None:
    func = picking(SAFE)
    done = after(after(func, FlattenBuffers()), VectorizeLoops())
    assert masked(done) == []
    lets = [s for s in walk_stmt(done.body) if isinstance(s, Let)]
    assert [isinstance(s.value, Select) for s in lets] == [True]  # asks once whether there is any
    (store,) = (s for s in walk_stmt(done.body) if isinstance(s, Store))
    assert lets[0].body is store
    for n in (0, 1, 5):
        assert_same(func, done, {"n": n})


@pytest.mark.parametrize(
    "held",
    [
        "table[T.min(T.max(at[i], 0), n - 1)]",
        "T.select(n > 0, table[T.max(at[i], 0)], 0.0)",
        "table[at[i]]",
    ],
    ids=["of nothing", "past the end", "anywhere"],
)
def test_a_place_that_may_lie_outside_is_read_where_it_is_wanted(held: str) -> None:
    func = picking(held)
    done = after(after(func, FlattenBuffers()), VectorizeLoops())
    assert len(masked(done)) == 1


def test_a_condition_of_all_lanes_tells_what_lies_inside() -> None:
    """It is asked once, and what is left of the mask is that of lanes."""
    func = parse("""
n = dim("n")
m = dim("m")

@script.prim_func
def main(
    table: f32[Buffer, n], at: i64[Buffer, 16], few: f32[Buffer, m], c: f32[Buffer, 16]
) -> None:
    for i in range(16):
        c[i] = 2.0
    for i in T.vectorized(8):
        if n > 0 and i < m:
            c[i] = table[T.min(T.max(at[i], 0), n - 1)]
    if n > 0:
        for i in T.vectorized(8):
            c[i + 8] = T.select(at[i] > 0, table[T.min(T.max(at[i], 0), n - 1)], 0.0)
""").prim_funcs()["main"]
    done = after(after(func, FlattenBuffers()), VectorizeLoops())
    asked = [s.condition for s in walk_stmt(done.body) if isinstance(s, IfThen)]
    assert len(asked) == 2
    assert all(e.dtype.lanes == 1 for e in asked)
    assert masked(done) == []
    for n, m in ((0, 3), (5, 3), (5, 0), (5, 8)):
        assert_same(func, done, {"n": n, "m": m})
