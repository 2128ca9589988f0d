"""Blocks over other axes where one has a fixed number of points, or none at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unity.interpreter import run_prim_func
from unity.ir.prim_expr import PrimExpr
from unity.script import parse
from unity.transform.schedule.schedule import Schedule

Map = Callable[[PrimExpr, PrimExpr], tuple[PrimExpr, ...]]
TWO_OR_NONE = ("T.max(0, T.min(2, (n - 1) * 2))", lambda n: max(0, min(2, (n - 1) * 2)))
BEHIND = ("T.max(0, n - 3)", lambda n: max(0, n - 3))


@pytest.mark.parametrize(
    ("rows", "index_map"),
    [
        (TWO_OR_NONE, lambda i, j: (i // 2, i % 2, j)),
        (TWO_OR_NONE, lambda i, j: (j, i)),
        (BEHIND, lambda i, j: (j, i)),
    ],
)
def test_nothing_is_done_where_an_axis_is_empty(
    rows: tuple[str, Callable[[int], int]], index_map: Map
) -> None:
    """What an extent is inside the loops, which run, isn't what it is outside of them."""
    extent, count = rows
    func = parse(f"""
n = dim("n")
m = dim("m")
@script.prim_func
def stored(x: f32[Buffer, n, m], y: f32[Buffer, 8, 8]) -> None:
    for i, j in T.grid({extent}, m):
        with T.block("ones"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = 1.0
""").prim_funcs()["stored"]
    sch = Schedule(func)
    sch.transform_block_layout("ones", index_map)
    for n in range(7):
        for m in (0, 3, 5):
            x, y = np.zeros((n, m), np.float32), np.zeros((8, 8), np.float32)
            run_prim_func(sch.func, [x, y])
            assert y.sum() == y[: count(n), :m].sum() == count(n) * m
