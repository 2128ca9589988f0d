"""Contractions padded to whole tiles: what they compute, what they are scheduled to, what not."""

from __future__ import annotations

from random import Random

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.well_formed.verify import verify
from unity.script import parse
from unity.transform.schedule import Schedule, Trace
from unity.transform.tensor import FlattenBuffers, LowerBlocks, SimplifyTir, lowering


def product(value: str = "a[vi, vk] * b[vk, vj] * s[vk]", init: str = "0.0") -> PrimFunc:
    return parse(f"""
n = dim("n")
m = dim("m")

@script.prim_func
def main(
    a: f32[Buffer, n, m], b: f32[Buffer, m, 5], s: f32[Buffer, m], c: f32[Buffer, n, 5]
) -> None:
    for i, j, k in T.grid(n, 5, m):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = {init}
            c[vi, vj] += {value}
""").prim_funcs()["main"]


SIZES = ({"n": 0, "m": 3}, {"n": 3, "m": 0}, {"n": 4, "m": 8}, {"n": 7, "m": 5})


@pytest.mark.parametrize("seed", range(12))
def test_padded_and_tiled(seed: int) -> None:
    random, before = Random(seed), product()
    padding = [random.choice([1, 2, 4]) for _ in range(3)]
    sch = Schedule(before)
    sch.pad_einsum("product", padding)
    i, j, k = sch.get_loops("product")
    loops = [sch.split(loop, [None, p]) for loop, p in zip((i, j, k), padding, strict=True)]
    sch.reorder(*(outer for outer, _ in loops), *(inner for _, inner in loops))
    sch.vectorize(loops[1][1])
    verify(IRModule({"main": sch.func}))
    assert "T.where" not in str(sch.func) or 1 in padding
    low = after(sch.func, *lowering())
    for sizes in SIZES:
        assert_same(before, sch.func, sizes)
        assert_same(before, low, sizes)
    again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
    assert str(again.func) == str(sch.func)


def test_whole_tiles_need_no_predicate() -> None:
    sch = Schedule(product())
    names = [b.name for b in sch.pad_einsum("product", [4, 8, 2])]
    assert names == ["a_pad", "b_pad", "s_pad", "c_pad"]
    sch.split(sch.get_loops("product")[0], [None, 4])
    assert "T.where" not in str(sch.func)


@pytest.mark.parametrize(
    ("func", "padding", "message"),
    [
        (product(), [4, 4], "argument 2 'padding': it takes a number for each of vi, vj, vk"),
        (product(), [4, 0, 4], "argument 2 'padding': they must be positive"),
        (product("a[vi, vk] + b[vk, vj]"), [4, 4, 4], "does not sum products of elements"),
        (product(init="1.0"), [4, 4, 4], "'product' is no sum from 0"),
        (product("a[vi, vk] * b[vk, 4 - vj]"), [1, 4, 4], "it does not index 'b' by its axes"),
        (
            product("a[vi, vk] * b[vk, vj] * s[vi]"),
            [1, 1, 4],
            "argument 2 'padding': 's' does not move along 'vk'",
        ),
    ],
)
def test_refused(func: PrimFunc, padding: list[int], message: str) -> None:
    with pytest.raises(UnityError) as caught:
        Schedule(func).pad_einsum("product", padding)
    assert message in caught.value.message


def test_what_is_tiled_already_is_refused() -> None:
    sch = Schedule(product())
    sch.split(sch.get_loops("product")[0], [None, 4])
    with pytest.raises(UnityError, match="not directly in one loop for each of its axes"):
        sch.pad_einsum("product", [4, 4, 4])


