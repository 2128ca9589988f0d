"""Design spaces: points are data, legal ones compute the same, the default is the first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES
from tests.transform.rules.families import narrow
from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.ir.equality import structural_equal
from unity.ir.prim_expr import imm
from unity.ir.stmt import PrimFunc
from unity.ir.visit import temporaries
from unity.machine.target import Target
from unity.transform import Context, pipeline
from unity.transform.rules.canonical import canonical
from unity.transform.rules.rule import Legal
from unity.transform.schedule import default_schedule
from unity.transform.schedule.schedule import Schedule
from unity.tuning.spaces import (
    Point,
    ProgramSpace,
    RuleSpace,
    Space,
    generic_spaces,
    multi_level_tiles,
    packed,
    rows_together,
    tensorized,
)
from unity.tuning.spaces.by_program import decisions_of
from unity.tuning.spaces.by_rules import drawn, parts_of
from unity.tuning.spaces.tensorized import fitting
from unity.tuning.tasks import Task, tasks_of

from .kernels import ROWS, SMALL, TARGET, module, tasks

(PRODUCT,) = tasks(SMALL)
(SOFTMAX,) = tasks(ROWS, n=3)
NORMALIZED = """
@script.function
def main(x: f32[Tensor, 5, 40], g: f32[Tensor, 40], b: f32[Tensor, 40]) -> f32[Tensor, 5, 40]:
    return R.nn.layer_norm(x, g, b, axes=-1)
"""
ATTENDED = """
@script.function
def main(
    q: f32[Tensor, 1, 64, 2, 8], k: f32[Tensor, 1, 24, 2, 8], v: f32[Tensor, 1, 24, 2, 8]
) -> f32[Tensor, 1, 64, 2, 8]:
    return R.nn.attention(q, k, v)
"""
TURNED = """
@script.function
def main(x: f32[Tensor, 20, 37]) -> f32[Tensor, 37, 20]:
    return R.permute_dims(x)
"""
VNNI = replace(LANES, features=(*LANES.features, "avx512vnni", "avx512vl"))
PACKED = """
@script.function
def main(x: A[Tensor, 5, 10], w: B[Tensor, 10, 7]):
    return R.matmul(x, w, out_dtype="WIDE")
"""
CONVOLVED = """
@script.function
def main(x: A[Tensor, 1, 6, 2, 4], w: B[Tensor, 5, 6, 1, 2]):
    return R.nn.conv2d(x, w, strides=(2, 2), padding=(0, 1, 0, 1), out_dtype="WIDE")
"""
BY_NAME = {p.__name__: p for p in (multi_level_tiles, rows_together, tensorized, packed)}
WHOLE = """
@script.function
def main(x: f32[Tensor, 40]) -> f32[Tensor, 40]:
    return x / R.sum(x)
