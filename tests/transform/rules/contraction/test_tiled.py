"""Contractions laid out by steps of a schedule: any tails, columns packed, no masks on sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, TypeGuard

import pytest

from tests.transform.schedule.test_by_hand import AVX2, AVX512, lowered
from tests.transform.tensor.kernels import after, assert_same
from unity.arith import Analyzer
from unity.errors import UnityError
from unity.ir.dtype import INT64
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, PrimFunc, Stmt, Store
from unity.ir.visit import stmt_children, substitute_prim, walk_prim, walk_stmt
from unity.machine.target import Target
from unity.script import parse
from unity.transform.blocks.tree import all_blocks
from unity.transform.rules.default import schedule
from unity.transform.schedule import Schedule, Trace, default_schedule
from unity.transform.schedule.index_map import IndexMap
from unity.transform.tactics import packing
from unity.transform.tensor import lowering

SSE = Target("cpu", AVX2.triple, "generic", ("sse4.2",), 128, 16, threads=3)
TARGETS = {"avx512": AVX512, "avx2": replace(AVX2, threads=2), "sse": SSE}
SIZES = ({"m": 0, "n": 3, "k": 2}, {"m": 1, "n": 1, "k": 1}, {"m": 13, "n": 37, "k": 9})


def product(m: object, n: object, k: object, flip: str = "") -> PrimFunc:
    """A product with bias and relu; `flip` names operands that are given transposed."""
    left = f"{k}, {m}" if "a" in flip else f"{m}, {k}"
    right = f"{n}, {k}" if "b" in flip else f"{k}, {n}"
    a, b = "vk, vi" if "a" in flip else "vi, vk", "vj, vk" if "b" in flip else "vk, vj"
    return parse(f"""
m = dim("m")
n = dim("n")
k = dim("k")

@script.prim_func
def main(
    a: f32[Buffer, {left}], b: f32[Buffer, {right}], bias: f32[Buffer, {n}],
    c: f32[Buffer, {m}, {n}]
) -> None:
    t = T.alloc(({m}, {n}), "float32")
    for i, j, l in T.grid({m}, {n}, {k}):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, l)
            with T.init():
                t[vi, vj] = 0.0
            t[vi, vj] += a[{a}] * b[{b}]
    for i, j in T.grid({m}, {n}):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = T.max(t[vi, vj] + bias[vj], 0.0)
""").prim_funcs()["main"]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are packed for a few rows already."""
    for name, value in {
        "ROWS": 5,
        "TRANSPOSED_ROWS": 5,
        "DEPTH": 2,
        "STRIDE": 8,
        "REPACK": 9,
    }.items():
        monkeypatch.setattr(packing, name, value)


CASES = (
    ("7", "16", "8", ""),
    ("13", "37", "9", ""),
    ("13", "37", "9", "b"),
    ("21", "70", "34", "ab"),
    ("m", "20", "7", ""),
    ("13", "n", "k", ""),
    ("m", "n", "k", "a"),
    ("m", "37", "18", "b"),
)


@pytest.mark.rotated(8)
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_values(case: tuple[str, str, str, str], target: str) -> None:
    before = product(*case)
    made = schedule(before, TARGETS[target])
    low = lowered(made, TARGETS[target])
    for sizes in SIZES if {"m", "n", "k"} & set(case) else ({},):
        assert_same(before, made, sizes)
        assert_same(before, low, sizes)


def of_lines(channels: object, filters: int, columns: object) -> PrimFunc:
    """A convolution of lines in two phases: what is read of one step lies far from the next."""
    return parse(f"""
n = dim("n")
k = dim("k")

@script.prim_func
def main(
    x: f32[Buffer, {channels}, 2, {columns} + 1], w: f32[Buffer, {filters}, {channels}, 3],
    y: f32[Buffer, {filters}, {columns}]
) -> None:
    for i, j, l, t in T.grid({filters}, {columns}, {channels}, 3):
        with T.block("lines"):
            vi, vj, vl, vt = T.axis.remap("SSRR", i, j, l, t)
            with T.init():
                y[vi, vj] = 0.0
            y[vi, vj] += x[vl, vt % 2, vj + vt // 2] * w[vi, vl, vt]
""").prim_funcs()["main"]


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("case", [(5, 7, 37), (4, 6, "n"), ("k", 13, 21)], ids=str)
def test_columns_of_sums_over_two_axes(case: tuple[object, int, object], target: str) -> None:
    before = of_lines(*case)
    made = schedule(before, TARGETS[target])
    low = lowered(made, TARGETS[target])
    panels = [s for s in walk_stmt(low.body) if isinstance(s, Allocate) and is_panel(s.buffer)]
    assert panels or case[2] == "n"  # of unknown number there may be a second axis of columns
    for sizes in ({"n": 1, "k": 1}, {"n": 35, "k": 3}):
        assert_same(before, made, sizes)
        assert_same(before, low, sizes)


def inner_loops(s: Stmt) -> Iterator[For]:
    """The loops that hold no other."""
    for x in walk_stmt(s):
        if isinstance(x, For) and not any(isinstance(y, For) for y in walk_stmt(x.body)):
            yield x