PANELS = parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 6], w: f32[Buffer, 3, 3, 4, 2], c: f32[Buffer, n, 10]) -> None:
    t = T.alloc((n, 10), "float32")
    for i, j, k, p in T.grid(n, 10, 3, 2):
        with T.block("product"):
            vi, vj, vk, vp = T.axis.remap("SSRR", i, j, k, p)
            with T.init():
                t[vi, vj] = 0.0
            t[vi, vj] += a[vi, vk * 2 + vp] * w[vj // 4, vk, vj % 4, vp]
    for i, j in T.grid(n, 10):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = T.max(t[vi, vj], 0.0)
""").prim_funcs()["main"]


def test_whole_panels_are_read_and_a_temporary_grows() -> None:
    """No copies: panels go on behind the last column, and only the first columns are taken."""
    sch = Schedule(PANELS)
    assert sch.pad_einsum("product", [1, 4, 1, 1]) == ()
    assert "t = T.alloc((n, 12)" in str(sch.func)
    i, j, k, p = sch.get_loops("product")
    panel, lane = sch.split(j, [None, 4])
    rows, row = sch.split(i, [None, 3])
    sch.reorder(panel, rows, k, row, lane, p)
    sch.reverse_compute_at("relu", rows)
    sch.store_at("product", 0, rows)
    sch.decompose_reduction("product", k)
    sch.blockize(lane)  # rows are under a predicate, which is the same for all lanes
    sch.unroll(row)
    sch.parallel(panel)
    verify(IRModule({"main": sch.func}))
    low = after(sch.func, *lowering())
    for sizes in ({"n": 0}, {"n": 1}, {"n": 7}):
        assert_same(PANELS, sch.func, sizes)
        assert_same(PANELS, low, sizes)


def test_a_tile_half_under_a_predicate_is_no_block() -> None:
    sch = Schedule(PANELS)
    _, lane = sch.split(sch.get_loops("product")[1], [None, 4])
    with pytest.raises(UnityError, match="the predicate of 'product' is not the same for all"):
        sch.blockize(lane)


def grouped() -> Schedule:
    sch = Schedule(
        parse("""
@script.prim_func
def main(a: f32[Buffer, 4, 6, 8], c: f32[Buffer, 4, 6, 8]) -> None:
    t = T.alloc((4, 6, 8), "float32")
    for i, j, k in T.grid(4, 6, 8):
        with T.block("double"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            t[vi, vj, vk] = a[vi, vj, vk] * 2.0
    for i, j, k in T.grid(4, 6, 8):
        with T.block("add"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            c[vi, vj, vk] = t[vi, vj, vk] + 1.0
""").prim_funcs()["main"]
    )
    sch.set_axis_separator("double", 0, [2])
    return sch


def test_groups_of_axes_are_indices() -> None:
    sch = grouped()
    assert str(parse(str(sch.func)).prim_funcs()["main"]) == str(sch.func)
    flat = after(sch.func, LowerBlocks(), FlattenBuffers(groups=True), SimplifyTir())
    assert "t[i * 6 + j, k]" in str(flat)
    assert_same(sch.func, flat, {})
    for func in (after(sch.func, *lowering()), sch.func):
        assert_same(Schedule(sch.func).func, func, {})


@pytest.mark.parametrize(
    ("separators", "message"),
    [([0], "they lie between 1 and 2"), ([3], "between 1 and 2"), ([2, 1], "they must ascend")],
)
def test_separators_refused(separators: list[int], message: str) -> None:
    with pytest.raises(UnityError, match=message):
        grouped().set_axis_separator("double", 0, separators)
    with pytest.raises(UnityError, match="'c' is a parameter"):
        grouped().set_axis_separator("add", 0, [1])


def test_a_result_of_one_row() -> None:
    """What is indexed by 0, where there is one place, is not padded there."""
    before = parse("""
@script.prim_func
def main(a: f32[Buffer, 1, 6], b: f32[Buffer, 6, 5], c: f32[Buffer, 1, 5]) -> None:
    for i, j, k in T.grid(1, 5, 6):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[0, vj] = 0.0
            c[0, vj] += a[0, vk] * b[vk, vj]
""").prim_funcs()["main"]
    sch = Schedule(before)
    sch.pad_einsum("product", [1, 4, 1])
    assert_same(before, sch.func, {})
