"""Tensors that broadcast at run time: laid out for equal dims and for others."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Binary
from unity.ir.stmt import For, IfThen, PrimFunc, Stmt
from unity.ir.visit import stmt_loads, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.rules.default import default_rules, default_schedule, schedule
from unity.transform.rules.equal_dims import when_dims_are_equal
from unity.transform.schedule import Schedule


def added(index: str) -> PrimFunc:
    return parse(f"""
n = dim("n", min=0)
m = dim("m", min=0)
r = dim("r", min=0)

@script.prim_func
def main(a: f32[Buffer, 3, n], b: f32[Buffer, 3, m], c: f32[Buffer, 3, r]) -> None:
    for i, j in T.grid(3, r):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = (
                T.select(n > 0, a[vi, {index.format("n")}], 0.0)
                + T.select(m > 0, b[vi, {index.format("m")}], 0.0)
            )
""").prim_funcs()["main"]


STRETCHED = "T.min(vj, {} - 1)"


def clamps(s: Stmt) -> bool:
    """Whether an index is cut at an extent."""
    indices = (i for each in walk_stmt(s) for x in stmt_loads(each) for i in x.indices)
    return any(isinstance(x, Binary) and x.op == "min" for i in indices for x in walk_prim(i))


def test_equal_dims_have_loops_of_their_own() -> None:
    done = schedule(added(STRETCHED), CPU).body
    assert isinstance(done, IfThen)
    assert done.orelse is not None
    assert not clamps(done.then)
    assert clamps(done.orelse)
    assert any(isinstance(s, For) and s.kind == "vectorized" for s in walk_stmt(done.then))


@pytest.mark.parametrize(
    ("n", "m", "r"), [(37, 37, 37), (1, 9, 9), (9, 1, 9), (1, 1, 1), (0, 0, 0)]
)
def test_values_stay(n: int, m: int, r: int) -> None:
    before = added(STRETCHED)
    done = schedule(before, CPU)
    for made in (done, lowered(done, CPU)):
        assert_same(before, made, {"n": n, "m": m, "r": r})


@pytest.mark.parametrize(
    "index", ["T.min(vj, {} - 2)", "T.min(vj + 1, {} - 1)", "T.min(vi, {} - 1)"]
)
def test_other_clamps_are_left_alone(index: str) -> None:
    assert when_dims_are_equal(added(index).body) is None


def test_both_are_a_program_of_steps() -> None:
    before = added(STRETCHED)
    sch = default_schedule(before, CPU)
    assert sch.trace.instructions[0].args == ("n == r and m == r",)
    assert [r.blocks for r in default_rules(before, CPU)] == [("add",), ("add_1",)]
    again = Schedule(before, CPU).replay(sch.trace)
    assert first_difference(again.func, sch.func) is None
    for n, m, r in [(19, 19, 19), (1, 9, 9), (0, 0, 0)]:
        assert_same(before, sch.func, {"n": n, "m": m, "r": r})


SUMMED = """
n = dim("n", min=0)
r = dim("r", min=0)

@script.prim_func
def main(a: f32[Buffer, 3, n], b: f32[Buffer, 3, r], c: f32[Buffer, 3]) -> None:
    t = T.alloc((3, r), "float32")
    for i, j in T.grid(3, r):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = T.select(n > 0, a[vi, T.min(vj, n - 1)], 0.0) + b[vi, vj]
    for i, j in T.grid(3, r):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", i, j)
            with T.init():
                c[vi] = 0.0
            c[vi] += t[vi, vj]
"""


def test_sums_take_steps_in_each_version() -> None:
    before = parse(SUMMED).prim_funcs()["main"]
    sch = default_schedule(before, CPU)
    for done in (sch.func, schedule(before, CPU)):
        assert isinstance(done.body, IfThen)
        low = lowered(done, CPU)
        for n, r in [(5, 5), (1, 4), (0, 0)]:
            assert_same(before, low, {"n": n, "r": r})


def test_dims_that_are_never_equal_have_one_version() -> None:
    text = SUMMED.replace('dim("n", min=0)', 'dim("n", min=0, max=3)')
    func = parse(text.replace('dim("r", min=0)', 'dim("r", min=4)')).prim_funcs()["main"]
    assert when_dims_are_equal(func.body) is None
