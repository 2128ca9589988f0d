"""Formulas for each element: rows joined, parted where they repeat, their ends apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.transform.cases import floats
from unity.interpreter import run_prim_func
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.prim_expr import Binary, Load, PrimExpr, Select, SizeVar, imm
from unity.ir.stmt import For, IfThen, PrimFunc
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.passes import Context
from unity.transform.rules.default import default_rules, default_schedule, schedule

from .kernels import lowered, unscheduled

TARGET = replace(Context().target, vector_bits=256, threads=2)
N = dim("n")


def kernel(text: str) -> PrimFunc:
    return parse(f'n = dim("n")\nm = dim("m")\n\n@script.prim_func\n{text}').prim_funcs()["main"]


JOINED = kernel("""
def main(x: f32[Buffer, 2, 3, n, 5], y: f32[Buffer, 2, 3, n, 5]) -> None:
    for a, b, c, d in T.grid(2, 3, n, 5):
        with T.block("double"):
            va, vb, vc, vd = T.axis.remap("SSSS", a, b, c, d)
            y[va, vb, vc, vd] = x[va, vb, vc, vd] * 2.0
""")
TWO_SIZES = kernel("""
def main(x: f32[Buffer, n, m, 64], y: f32[Buffer, n, m, 64]) -> None:
    for a, b, c in T.grid(n, m, 64):
        with T.block("double"):
            va, vb, vc = T.axis.remap("SSS", a, b, c)
            y[va, vb, vc] = x[va, vb, vc] * 2.0
""")
SHORTER = kernel("""
def main(x: f32[Buffer, n - 3, m - 2, 16], y: f32[Buffer, n - 3, m - 2, 16]) -> None:
    for a, b, c in T.grid(n - 3, m - 2, 16):
        with T.block("double"):
            va, vb, vc = T.axis.remap("SSS", a, b, c)
            y[va, vb, vc] = x[va, vb, vc] * 2.0