@pytest.mark.rotated(2)
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("case", CASES[:5], ids="-".join)
def test_sums_are_stored_without_masks(case: tuple[str, str, str, str]) -> None:
    low = lowered(schedule(product(*case), AVX512), AVX512)
    sums = {
        s.buffer
        for s in walk_stmt(low.body)
        if isinstance(s, Allocate) and s.buffer.scope == "local"
    }
    stores = [s for s in walk_stmt(low.body) if isinstance(s, Store) and s.buffer in sums]
    assert stores
    assert not any(s.predicate for s in stores)
    for loop in inner_loops(low.body):
        if any(isinstance(s, Store) and s.buffer in sums for s in walk_stmt(loop.body)):
            assert not any(isinstance(s, IfThen) for s in walk_stmt(loop.body))


def test_rows_that_are_left_have_tiles_of_their_own() -> None:
    """Of an unknown number: one of four, one of two and one of one."""
    low = lowered(schedule(product("m", "128", "8"), AVX512), AVX512)
    sums = [
        sum(isinstance(s, Store) and _adds(s) for s in walk_stmt(loop.body))
        for loop in inner_loops(low.body)
    ]
    rows, vectors = (6, 4, 2, 1), 4
    assert {n for n in sums if n} == {r * vectors for r in rows}


def _adds(s: Store) -> bool:
    return any(isinstance(x, Load) and x.buffer is s.buffer for x in walk_prim(s.value))


def with_panel() -> Schedule:
    sch = Schedule(product("12", "8", "6"))
    i, j, k = sch.get_loops("product")
    tile, row = sch.split(i, [None, 3])
    sch.reorder(tile, k, row, j)
    sch.decompose_reduction("product", k)
    panel = sch.cache_read("product", read_of(sch, "b"), "global")
    sch.compute_at(panel, k, tile)
    return sch


def read_of(sch: Schedule, name: str) -> int:
    (block,) = [b for b in all_blocks(sch.func.body) if b.name == "product"]
    return next(i for i, r in enumerate(block.reads) if r.buffer.name == name)


def test_the_first_iteration_computes_for_all() -> None:
    sch = with_panel()
    assert_same(product("12", "8", "6"), sch.func, {})
    assert_same(product("12", "8", "6"), after(sch.func, *lowering()), {})
    blocks = [b.name for b in all_blocks(sch.func.body)]
    assert blocks.index("b_global") < blocks.index("product")
    low = after(sch.func, *lowering())
    copies = [
        s for s in walk_stmt(low.body) if isinstance(s, Store) and s.buffer.name == "b_global"
    ]
    assert len(copies) == 1  # in a loop over steps, none in those of other tiles
    assert not any(isinstance(s, IfThen) for s in walk_stmt(low.body))


def test_iterations_that_read_different_things_are_refused() -> None:
    sch = with_panel()
    i = sch.get_loops("product")[0]
    panel = sch.cache_read("product", read_of(sch, "a"), "local")
    k = sch.get_loops("product")[1]
    with pytest.raises(UnityError, match="not the same in each iteration"):
        sch.compute_at(panel, k, i)


def test_a_loop_that_is_not_around_is_refused() -> None:
    sch = Schedule(product("12", "8", "6"))
    panel = sch.cache_read("product", read_of(sch, "b"), "global")
    i, j, _ = sch.get_loops("product")
    with pytest.raises(UnityError, match="is not around the loop"):
        sch.compute_at(panel, i, j)


def test_threads_do_not_wait_for_the_first() -> None:
    sch = Schedule(product("12", "8", "6"))
    panel = sch.cache_read("product", read_of(sch, "b"), "global")
    i, j, _ = sch.get_loops("product")
    sch.parallel(i)
    with pytest.raises(UnityError, match="in no order"):
        sch.compute_at(panel, j, i)


def test_what_others_take_is_not_private() -> None:
    sch = with_panel()
    with pytest.raises(UnityError, match="not known to make all that it reads"):
        sch.store_at("b_global", 0, sch.get_loops("product")[0])
    with pytest.raises(UnityError, match="used outside of it"):
        sch.store_at("product", 0, sch.get_loops("product")[0])


@pytest.mark.rotated(6)
@pytest.mark.parametrize("seed", range(24))
def test_random_tails(seed: int) -> None:
    random = Random(seed)
    m, n, k = (random.choice([1, 2, 5, 16, 17, 33, 50]) for _ in range(3))
    before = product(m, n, k, random.choice(["", "a", "b"]))
    target = random.choice(list(TARGETS.values()))
    assert_same(before, lowered(schedule(before, target), target), {})


@pytest.mark.parametrize("case", [("13", "37", "9", ""), ("6", "70", "k", "a")], ids="-".join)
def test_the_steps_are_a_trace_and_a_program(case: tuple[str, str, str, str]) -> None:
    before = product(*case)
    sch = default_schedule(before, AVX512)
    again = Schedule(before, AVX512).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    names: dict[str, Any] = {"Schedule": Schedule, "IndexMap": IndexMap}
    exec(sch.trace.to_python(), names)
    written = Schedule(before, AVX512)
    names["steps"](written)
    assert first_difference(written.func, sch.func) is None
    for sizes in SIZES if "k" in case else ({},):
        assert_same(before, lowered(sch.func, AVX512), sizes)


