"""MultipleAccumulators: copies of sums, whatever steps a loop takes and where it begins."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.stmt import Allocate
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.tensor import MultipleAccumulators, lowering


@pytest.mark.parametrize(
    ("begin", "steps", "copies"), [(0, 4, 4), (1, 2, 2), (2, 4, 4), (3, 1, 1), (1, 3, 3), (5, 6, 3)]
)
def test_steps_may_begin_anywhere(begin: int, steps: int, copies: int) -> None:
    """Those of a pixel at a border do: it doesn't see the first taps."""
    func = parse(f"""
@script.prim_func
def main(a: f32[Buffer, 64], b: f32[Buffer, 4, 16], c: f32[Buffer, 1]) -> None:
    t = T.alloc((1,), "float32", scope="local")
    t[0] = 0.0
    for k in range(4):
        for j in T.unroll({begin}, {begin + steps}, attrs={{"accumulators": 4}}):
            with T.block("sum"):
                vi = T.axis.spatial(1, 0)
                vk = T.axis.reduce(4, k)
                vj = T.axis.reduce(16, j)
                t[vi] += a[vk * 16 + vj] * b[vk, vj]
    c[0] = t[0]
""").prim_funcs()["main"]
    done = after(func, MultipleAccumulators())
    assert sum(isinstance(s, Allocate) for s in walk_stmt(done.body)) == copies
    assert_same(func, done, {})
    assert_same(func, after(func, *lowering()), {})
