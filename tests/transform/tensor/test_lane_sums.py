"""Sums in lanes: joined in whole registers, and steps under a mask that all or no lanes take."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.prim_expr import Imm, Select
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.schedule import Schedule
from unity.transform.tensor import JoinLanes, lowering


def total(length: int) -> PrimFunc:
    return parse(f"""
@script.prim_func
def main(a: f32[Buffer, {length}], c: f32[Buffer, 1]) -> None:
    for i in range({length}):
        with T.block("sum"):
            vi = T.axis.reduce({length}, i)
            with T.init():
                c[0] = 0.0
            c[0] += a[vi]
""").prim_funcs()["main"]


@pytest.mark.parametrize(
    ("lanes", "folds"),
    [(8, [4, 2, 1]), (24, [4, 2, 1]), (12, [4, 4, 2, 1]), (7, [3, 2, 1])],
)
def test_whole_registers_are_joined_at_once_and_then_halves(lanes: int, folds: list[int]) -> None:
    before = parse(f"""
@script.prim_func
def main(a: f32[Buffer, {lanes}], c: f32[Buffer, 1]) -> None:
    for i in T.vectorized({lanes}):
        c[0] += a[i]
""").prim_funcs()["main"]
    joined = after(before, JoinLanes())
    _, *rest = [s for s in walk_stmt(joined.body) if isinstance(s, For)]
    assert [s.extent.value for s in rest if isinstance(s.extent, Imm)] == folds


@pytest.mark.parametrize(("length", "masked"), [(41, 1), (48, 0), (9, 1)])
def test_only_a_step_that_some_lanes_take_has_a_mask(length: int, masked: int) -> None:
    before = total(length)
    sch = Schedule(before)
    _, lane = sch.split(sch.get_loops("sum")[0], [None, 32])
    row = sch.add_unit_loop(sch.get_loops("sum")[0])
    part = sch.rfactor(lane, 0, row)
    step, lane = sch.get_loops(part)[1:]
    vector, lane = sch.split(lane, [None, 8])
    sch.decompose_reduction(part, step)
    sch.vectorize(lane)
    sch.unroll(vector)
    sch.unroll(step)
    low = after(sch.func, *lowering())
    exprs = [e for s in walk_stmt(low.body) for e in stmt_exprs(s)]
    assert sum(isinstance(x, Select) for e in exprs for x in walk_prim(e)) == masked
    assert_same(before, low, {})