def runs(s: Stmt, values: dict[PrimVar, int], buffer: Buffer) -> int:
    """How many stores to a buffer are executed."""
    match s:
        case For():
            begin, extent = (number_of(e, values) for e in (s.begin, s.extent))
            return sum(
                runs(s.body, {**values, s.var: i}, buffer) for i in range(begin, begin + extent)
            )
        case IfThen():
            taken = s.then if number_of(s.condition, values) else s.orelse
            return 0 if taken is None else runs(taken, values, buffer)
        case Let():
            bound = {s.var: number_of(s.value, values)} if is_place(s) else {}
            return runs(s.body, {**values, **bound}, buffer)
        case Store():
            return int(s.buffer is buffer)
        case _:
            return sum(runs(x, values, buffer) for x in stmt_children(s))


def is_place(s: Let) -> bool:
    """Whether a name is of a number that the places of loops tell, not of data or a mask."""
    return s.var.dtype == INT64 and not any(isinstance(e, Load) for e in walk_prim(s.value))


def number_of(e: PrimExpr, values: dict[PrimVar, int]) -> int:
    known = Analyzer().simplify(substitute_prim(e, {v: imm(i) for v, i in values.items()}))
    assert isinstance(known, Imm)
    return int(known.value)


def tiles_run(s: Stmt, values: dict[PrimVar, int]) -> Iterator[int]:
    """How many accumulators each tile that is executed sets to zero."""
    if not any(isinstance(x, Allocate) for x in walk_stmt(s)):
        return
    match s:
        case For():
            begin, extent = (number_of(e, values) for e in (s.begin, s.extent))
            for i in range(begin, begin + extent):
                yield from tiles_run(s.body, {**values, s.var: i})
        case IfThen():
            taken = s.then if number_of(s.condition, values) else s.orelse
            yield from () if taken is None else tiles_run(taken, values)
        case Let():
            bound = {s.var: number_of(s.value, values)} if is_place(s) else {}
            yield from tiles_run(s.body, {**values, **bound})
        case Allocate(buffer) if buffer.scope == "local" and not is_panel(buffer):
            stores = [x for x in walk_stmt(s.body) if isinstance(x, Store) and x.buffer is buffer]
            yield sum(not _adds(x) for x in stores)
        case _:
            for each in stmt_children(s):
                yield from tiles_run(each, values)


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("columns", [64, 196], ids=["whole_strips", "a_narrow_one"])
def test_pieces_of_strips_are_whole_tiles(columns: int) -> None:
    """Rows that are left have smaller ones, and a narrow chunk has no vectors to spare."""
    target = replace(AVX512, threads=4)
    low = lowered(schedule(product(256, columns, 4), target), target)
    done = list(tiles_run(low.body, {}))
    assert sum(done) == 256 * -(-columns // 16)
    rows, chunks = max(done) // 4, -(-columns // 64)
    assert len(done) <= chunks * (-(-256 // rows) + 2)


@pytest.mark.rotated(2)
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("rows", [66, 71, 384, 391])
def test_threads_that_share_rows_unevenly_compute_each_once(rows: int) -> None:
    target = replace(AVX512, threads=2)
    low = lowered(schedule(product(rows, 384, 4), target), target)
    assert runs(low.body, {}, low.buffers[-1]) == rows * 384 // 16


@pytest.mark.rotated(2)
@pytest.mark.parametrize("flip", ["", "b"])
@pytest.mark.parametrize("n", [77, "n"])
def test_no_lane_of_a_panel_is_left_unset(n: object, flip: str) -> None:
    """What lies in memory beside the columns is multiplied too, and tiny numbers are slow."""
    low = lowered(schedule(product(256, n, 64, flip), AVX512), AVX512)
    panels = [s for s in walk_stmt(low.body) if isinstance(s, Allocate) and is_panel(s.buffer)]
    assert panels
    for panel in panels:
        assert panel.buffer.scope == "local"
        assert all(s.predicate is None for s in walk_stmt(panel.body) if stores_to(s, panel.buffer))
        assert not loops_of_no_number(panel.body, panel.buffer)


def is_panel(buffer: Buffer) -> bool:
    return buffer.name.startswith(("b_reindex", "x_reindex"))


def loops_of_no_number(s: Stmt, buffer: Buffer) -> list[For]:
    """The loops around stores to a buffer whose extents are no numbers."""
    if not any(stores_to(x, buffer) for x in walk_stmt(s)):
        return []
    here = [s] if isinstance(s, For) and not isinstance(s.extent, Imm) else []
    return here + [x for child in stmt_children(s) for x in loops_of_no_number(child, buffer)]


def stores_to(s: Stmt, buffer: Buffer) -> TypeGuard[Store]:
    return isinstance(s, Store) and s.buffer is buffer
