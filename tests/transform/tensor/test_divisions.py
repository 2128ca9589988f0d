"""Divisions under a condition: lanes for which it does not hold divide by nothing."""

from __future__ import annotations

from textwrap import indent

import numpy as np

import unity
from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Imm, Load
from unity.ir.stmt import For, Store
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform import Context
from unity.transform.tensor import HoistDivisions, MaskLanes, SimplifyTir, VectorizeLoops

BODIES = {
    "by what is loaded": 'y[i] = T.select(d[i] != 0, a[i] // d[i], T.imm("int64", 0))',
    "by a variable": """
v = d[i]
y[i] = T.select(v != 0, a[i] // v, T.imm("int64", 0))""",
    "by an index": 'y[i] = T.select(i != 3, 7 // (i - 3), T.imm("int64", 5))',
    "in the other branch": 'y[i] = T.select(i == 3, T.imm("int64", 5), 7 % (i - 3))',
    "in a statement": """
if i % 3 != 0:
    y[i] = a[i] // (i % 3)
else:
    y[i] = 0""",
    "of a variable in a statement": """
if d[i] > 0:
    v = d[i]
    w = a[i] // v
    y[i] = w
else:
    y[i] = 1""",
    "in a condition": """
y[i] = T.select(
    d[i] != 0,
    T.select(a[i] % d[i] == 0, T.imm("int64", 1), T.imm("int64", 2)),
    T.imm("int64", 0),
)""",
    "in an index": 'y[i] = T.select(d[i] != 0, a[8 // d[i] % 8], T.imm("int64", 0))',
    "truncating": 'y[i] = T.select(d[i] != 0, T.truncdiv(a[i], d[i]), T.imm("int64", 0))',
}
A, D = np.arange(8) + 5, np.array([0, 1, -2, 3, 0, 0, 4, 5])


def _programs() -> str:
    parts: list[str] = []
    for k, body in enumerate(BODIES.values()):
        parts += [
            "@script.prim_func",
            f"def k{k}(a: i64[Buffer, 8], d: i64[Buffer, 8], y: i64[Buffer, 8]) -> None:",
            "    for i in T.vectorized(8):",
            indent(body.strip(), "        "),
            "@script.function",
            f"def m{k}(a: i64[Tensor, 8], d: i64[Tensor, 8]) -> i64[Tensor, 8]:",
            f"    y = R.call_tir(k{k}, (a, d), out=i64[Tensor, 8])",
            "    return y",
        ]
    return "\n".join(parts)


def test_lanes_that_are_off_divide_by_nothing() -> None:
    module = parse(_programs())
    vectors = VectorizeLoops()(SimplifyTir()(module, Context()), Context())
    executable = unity.compile(module)
    for k, name in enumerate(BODIES):
        want, got = np.zeros(8, np.int64), np.zeros(8, np.int64)
        run_prim_func(module.prim_funcs()[f"k{k}"], [A, D, want])
        lowered = vectors.prim_funcs()[f"k{k}"]
        run_prim_func(lowered, [A, D, got])
        np.testing.assert_array_equal(got, want, name)
        np.testing.assert_array_equal(executable[f"m{k}"](A, D), want, name)


def test_lanes_past_an_end_are_not_made_to_divide() -> None:
    module = parse("""
@script.prim_func
def main(a: i64[Buffer, 5], d: i64[Buffer, 5], y: i64[Buffer, 5]) -> None:
    t = T.alloc((8,), "int64", scope="local")
    for j in T.vectorized(8):
        with T.block("divide"):
            vj = T.axis.spatial(5, j)
            T.where(j < 5)
            t[j] = a[vj] // d[vj]
    for j in T.vectorized(8):
        with T.block("copy"):
            vj = T.axis.spatial(5, j)
            T.where(j < 5)
            y[vj] = t[j]
""")
    assert MaskLanes()(module, Context()) is module


def test_what_is_loaded_where_it_is_stored_needs_no_mask_of_a_choice() -> None:
    """Buffers of unknown size as large as the one that is stored to, at the same place."""
    func = parse("""
n = dim("n")

@script.prim_func
def main(a: i64[Buffer, n], d: i64[Buffer, n], e: i64[Buffer, 2], y: i64[Buffer, n]) -> None:
    for o in range(n // 8):
        for i in T.vectorized(8):
            y[o * 8 + i] = T.select(d[o * 8 + i] > 0, a[o * 8 + i], e[o * 8 + i])
""").prim_funcs()["main"]
    module = VectorizeLoops()(IRModule({"main": func}), Context())
    (store,) = [s for s in walk_stmt(module.prim_funcs()["main"].body) if isinstance(s, Store)]
    loads = {x.buffer.name: x for x in walk_prim(store.value) if isinstance(x, Load)}
    assert loads["a"].predicate is None
    assert loads["e"].predicate is not None


def test_tasks_divide_once_by_what_may_be_zero_where_there_are_none() -> None:
    module = parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 6], y: f32[Buffer, n, 6]) -> None:
    for task in T.parallel((n + 3) // 4 * 3):
        for i, j in T.grid(4, 2):
            if task % ((n + 3) // 4) * 4 + i < n:
                y[task % ((n + 3) // 4) * 4 + i, task // ((n + 3) // 4) * 2 + j] = a[
                    task % ((n + 3) // 4) * 4 + i, task // ((n + 3) // 4) * 2 + j] + 1.0
""")
    func = HoistDivisions()(module, Context()).prim_funcs()["main"]
    loops = [s for s in walk_stmt(func.body) if isinstance(s, For) and s.kind == "serial"]
    inside = [e for x in loops for s in walk_stmt(x) for e in stmt_exprs(s)]
    assert loops
    assert not [
        e
        for x in inside
        for e in walk_prim(x)
        if isinstance(e, Binary) and e.op in ("floordiv", "floormod") and not isinstance(e.b, Imm)
    ]
    for n in (0, 1, 7, 8):
        a = np.arange(n * 6, dtype=np.float32).reshape(n, 6)
        y = np.zeros_like(a)
        run_prim_func(func, [a, y])
        np.testing.assert_array_equal(y, a + 1)
