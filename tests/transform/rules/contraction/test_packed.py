"""Products over panels by steps of a schedule: tiles that use the registers, what is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transform.tensor.kernels import after, assert_same
from unity.arith.polynomial import from_expr
from unity.ir.dims import Dim, dim, floordiv
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Imm, PrimVar, imm
from unity.ir.stmt import Allocate, Evaluate, For, IfThen, PrimFunc, Store
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.script import parse
from unity.transform.blocks.nest import Axis
from unity.transform.passes import Context
from unity.transform.roles.panel_columns import row_of
from unity.transform.rules.default import schedule
from unity.transform.schedule import AppliedRule, Schedule, default_rules, default_schedule
from unity.transform.tensor import CompactBuffers, OpenBlocks, lowering

from ..kernels import cell, unscheduled

WIDE = replace(Context().target, vector_bits=512, vector_registers=32)
SHORT = replace(WIDE, vector_bits=256, vector_registers=16)
SHORTEST = replace(WIDE, vector_bits=128, vector_registers=16)
TARGETS = [WIDE, SHORT, SHORTEST]


def kernel(x: tuple[Dim, ...], w: tuple[Dim, ...], columns: int) -> PrimFunc:
    """The unscheduled kernel of matmul_packed."""
    return unscheduled("matmul_packed", (x, w), {"columns": columns})[0]


def packed(rows: int, target: Target, depth: int = 64, panels: int = 4) -> AppliedRule:
    """The rule on a product whose panels are as wide as a target's tiles."""
    width = (4 if target.vector_registers == 32 else 2) * target.vector_bits // 32
    func = kernel((rows, depth), (panels, depth, width), panels * width)
    (rule,) = default_rules(func, target)
    assert rule.rule == "packed"
    return rule


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 2, 4, 128])
def test_sums_fit_the_registers_and_keep_them_busy(target: Target, rows: int) -> None:
    vectors = 4 if target.vector_registers == 32 else 2
    how = packed(rows, target).decisions
    assert how["rows"] * vectors + vectors + 1 <= target.vector_registers
    assert how["accumulators"] == 8
    if rows == 128:
        assert how["rows"] == (target.vector_registers - 1 - vectors) // vectors


@pytest.mark.parametrize(("rows", "asks"), [(3, 0), (4, 1), (12, 1)])
def test_weights_from_afar_are_asked_for(rows: int, asks: int) -> None:
    func = kernel((rows, 64), (3, 64, 64), 192)
    little = replace(WIDE, l2_bytes=64 << 10)
    steps = [step.name for step in default_schedule(func, little).trace]
    assert steps.count("prefetch") == asks
    assert ("fuse_siblings" in steps) is (rows == 12)  # a share for each of two tiles
    assert "prefetch" not in {step.name for step in default_schedule(func, WIDE).trace}


def test_steps_are_taken_in_runs_where_two_panels_fill_the_cache() -> None:
    small = replace(SHORTEST, l2_bytes=4 << 10)
    how = packed(12, small, depth=128).decisions
    assert how["runs"] > 1
    assert packed(12, SHORTEST, depth=128).decisions["runs"] == 1
    func = kernel((12, 128), (2, 128, 8), 13)
    assert_same(func, default_schedule(func, small).func, {})


EPILOGUE = """
@script.prim_func
def main(
    x: f32[Buffer, {m}, 32], w: f32[Buffer, 2, 32, 16], b: f32[Buffer, 32], y: f32[Buffer, {m}, 32]
) -> None:
    t = T.alloc(({m}, 32), "float32")
    for i, j, k in T.grid({m}, 32, 32):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                t[vi, vj] = 0.0
            t[vi, vj] += x[vi, vk] * w[vj // 16, vk, vj % 16]
    for i, j in T.grid({m}, 32):
        with T.block("swish"):
            vi, vj = T.axis.remap("SS", i, j)
            z = T.let(t[vi, vj] + b[vj])
            y[vi, vj] = z * T.sigmoid(z)
"""


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_a_product_with_an_epilogue_is_a_program(rows: int) -> None:
    func = parse(EPILOGUE.format(m=rows)).prim_funcs()["main"]
    sch = default_schedule(func, SHORT)
    again = Schedule(func, SHORT).replay(sch.trace)
    assert first_difference(again.func, sch.func) is None
    assert_same(func, sch.func, {})


ROWS, DEPTH = dim("rows"), dim("depth")


