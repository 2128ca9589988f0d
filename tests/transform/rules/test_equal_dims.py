"""Tensors that broadcast at run time: laid out for equal dims and for others."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity.errors import UnityError
from unity.ir.prim_expr import Binary
from unity.ir.stmt import For, IfThen, PrimFunc, Stmt
from unity.ir.visit import stmt_loads, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.rules.default import default_schedule, schedule
from unity.transform.rules.equal_dims import where_dims_are_equal


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
    assert where_dims_are_equal(added(index).body) is None


def test_no_program_of_steps_is_both() -> None:
    with pytest.raises(UnityError, match="laid out twice"):
        default_schedule(added(STRETCHED), CPU)
