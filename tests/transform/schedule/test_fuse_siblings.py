"""fuse_siblings: several stages in one pass over the rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import build
from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.stmt import For, PrimFunc
from unity.script import parse
from unity.transform.blocks.tree import all_blocks
from unity.transform.schedule import Schedule, Trace
from unity.transform.tensor import lowering


def parsed(text: str) -> PrimFunc:
    return parse(text).prim_funcs()["main"]


SOFTMAX = """
n = dim("n")
@script.prim_func
def main(x: f32[Buffer, n, 20], y: f32[Buffer, n, 20]) -> None:
    m = T.alloc((n,), "float32")
    e = T.alloc((n, 20), "float32")
    s = T.alloc((n,), "float32")
    for i, j in T.grid(n, 20):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", i, j)
            with T.init():
                m[vi] = T.imm("float32", "-inf")
            m[vi] = T.max(m[vi], x[vi, vj])
    for i, j in T.grid(n, 20):
        with T.block("exp"):
            vi, vj = T.axis.remap("SS", i, j)
            e[vi, vj] = T.exp(x[vi, vj] - m[vi])
    for i, j in T.grid(n, 20):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", i, j)
            with T.init():
                s[vi] = 0.0
            s[vi] += e[vi, vj]
    for i, j in T.grid(n, 20):
        with T.block("share"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = e[vi, vj] / s[vi]
"""


def softmax_by_rows() -> Schedule:
    """A row at a time: exponentials are summed up as they are made."""
    sch = Schedule(parsed(SOFTMAX))
    names = ("largest", "exp", "sum", "share")
    row = sch.fuse_siblings(*(sch.get_loops(name)[0] for name in names))
    column = sch.fuse_siblings(sch.get_loops("exp")[1], sch.get_loops("sum")[1])
    for block in ("largest", "exp", "sum"):
        sch.store_at(block, 0, row)
    sch.parallel(row)
    assert sch.get_loops("sum") == (row, column)
    return sch


def test_rows_of_a_softmax_in_one_pass() -> None:
    before, sch = parsed(SOFTMAX), softmax_by_rows()
    assert isinstance(sch.func.body, For)
    again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    for n in (0, 1, 3):
        assert_same(before, sch.func, {"n": n})
    kernel = build({"softmax": after(sch.func, *lowering())})["softmax"]
    x = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)
    y = np.zeros_like(x)
    assert kernel([x, y], {"n": 3}) == 0
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, want / want.sum(1, keepdims=True), 1e-5, 1e-6)


def test_two_sums_over_one_loop() -> None:
    """Reductions that know nothing of one another, and what only reads behind."""
    before = parsed("""
@script.prim_func
def main(x: f32[Buffer, 9], s: f32[Buffer, 1], q: f32[Buffer, 1], y: f32[Buffer, 9]) -> None:
    for i in range(9):
        with T.block("sum"):
            vi = T.axis.reduce(9, i)
            with T.init():
                s[0] = 0.0
            s[0] += x[vi]
    for i in range(9):
        with T.block("squares"):
            vi = T.axis.reduce(9, i)
            with T.init():
                q[0] = 0.0
            q[0] += x[vi] * x[vi]
    for i in range(9):
        with T.block("copy"):
            vi = T.axis.spatial(9, i)
            y[vi] = x[8 - vi]
""")
    sch = Schedule(before)
    sch.fuse_siblings(*(sch.get_loops(name)[0] for name in ("sum", "squares", "copy")))
    assert_same(before, sch.func, {})
    assert_same(before, after(sch.func, *lowering()), {})


def test_what_a_later_loop_needs_comes_first() -> None:
    """Sums that begin between two loops begin before the one loop."""
    before = parsed("""
n = dim("n")
@script.prim_func
def main(x: f32[Buffer, n], y: f32[Buffer, n], s: f32[Buffer, 1]) -> None:
    for i in range(n):
        with T.block("copy"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[vi] * 2.0
    for i in range(n):
        with T.block("sum"):
            vi = T.axis.reduce(n, i)
            with T.init():
                s[0] = 0.0
            s[0] += y[vi]
""")
    sch = Schedule(before)
    loops = sch.get_loops("copy")[0], sch.get_loops("sum")[0]
    with pytest.raises(UnityError, match="may be empty"):
        sch.fuse_siblings(*loops)
    sch.decompose_reduction("sum", loops[1])
    sch.fuse_siblings(*loops)
    assert [b.name for b in all_blocks(sch.func.body)] == ["sum_init", "copy", "sum"]
    for n in (0, 1, 5):
        assert_same(before, sch.func, {"n": n})


def test_what_earlier_iterations_made() -> None:
    """A window behind: legal in one loop, whose iterations then come in order."""
    before = parsed("""
@script.prim_func
def main(x: f32[Buffer, 9], y: f32[Buffer, 9]) -> None:
    t = T.alloc((11,), "float32")
    for i in range(2):
        with T.block("begin"):
            vi = T.axis.spatial(11, i)
            t[vi] = 0.0
    for i in range(9):
        with T.block("made"):
            vi = T.axis.spatial(9, i)
            t[vi + 2] = x[vi]
    for i in range(9):
        with T.block("window"):
            vi = T.axis.spatial(9, i)
            y[vi] = t[vi] + t[vi + 1] + t[vi + 2]
""")
    sch = Schedule(before)
    sch.fuse_siblings(sch.get_loops("made")[0], sch.get_loops("window")[0])
    assert_same(before, sch.func, {})


def test_others_between_and_temporaries_around_some() -> None:
    """Partial sums have a temporary around their loop, and what joins them behind it."""
    before = parsed("""
@script.prim_func
def main(x: f32[Buffer, 3, 8], s: f32[Buffer, 3], m: f32[Buffer, 3], y: f32[Buffer, 3, 8]) -> None:
    for i in range(3):
        for j in range(8):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", i, j)
                with T.init():
                    s[vi] = 0.0
                s[vi] += x[vi, vj]
        for j in range(8):
            with T.block("largest"):
                vi, vj = T.axis.remap("SR", i, j)
                with T.init():
                    m[vi] = 0.0
                m[vi] = T.max(m[vi], x[vi, vj])
        for j in range(8):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", i, j)
                y[vi, vj] = x[vi, 7 - vj] + s[vi]
""")
    sch = Schedule(before)
    row = sch.get_loops("sum")[0]
    parts = []
    for name in ("sum", "largest", "copy"):
        _, lane = sch.split(sch.get_loops(name)[1], [None, 4])
        parts.append(sch.rfactor(lane, 0, row) if name != "copy" else sch.get_block(name))
    steps = [sch.get_loops(part)[1] for part in parts]
    step = sch.fuse_siblings(*steps[:2])
    assert sch.get_loops(parts[1])[1] is step
    assert_same(before, sch.func, {})
    with pytest.raises(UnityError, match="what stands before 'j_0' and it both touch s"):
        sch.fuse_siblings(step, steps[2])


def test_loops_of_one_iteration() -> None:
    """No later one needs what an earlier one makes."""
    before = parsed("""
@script.prim_func
def main(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    t = T.alloc((8,), "float32")
    for o, i in T.grid(1, 8):
        with T.block("first"):
            vi = T.axis.spatial(8, i)
            t[vi] = x[vi]
    for o, i in T.grid(1, 8):
        with T.block("second"):
            vi = T.axis.spatial(8, i)
            y[vi] = t[7 - vi]
""")
    sch = Schedule(before)
    sch.fuse_siblings(*(sch.get_loops(name)[0] for name in ("first", "second")))
    assert_same(before, sch.func, {})


def test_loops_in_one_another_are_refused() -> None:
    sch = Schedule(parsed(SOFTMAX))
    row, column = sch.get_loops("exp")
    for pair in ((row, column), (column, row)):
        with pytest.raises(UnityError, match="they do not stand one behind another"):
            sch.fuse_siblings(*pair)