"""


def rules(task: Task) -> Space:
    return RuleSpace(task.func, TARGET)


def tiles(task: Task) -> Space:
    return ProgramSpace(task.func, TARGET, multi_level_tiles)


@pytest.mark.parametrize("work", [NORMALIZED, ATTENDED], ids=["layer_norm", "attention"])
def test_kernels_of_several_sums_are_done_row_by_row(work: str) -> None:
    """What one block makes of some rows, the next reads at once; nothing is summed by rule."""
    (task,) = tasks(work)
    space, random = ProgramSpace(task.func, TARGET, rows_together), Random(0)
    points = [p for p in (space.sample(random) for _ in range(2)) if p is not None]
    assert points
    for point in points:
        laid = space.schedule(point)
        outermost = {laid.get_loops(b)[0] for b in laid.get_blocks()}
        copied = len(outermost) - 1  # keys are turned, values may be copied
        assert copied in ((1, 2) if work == ATTENDED else (0,))
        assert_same(task.func, laid.func, dict(task.sizes))


def test_what_has_no_rows_in_common_is_not_done_row_by_row() -> None:
    for task in (PRODUCT, *tasks(WHOLE)):
        assert ProgramSpace(task.func, TARGET, rows_together).first(Random(0)) is None


def test_equal_kernels_are_one_task() -> None:
    assert (SOFTMAX.count, SOFTMAX.sizes) == (2, (("n", 3),))


def test_a_kernel_of_several_sizes_is_as_many_tasks() -> None:
    found = tasks_of(module(ROWS), pipeline(), Context(TARGET), [{"n": 3}, {"n": 40}, {"n": 3}])
    assert [(t.count, t.sizes) for t in found] == [(2, (("n", 3),)), (2, (("n", 40),))]


def test_a_task_is_named_by_what_it_computes() -> None:
    other = SMALL.replace("x", "another").replace("main", "forward")
    (again,) = tasks(other)
    assert again.identity == PRODUCT.identity
    (wider,) = tasks(SMALL.replace(" 32", " 40"))
    assert wider.identity != PRODUCT.identity


def test_the_rules_own_decisions_are_the_first_point() -> None:
    space = rules(PRODUCT)
    first = space.first(Random(0))
    assert first is not None
    usual = default_schedule(PRODUCT.func, TARGET)
    assert structural_equal(space.schedule(first).func, usual.func)


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("make", [rules, tiles])
@pytest.mark.parametrize("task", [PRODUCT, SOFTMAX], ids=["product", "softmax"])
def test_points_compute_what_the_kernel_does(task: Task, make: Callable[[Task], Space]) -> None:
    space, random, known = make(task), Random(3), list[Point]()
    for k in range(6):
        a = known[-1] if known else None
        point = space.sample(random) if a is None or k % 2 else space.mutate(a, random)
        if point is None or point in known:
            continue
        known.append(point)
        assert_same(task.func, space.schedule(point).func, dict(task.sizes))
    crossed = space.cross(known[0], known[-1], random)
    assert crossed is None or space.schedule(crossed)
    assert len(known) > 2


@pytest.mark.parametrize("make", [rules, tiles])
def test_a_point_is_data_and_gives_the_same_again(make: Callable[[Task], Space]) -> None:
    space = make(PRODUCT)
    point = space.sample(Random(5))
    assert point is not None
    again = Point(point.space, point.text)
    assert structural_equal(space.schedule(point).func, make(PRODUCT).schedule(again).func)
    assert space.sample(Random(5)) == point


def test_a_neighbour_differs_in_one_choice_and_what_no_longer_fits() -> None:
    space, random = tiles(PRODUCT), Random(1)
    point = space.sample(random)
    assert point is not None
    for _ in range(5):
        near = space.mutate(point, random)
        assert near is not None
        a, b = decisions_of(point), decisions_of(near)
        assert len(a) == len(b)
        assert sum(x != y for x, y in zip(a, b, strict=True)) <= 2


def test_another_rule_is_a_choice() -> None:
    space, random = RuleSpace(PRODUCT.func, TARGET), Random(0)
    usual = space.first(random)
    assert usual is not None
    found = (space.mutate(usual, random) for _ in range(60))
    barred = [p for p in found if p is not None and parts_of(p)[1]]
    assert barred
    taken = {r.rule for p in barred for r in space._rules(p)}
    assert taken - {r.rule for r in space._rules(usual)}


def test_a_space_of_users_is_a_function_that_draws() -> None:
    def halves(sch: Schedule) -> None:
        loop = sch.get_loops("b0")[0]
        outer, _ = sch.split(loop, sch.sample_perfect_tile(loop, 2))
        if sch.sample_categorical([0, 1], [0.5, 0.5]):
            sch.parallel(outer)

    space = ProgramSpace(PRODUCT.func, TARGET, halves)
    points = {space.sample(Random(k)) for k in range(30)}
    assert {len(decisions_of(p)) for p in points if p is not None} == {2}
    assert len(points) > 5
    assert space.name == "halves"


def test_what_a_function_refuses_is_not_in_its_space() -> None:
    def never(sch: Schedule) -> None:
        raise UnityError("not for this kernel")

    assert ProgramSpace(PRODUCT.func, TARGET, never).first(Random(0)) is None


@pytest.mark.parametrize(("draws", "asked"), [(0, 1), (1, 8)])
def test_what_is_refused_before_anything_is_drawn_is_not_asked_again(
    draws: int, asked: int
) -> None:
    calls: list[Schedule] = []

    def never(sch: Schedule) -> None:
        calls.append(sch)
        for _ in range(draws):
            sch.sample_categorical([0, 1], [0.5, 0.5])
        raise UnityError("not for this kernel")

    assert ProgramSpace(PRODUCT.func, TARGET, never).sample(Random(0)) is None
    assert len(calls) == asked


def test_decisions_ahead_are_taken_where_they_are_legal() -> None:
    sch = Schedule(PRODUCT.func, TARGET, 0, [[4, 4], 1, [5, 5]])
    loop = sch.get_loops("b0")[0]
    assert [int(v) for v in sch.sample_perfect_tile(loop, 2)] == [4, 4]
    assert sch.sample_categorical([7, 9], [0.5, 0.5]) == 9
    drawn_ = [int(v) for v in sch.sample_perfect_tile(loop, 2)]  # 5 times 5 is not 16
    assert drawn_[0] * drawn_[1] == 16


def test_neighbours_of_large_numbers_are_near() -> None:
    legal, random = Legal(range(1, 1 << 25), "any"), Random(0)
    found = {drawn(legal, 60_000, random) for _ in range(50)}
    assert found == {15_000, 30_000, 120_000, 240_000}


@pytest.mark.parametrize(
    ("target", "group", "intrinsic"),
    [(LANES, 2, "avx512bf16_16x2"), (TILES, 2, "amx_bf16_16x16x32"), (TARGET, 2, None)],
    ids=["lanes", "tiles", "neither"],
)
def test_instructions_are_found_by_structure(
    target: Target, group: int, intrinsic: str | None
) -> None:
    """No kernel says which instruction it is for; machines without one have none of it."""
    product = canonical(narrow("matmul_interleaved", (16, 32), (2, 16, 16, group), columns=32))
    sch = Schedule(product, target)
    names = [name for name, _ in fitting(sch, sch.get_blocks()[0])]
    assert (intrinsic in names) is (intrinsic is not None)
    space = ProgramSpace(product, target, tensorized)
    point = space.first(Random(0))
    assert (point is None) is (intrinsic is None)
    if point is not None:
        assert_same(product, space.schedule(point).func, {})


@pytest.mark.parametrize(
    ("target", "types", "work", "intrinsics"),
    [
        (LANES, ("bf16", "bf16", "f32"), PACKED, {"avx512bf16_16x2"}),
        (TILES, ("bf16", "bf16", "f32"), PACKED, {"amx_bf16_16x16x32", "amx_bf16_32x32x32"}),
        (TILES, ("bf16", "bf16", "f32"), CONVOLVED, {"amx_bf16_16x16x32", "amx_bf16_32x32x32"}),
        (VNNI, ("u8", "i8", "i32"), PACKED, {"vnni_u8s8_16x4"}),
        (VNNI, ("u8", "i8", "i32"), CONVOLVED, {"vnni_u8s8_16x4"}),
        (VNNI, ("i8", "i8", "i32"), PACKED, set[str]()),
        (TARGET, ("u8", "i8", "i32"), PACKED, set[str]()),
    ],
)
def test_products_of_any_layout_are_laid_out_for_dot_products(
    target: Target, types: tuple[str, str, str], work: str, intrinsics: set[str]
) -> None:
    """Matrices and convolutions of parameters: nothing names an instruction, sizes fit none."""
    a, b, out = types
    text = work.replace(": A[", f": {a}[").replace(": B[", f": {b}[")
    wide = {"f32": "float32", "i32": "int32"}[out]
    (task,) = tasks(text.replace("WIDE", wide), target)
    space, random = ProgramSpace(task.func, target, packed), Random(0)
    found: dict[str, PrimFunc] = {}
    for point in (space.sample(random) for _ in range(8)):
        if point is not None:
            laid = space.schedule(point)
            (name,) = [str(i.args[1]) for i in laid.trace if i.name == "tensorize"]
            found[name] = laid.func
    assert found.keys() & intrinsics == intrinsics
    assert bool(found) is bool(intrinsics)
    for func in found.values():
        assert_same(task.func, func, {})


WINOGRAD = """
@script.function
def main(x: f32[Tensor, 1, 1, 16, 16, 16], w: f32[Tensor, 6, 6, 1, 1, 16, 16]):
    return R.nn.conv2d_winograd(x, w, tile=4)