@pytest.mark.rotated(1)
@settings(max_examples=3)
@given(
    rows=st.integers(0, 16),
    known=st.booleans(),
    depth=st.sampled_from([3, 6, 12]),
    count=st.integers(1, 2),
    missing=st.integers(0, 15),
    target=st.sampled_from([SHORT, SHORTEST]),
    threads=st.integers(1, 3),
    near=st.booleans(),
    lowers=st.booleans(),
)
def test_laid_out_it_computes_the_same(
    rows: int,
    known: bool,
    depth: int,
    count: int,
    missing: int,
    target: Target,
    threads: int,
    near: bool,
    lowers: bool,
) -> None:
    width = target.vector_bits // 32
    columns = max(1, count * width - missing)
    func = kernel((rows if known else ROWS, depth), (-(-columns // width), depth, width), columns)
    far = target.l2_bytes if near else depth * width * 4 * 6
    here = replace(target, threads=threads, l2_bytes=far)
    done = schedule(func, here)
    assert_same(func, after(done, *lowering()) if lowers else done, {"rows": rows})


def test_depth_may_be_unknown() -> None:
    func = kernel((ROWS, DEPTH), (2, DEPTH, 8), 13)
    sch = default_schedule(func, SHORTEST)
    low = after(sch.kernel(), *lowering())
    for sizes in ({"rows": 7, "depth": 6}, {"rows": 1, "depth": 1}):
        assert_same(func, low, sizes)


@pytest.mark.parametrize("rows", [13, ROWS])
def test_what_is_left_of_rows_is_one_tile(rows: Dim) -> None:
    func = kernel((rows, 8), (1, 8, 16), 16)
    done = after(default_schedule(func, SHORT).kernel(), *lowering()[:4])
    tiles = [s.body for s in walk_stmt(done.body) if isinstance(s, For) and s.kind == "serial"]
    heights = {s.extent for t in tiles for s in walk_stmt(t) if isinstance(s, For)}
    left = {s.condition for s in walk_stmt(done.body) if isinstance(s, IfThen)}
    assert heights >= {imm(n) for n in ((5, 3) if rows == 13 else (6, 5, 4, 3))}
    assert len(left) == (0 if rows == 13 else 5)


@pytest.mark.parametrize("rows", [ROWS, ROWS - 3, floordiv(ROWS + 128, 160) - 3])
def test_rows_of_several_unknown_batches_keep_sums_in_registers(rows: Dim) -> None:
    """Also where how many there are is a sum of products of sizes."""
    func = kernel((dim("batch"), rows, 8), (2, 8, 64), 100)
    done = after(default_schedule(func, WIDE).kernel(), OpenBlocks(), CompactBuffers())
    sums = [s.buffer for s in walk_stmt(done.body) if isinstance(s, Allocate)]
    assert sums
    assert all(isinstance(n, Imm) for b in sums for n in b.shape)


@pytest.mark.parametrize("rows", [ROWS, ROWS - 3, floordiv(ROWS + 128, 160) - 3])
def test_the_last_panel_of_several_unknown_batches_has_its_own_columns(rows: Dim) -> None:
    """And no lanes that a mask turns off in each step: which panel it is is a number there."""
    func = kernel((dim("batch"), rows, 512), (3, 512, 64), 144)
    low = after(default_schedule(func, replace(WIDE, threads=1)).kernel(), *lowering())
    loops = [s for s in walk_stmt(low.body) if isinstance(s, For) and s.kind == "serial"]
    stores = [s for loop in loops for s in walk_stmt(loop) if isinstance(s, Store)]
    assert stores
    assert all(s.predicate is None for s in stores)


def test_tiles_of_few_sums_have_them_several_times() -> None:
    func = kernel((ROWS, 64), (1, 64, 16), 16)
    done = after(default_schedule(func, SHORT).kernel(), *lowering()[:5])
    tails = [s.then for s in walk_stmt(done.body) if isinstance(s, IfThen)]
    held = [sum(isinstance(x, Allocate) for x in walk_stmt(t)) for t in tails]
    assert held == [4, 2, 2, 1, 1]  # of 2, 4, 6, 8 and 10 registers


def test_tiles_of_unknown_rows_ask_without_conditions() -> None:
    """A step neither counts lines nor branches: that cost as much as what is asked for gains."""
    func = kernel((ROWS, 64), (3, 64, 64), 192)
    sch = default_schedule(func, replace(WIDE, l2_bytes=64 << 10))
    asking = [step.args[6:9] for step in sch.trace if step.name == "prefetch"]
    assert asking == [(None, True, 2)]
    low = after(sch.kernel(), *lowering())
    loops = [s for s in walk_stmt(low.body) if isinstance(s, For)]
    asking_ones = [s for s in loops if any(isinstance(x, Evaluate) for x in walk_stmt(s.body))]
    innermost = [s for s in asking_ones if not any(isinstance(x, For) for x in walk_stmt(s.body))]
    assert innermost
    assert all(isinstance(s.extent, Imm) for s in innermost)
    assert not any(isinstance(x, IfThen) for x in walk_stmt(innermost[0].body))  # a whole tile


@pytest.mark.rotated(1)
@pytest.mark.parametrize("depth", [12, 10])
def test_tiles_of_unknown_rows_ask_for_intervals(depth: int) -> None:
    """Each for one of its own, some of it before each few steps."""
    func = kernel((ROWS, depth), (3, depth, 16), 45)
    target = replace(SHORT, l2_bytes=1 << 10)
    sch = default_schedule(func, target)
    assert {"prefetch", "fuse_siblings"} <= {step.name for step in sch.trace}
    for rows in (0, 3, 4, 31):
        assert_same(func, after(sch.kernel(), *lowering()), {"rows": rows})


@pytest.mark.parametrize(("depth", "runs"), [(64, 1), (256, 1), (512, 4), (509, 1)])
def test_unknown_rows_take_long_panels_in_runs(depth: int, runs: int) -> None:
    func = kernel((ROWS, depth), (3, depth, 16), 48)
    (rule,) = default_rules(func, replace(SHORT, l2_bytes=128 << 10))
    assert rule.decisions["runs"] == runs


def test_no_rows_are_no_work_for_several_threads() -> None:
    func = kernel((0, 3), (2, 3, 64), 100)
    assert_same(func, schedule(func, replace(WIDE, threads=2)), {})


@pytest.mark.parametrize(
    ("x", "w"),
    [
        ((2, 3, 5), (2, 2, 5, 8)),
        ((1, 1, 8), (2, 8, 8)),
        ((1, 4, 8), (2, 8, 8)),
        ((2, ROWS, 5), (2, 2, 5, 8)),
    ],
    ids=["a batch", "one row of rank 3", "one matrix of a batch", "a batch of unknown rows"],
)
def test_axes_of_one_point_and_batches(x: tuple[Dim, ...], w: tuple[int, ...]) -> None:
    func, _ = unscheduled("matmul_packed", (x, w), {"columns": 13})
    sch = default_schedule(func, SHORTEST)
    assert default_rules(func, SHORTEST)[0].rule == "packed"
    assert_same(func, sch.func, {"rows": 3})


@pytest.mark.parametrize(("rows", "units"), [(1, 8), (5, 6), ("n", 4)])
def test_what_reads_chunks_point_by_point_stands_in_their_tile(rows: int | str, units: int) -> None:
    func = cell(rows, units)
    (rule,) = default_rules(func, SHORTEST)
    assert rule.rule == "packed_read"
    sch = default_schedule(func, SHORTEST)
    held = [s.buffer.scope for s in walk_stmt(sch.func.body) if isinstance(s, Allocate)]
    assert held == ["local", "local"]  # no chunk goes through memory
    assert_same(func, after(sch.kernel(), *lowering()), {"n": 5})


def test_chunks_that_nothing_reads_are_stored_where_they_belong() -> None:
    func, _ = unscheduled("matmul_packed", ((ROWS, 6), (2, 6, 8)), {"columns": 12, "chunks": 2})
    sch = default_schedule(func, SHORTEST)
    assert default_rules(func, SHORTEST)[0].rule == "packed"
    assert_same(func, after(sch.kernel(), *lowering()), {"rows": 3})


def test_tiles_lie_along_the_inner_of_two_unknown_axes() -> None:
    """Images in a batch turned to lines (text recognition): the batch is short, lines are not."""
    n, t = dim("n"), dim("t")
    batch, line, column = (
        Axis(PrimVar(x), to_prim_expr(d)) for x, d in (("b", n), ("l", t), ("c", 8))
    )
    still = from_expr(column.var)
    assert row_of([batch, line], still) is line
    assert row_of([batch, Axis(line.var, imm(40))], still) is batch
    longer = Axis(line.var, imm(40))
    assert row_of([Axis(batch.var, imm(3)), longer], still) is longer
    assert row_of([batch, line], from_expr(line.var)) is batch