""")
TILED = kernel("""
def main(x: f32[Buffer, 3, n], y: f32[Buffer, 6, n * 4]) -> None:
    for i, j in T.grid(6, n * 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = x[vi % 3, vj % n]
""")
TILED_KNOWN = kernel("""
def main(x: f32[Buffer, n, 20], y: f32[Buffer, n, 60]) -> None:
    for i, j in T.grid(n, 60):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = x[vi, vj % 20]
""")
REFLECTED = kernel("""
def main(x: f32[Buffer, 4, n], y: f32[Buffer, 4, n + 5]) -> None:
    for i, j in T.grid(4, n + 5):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = x[
                vi, T.select(vj < 3, 3 - vj, T.select(vj < n + 3, vj - 3, 2 * n + 1 - vj))
            ]
""")
REPEATED = kernel("""
def main(x: f32[Buffer, 4, n], y: f32[Buffer, 4, n + 5]) -> None:
    for i, j in T.grid(4, n + 5):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = x[vi, T.min(n - 1, T.max(0, vj - 2))]
""")
FILLED = kernel("""
def main(x: f32[Buffer, 4, n], y: f32[Buffer, 4, n + 5]) -> None:
    for i, j in T.grid(4, n + 5):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = T.select(2 <= vj and vj < n + 2, x[vi, vj - 2], 1.5)
""")
KERNELS = {
    "joined": JOINED,
    "two sizes": TWO_SIZES,
    "two sums of sizes": SHORTER,
    "tiled": TILED,
    "tiled, known": TILED_KNOWN,
    "reflected": REFLECTED,
    "repeated": REPEATED,
    "filled": FILLED,
}


@pytest.mark.parametrize("n", [4, 8, 37])
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_computed_stays(name: str, n: int) -> None:
    func = KERNELS[name]
    shapes = {"joined": (2, 3, n, 5), "tiled": (3, n), "tiled, known": (n, 20)}
    shapes |= {"two sizes": (n, 3, 64), "two sums of sizes": (n - 3, 1, 16)}
    (x,) = floats(n, shapes.get(name, (4, n)))
    sizes = {SizeVar("n"): n, SizeVar("m"): 3}
    made = schedule(func, TARGET)
    for after in (made, lowered(made, TARGET)):
        (want,), (got,) = (run_prim_func(f, [x], sizes) for f in (func, after))
        np.testing.assert_array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize("name", KERNELS)
def test_vectors_are_read_as_they_lie(name: str) -> None:
    """No lane of a vector is divided, compared or chosen for itself."""
    after = lowered(schedule(KERNELS[name], TARGET), TARGET)
    vectors = [e for e in _read(after) if any(i.dtype.lanes > 1 for i in e.indices)]
    assert vectors
    for e in (e for load in vectors for i in load.indices for e in walk_prim(i)):
        assert e.dtype.lanes == 1 or not isinstance(e, Select)
        assert e.dtype.lanes == 1 or not (isinstance(e, Binary) and e.op in _APART)


_APART = ("floordiv", "floormod", "truncdiv", "truncmod", "min", "max")


def _read(func: PrimFunc) -> list[Load]:
    exprs: list[PrimExpr] = [e for s in walk_stmt(func.body) for e in stmt_exprs(s)]
    return [e for top in exprs for e in walk_prim(top) if isinstance(e, Load)]


@pytest.mark.parametrize(
    ("op", "shape", "registers"),
    [
        ("exp", (16, 96), 4),
        ("erf", (4, N), 4),
        ("negative", (16, 96), 1),
        ("exp", (2, 9), 1),  # joined, less than four registers
    ],
)
def test_functions_take_several_registers_a_step(
    op: str, shape: tuple[Dim, ...], registers: int
) -> None:
    func, _ = unscheduled(op, (shape,), {})
    (rule,) = default_rules(func, TARGET)
    assert rule.rule == "elementwise"
    assert rule.decisions["lanes"] == registers * TARGET.vector_bits // 32


@pytest.mark.parametrize(
    ("op", "attrs", "shape", "registers"),
    [
        ("strided_slice", {"begin": (1,), "end": (81,), "axes": (1,)}, (16, 96), 2),
        ("flip", {"axis": 1}, (4, N), 2),
        ("tile", {"repeats": (1, 3)}, (16, 96), 2),
        ("tile", {"repeats": (1, 3)}, (16, 9), 1),  # less than two registers
        ("floor_divide", {}, (16, 96), 1),  # a choice, but of what is computed
    ],
)
def test_what_is_moved_takes_two_registers_a_step(
    op: str, attrs: Attrs, shape: tuple[Dim, ...], registers: int
) -> None:
    operands, dtype = ((shape, shape), INT64) if op == "floor_divide" else ((shape,), FLOAT32)
    func, _ = unscheduled(op, operands, attrs, dtype)
    (rule,) = default_rules(func, TARGET)
    assert rule.rule == "elementwise"
    assert rule.decisions["lanes"] == registers * TARGET.vector_bits // dtype.bits


def test_a_scalar_has_no_lanes() -> None:
    func, _ = unscheduled("where", ((), (), ()), {}, (BOOL, FLOAT32, FLOAT32))
    (rule,) = default_rules(func, TARGET)
    assert (rule.rule, rule.decisions["lanes"]) == ("elementwise", 1)
    after = schedule(func, TARGET)
    for chosen in (True, False):
        args = [np.array(chosen), np.array(2, np.float32), np.array(3, np.float32)]
        (got,) = run_prim_func(after, args, {})
        assert got == (2 if chosen else 3)


def test_ends_shorter_than_a_vector_have_shorter_ones() -> None:
    func = kernel("""
def main(a: f32[Buffer, 16, 8], b: f32[Buffer, 16, 88], y: f32[Buffer, 16, 96]) -> None:
    for i, j in T.grid(16, 96):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = T.exp(T.select(vj < 8, a[vi, T.min(vj, 7)], b[vi, T.max(vj - 8, 0)]))
""")
    (rule,) = default_rules(func, TARGET)
    assert rule.decisions["lanes"] > 8
    made = schedule(func, TARGET)
    after = lowered(made, TARGET)
    scalars = [s for s in walk_stmt(after.body) if isinstance(s, For) and s.extent == imm(8)]
    assert not scalars
    a, b = floats(0, (16, 8)), floats(1, (16, 88))
    (want,), (got,) = (run_prim_func(f, [*a, *b], {}) for f in (func, after))
    np.testing.assert_array_equal(got.reshape(want.shape), want)


PICKED = kernel("""
def main(x: f32[Buffer, n, 32], at: i64[Buffer, m, 32], y: f32[Buffer, m, 32]) -> None:
    for i, j in T.grid(m, 32):
        with T.block("pick"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = T.select(
                at[vi, vj] > 0,
                T.select(n > 0, x[T.min(T.max(at[vi, vj], 0), n - 1), vj], 0.0),
                1.0,
            )
""")


def test_whether_there_is_anything_to_pick_is_asked_before_the_loops() -> None:
    """Lanes then pick without a mask; where there is nothing, they are filled."""
    done = lowered(schedule(PICKED, TARGET), TARGET)
    (choice,) = (s for s in walk_stmt(done.body) if isinstance(s, IfThen))
    asked = [e for s in walk_stmt(choice.then) for top in stmt_exprs(s) for e in walk_prim(top)]
    loads = [e for e in asked if isinstance(e, Load)]
    assert loads
    assert all(x.predicate is None for x in loads)
    rng = np.random.default_rng(0)
    for n, m in ((0, 3), (5, 1), (5, 7)):
        (x,), at = floats(0, (n, 32)), rng.integers(-9, 9, (m, 32))
        (found,), (expected,) = (run_prim_func(f, [x, at], {}) for f in (done, PICKED))
        np.testing.assert_array_equal(found.reshape(m, 32), expected)


def test_a_version_that_knows_of_elements_asks_for_none() -> None:
    """Steps of a schedule see the version that they are in; rules look at the stage alone."""
    func = kernel("""
def main(
    x: f32[Buffer, n, 8], at: i64[Buffer, m, 8], y: f32[Buffer, m, 8], z: f32[Buffer, 8]
) -> None:
    if n <= 240:
        for j in range(8):
            with T.block("fill"):
                vj = T.axis.spatial(8, j)
                z[vj] = 1.0
    else:
        for j in range(8):
            with T.block("fill_1"):
                vj = T.axis.spatial(8, j)
                z[vj] = 2.0
        for i, j in T.grid(m, 8):
            with T.block("pick"):
                vi, vj = T.axis.remap("SS", i, j)
                y[vi, vj] = T.select(n > 0, x[T.min(T.max(at[vi, vj], 0), n - 1), vj], 0.0)
""")
    steps = [step.name for step in default_schedule(func, TARGET).trace]
    assert "unswitch" not in steps
    assert "vectorize" in steps