"""


def test_parts_of_fused_loops_that_lie_across_digits_are_legal() -> None:
    """Steps are trusted where a space takes them; those who compile them ask for each."""
    (task,) = tasks(WINOGRAD)
    space, random = ProgramSpace(task.func, TARGET, multi_level_tiles, proven=True), Random(0)
    for _ in range(8):
        point = space.sample(random)
        assert point is not None
        laid = space.schedule(point)
        assert laid.trusts
        again = Schedule(task.func, TARGET).replay(laid.trace)
        assert structural_equal(again.func, laid.func)
        assert not again.trusts


def test_spaces_are_of_a_machine() -> None:
    narrow = Target("cpu", "x86_64-unknown-linux-gnu", "generic", (), 128)
    space = ProgramSpace(PRODUCT.func, narrow, multi_level_tiles)
    point = space.first(Random(0))
    assert point is not None
    assert "T.vectorized(4)" in str(space.schedule(point).func)


def test_what_reads_other_dtypes_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is taken for an intrinsic of int8 or bfloat16 on a product of float32."""

    def never(*args: object) -> None:
        raise AssertionError("steps were taken")

    monkeypatch.setattr(sys.modules[fitting.__module__], "_take", never)
    sch = Schedule(PRODUCT.func, TILES)
    (main,) = [b for b in sch.get_blocks() if "R" in sch.axis_kinds(b)]
    assert fitting(sch, main) == []


