"""HoistPlaces: what is loaded to tell an index is loaded before the loops that leave it alone."""

from __future__ import annotations

import numpy as np
import pytest

from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.ir.stmt import Let
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform import Context
from unity.transform.tensor import HoistPlaces

KERNEL = """
n = dim("n")
m = dim("m")

@script.prim_func
def main(
    a: f32[Buffer, 60], at: i64[Buffer, n], w: f32[Buffer, m], c: f32[Buffer, n * m]
) -> None:
    for i in range(n):
        for j in range(m):
            {body}
"""
HOISTED = {
    "a row": "c[i * m + j] = a[T.min(9, T.max(0, at[i])) * 6 + j]",
    "a row from the end": "c[i * m + j] = a[T.select(at[i] < 0, at[i] + 10, at[i]) * 6 + j]",
    "a row of those asked for": "c[i * m + j] = T.select(j < 3, a[at[i] * 6 + j], a[j])",
    "where to": "c[T.min(at[i], n - 1) * m + j] = a[j]",
}
LEFT = {
    "another in each iteration": "c[i * m + j] = a[at[T.min(j, n - 1)]]",
    "maybe beyond the end": "c[i * m + j] = T.select(i < n - 1, a[at[i + 1]], a[0])",
    "no index": "c[i * m + j] = T.cast('float32', at[i])",
}


def changed(body: str) -> tuple[IRModule, IRModule]:
    before = parse(KERNEL.format(body=body))
    return before, HoistPlaces()(before, Context())


def lets(module: IRModule) -> int:
    return sum(isinstance(s, Let) for s in walk_stmt(module.prim_funcs()["main"].body))


@pytest.mark.parametrize("m", [0, 1, 6])
@pytest.mark.parametrize("case", HOISTED | LEFT)
def test_what_is_computed_stays(case: str, m: int) -> None:
    before, after = changed((HOISTED | LEFT)[case])
    assert (lets(after) > 0) is (case in HOISTED)
    a, at = np.arange(60, dtype=np.float32), np.asarray([3, 0, 1, 3])
    results = []
    for module in (before, after):
        c = np.zeros(4 * m, np.float32)
        run_prim_func(module.prim_funcs()["main"], [a, at, np.zeros(m, np.float32), c])
        results.append(c)
    first, second = results
    np.testing.assert_array_equal(second, first)


@pytest.mark.parametrize("read", ["a[T.min(63, T.max(0, at[i]))]", "at[T.min(7, at[0])]"])
@pytest.mark.parametrize(("also", "hoisted"), [("c[0] = i", True), ("at[j] = j", False)])
def test_what_the_loop_stores_to_is_loaded_in_it(read: str, also: str, hoisted: bool) -> None:
    text = f"""
@script.prim_func
def main(at: i64[Buffer, 8], a: i64[Buffer, 64], c: i64[Buffer, 64]) -> None:
    for i in range(8):
        for j in range(8):
            c[i * 8 + j] = {read}
            {also}
"""
    assert (lets(HoistPlaces()(parse(text), Context())) > 0) is hoisted


def test_what_the_loop_has_for_itself_is_loaded_in_it() -> None:
    text = """
@script.prim_func
def main(a: i64[Buffer, 64], c: i64[Buffer, 8]) -> None:
    for i in range(8):
        at = T.alloc((1,), "int64")
        at[0] = i
        c[i] = a[T.min(63, T.max(0, at[0]))]
"""
    assert lets(HoistPlaces()(parse(text), Context())) == 0