@pytest.mark.parametrize(
    "work", [NORMALIZED, ATTENDED, SMALL], ids=["norm", "attention", "product"]
)
def test_steps_of_our_own_spaces_are_trusted(work: str) -> None:
    """What is trusted is what is legal: each step asked again gives the same program."""
    (task,) = tasks(work)
    for space in generic_spaces(task.func, TARGET):
        asked = ProgramSpace(task.func, TARGET, BY_NAME[space.name])
        for seed in range(3):
            point = space.sample(Random(seed))
            assert point is not None
            assert structural_equal(space.schedule(point).func, asked.schedule(point).func)


def test_what_reads_across_is_turned_in_registers() -> None:
    """Lanes run along what is written, the lines of a rectangle are written out, ends are kept."""
    (task,) = tasks(TURNED)
    space = ProgramSpace(task.func, TARGET, multi_level_tiles)
    point = space.sample(Random(0))
    assert point is not None
    laid = space.schedule(point)
    (block,) = laid.get_blocks()
    *_, row, lane = laid.get_loops(block)
    assert (laid.extent(row), laid.extent(lane)) == (16, TARGET.vector_bits // 32)
    assert [i.name for i in laid.trace if i.name in ("vectorize", "unroll", "parallel")] == [
        "vectorize", "unroll", "parallel",
    ]  # fmt: skip
    assert_same(task.func, laid.func, {})


@pytest.mark.parametrize("by", ["R.matmul(x, w)", "R.matmul(x, R.permute_dims(w))"])
def test_a_factor_may_be_copied_in_panels_of_a_tile(by: str) -> None:
    """A tile's columns lie side by side in the copy, step by step; what is over is not read."""
    text = SMALL.replace("R.matmul(x, w)", by).replace(" 32]", " 44]")
    text = text.replace(" 12, 44" if "permute" in by else "nothing", " 44, 12")
    (task,) = [t for t in tasks(text) if "matmul" in t.name]
    space, random, lanes = ProgramSpace(task.func, TARGET, multi_level_tiles), Random(0), 8
    found: set[int] = set()
    for _ in range(24):
        point = space.sample(random)
        assert point is not None
        func = space.schedule(point).func
        for copy in [b for b in temporaries(func.body) if len(b.shape) == 3]:
            columns = next(c for c in (lanes * k for k in (1, 2, 3, 4)) if imm(c) == copy.shape[2])
            assert copy.shape[:2] == (imm(-(-44 // columns)), imm(12))
            if columns not in found:
                assert_same(task.func, func, {})
            found.add(columns)
    assert len(found) > 1


def test_nothing_is_drawn_where_there_is_no_choice() -> None:
    """An axis of one element has no factors; a search would draw them in vain."""
    text = "@script.function\ndef main(x: f32[Tensor, 1, 1, 6, 8], w: f32[Tensor, 1, 1, 8, 16]):\n"
    for task in tasks(text + "    return R.matmul(x, w)\n"):
        for seed in range(4):
            point = ProgramSpace(task.func, TARGET, multi_level_tiles).sample(Random(seed))
            assert point is not None
            laid = ProgramSpace(task.func, TARGET, multi_level_tiles).schedule(point)
            drawn = [i.args[0] for i in laid.trace if i.name == "sample_categorical"]
            assert drawn
            assert not [one for one in drawn if isinstance(one, Sequence) and len(one) == 1]


def test_a_neighbour_is_another_point() -> None:
    """No candidate is laid out to find that the same was drawn again."""
    space, random = ProgramSpace(PRODUCT.func, TARGET, multi_level_tiles), Random(0)
    point = space.sample(random)
    assert point is not None
    neighbours = [space.mutate(point, random) for _ in range(24)]
    assert point not in neighbours
    assert len({*neighbours}) > 8
