"""The simplifier against brute force: same value on every point of the ranges."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from unity.arith import Analyzer, bounds, prove, simplify
from unity.ir.dims import Facts
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer
from unity.ir.visit import substitute_prim

X, J, K = PrimVar("i"), PrimVar("j"), PrimVar("k")
N, M = SizeVar("n"), SizeVar("m")
RANGES: dict[PrimVar | SizeVar, tuple[int | None, int | None]] = {
    X: (0, 7),
    J: (-3, 4),
    K: (0, 2),
    N: (1, 3),
}


def value_of(e: PrimExpr, env: dict[PrimVar | SizeVar, int]) -> int:
    match e:
        case PrimVar() | SizeVar():
            return env[e]
        case Imm(value):
            return int(value)
        case Binary(op, a, b):
            return binary(op, value_of(a, env), value_of(b, env))
        case Compare(op, a, b):
            return compare(op, value_of(a, env), value_of(b, env))
        case Not(a):
            return 1 - value_of(a, env)
        case Select(c, a, b):
            return value_of(a, env) if value_of(c, env) else value_of(b, env)
        case Cast(_, a):
            return value_of(a, env)
        case _:
            raise AssertionError(e)


def binary(op: BinaryOp, a: int, b: int) -> int:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return a // b
        case "floormod":
            return a % b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "truncdiv":
            return int(a / b)
        case "truncmod":
            return a - b * int(a / b)
        case _:
            raise AssertionError(op)


def compare(op: CompareOp, a: int, b: int) -> int:
    return int(
        {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]
    )


VARIABLES: list[PrimExpr] = [X, J, K, N]
LEAVES: st.SearchStrategy[PrimExpr] = st.sampled_from(VARIABLES) | st.integers(-9, 9).map(imm)


def combined(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
    ring = st.sampled_from(["add", "sub", "mul", "add", "add", "min", "max"])
    divisors = st.sampled_from([1, 2, 3, 4, 6, 8, 12]).map(imm) | st.just(N)
    divide = st.sampled_from(
        ["floordiv", "floormod", "floordiv", "floormod", "truncdiv", "truncmod"]
    )
    scaled = st.builds(lambda a, c: Binary("mul", a, imm(c)), inner, st.sampled_from([2, 3, 4, 8]))
    return (
        st.builds(Binary, ring, inner, inner)
        | st.builds(Binary, divide, inner, divisors)
        | scaled
        | st.builds(Select, conditions(inner), inner, inner)
    )


def conditions(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
    ops = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    plain = st.builds(Compare, ops, inner, inner)
    joined = st.builds(Binary, st.sampled_from(["and", "or"]), plain, plain)
    return plain | joined | st.builds(Not, joined)


INDICES: st.SearchStrategy[PrimExpr] = st.recursive(LEAVES, combined, max_leaves=10)


def points() -> list[dict[PrimVar | SizeVar, int]]:
    spans = [range(low or 0, (high or 0) + 1) for low, high in RANGES.values()]
    return [dict(zip(RANGES, values, strict=True)) for values in product(*spans)]


POINTS = points()


@settings(max_examples=examples(102))
@given(INDICES)
def test_value_stays_and_lies_in_the_bounds(e: PrimExpr) -> None:
    simple = simplify(e, RANGES)
    low, high = bounds(e, RANGES)
    for env in POINTS:
        value = value_of(e, env)
        assert value_of(simple, env) == value
        assert low is None or low <= value
        assert high is None or value <= high


@settings(max_examples=examples(51))
@given(conditions(INDICES))
def test_conditions_keep_their_truth_and_proofs_are_sound(e: PrimExpr) -> None:
    simple = simplify(e, RANGES)
    proved = prove(e, RANGES)
    for env in POINTS:
        truth = value_of(e, env)
        assert value_of(simple, env) == truth
        assert truth or not proved


@settings(max_examples=examples(51))
@given(INDICES)
def test_simplifying_twice_changes_nothing(e: PrimExpr) -> None:
    once = simplify(e, RANGES)
    again = simplify(once, RANGES)
    assert simplify(again, RANGES) is again


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (X + J - X, J),
        ((X + 1) * 4 - X * 4, imm(4)),
        (J + X, simplify(X + J)),
        ((N * 8 + X) // 8, N),
        ((N * 8 + X) % 8, X),
        ((N * 16 + X) // 8, N * 2),
        ((N // 4) // 8, N // 32),
        ((N // 4 + 3) // 8, (N + 12) // 32),
        ((N * 4 + K) // 8, N // 2),
        ((N // 8) * 8 + N % 8, N),
        ((N // 64) * 64 + (N % 64) // 8 * 8 + N % 8, N),
        ((N // 7) * 56 + ((N % 7) * 8 + X) // 28 * 28 + (N * 8 + X) % 28, N * 8 + X),
        ((N % 64) % 8, N % 8),
        ((J * 8 + X) // (M * 8), J // M),
        ((J * 8 + X) % (M * 16), J % (M * 2) * 8 + X),
        ((J * 8 + X) // (M * 32) * M + (J * 8 + X) // 32 % M, J // 4),
        (Binary("min", X, imm(7)), X),
        (Binary("max", J, imm(10)), imm(10)),
        (Binary("min", N + 3, N), N),
        (X < 8, imm(True, BOOL)),
        (X > 7, imm(False, BOOL)),
        (X * 4 + 3 < N * 4, X < N),
        (Select(X < 8, J, K), J),
        (Select(J < 2, X, X), X),
        (Not(X < N), Compare("lt", N, X + 1)),
        (Binary("and", X < 8, J < 2), J < 2),
        (Compare("eq", X * 2, imm(3)), imm(False, BOOL)),
        (Binary("truncdiv", N * 8 + X, imm(8)), N),
    ],
)
def test_rule(before: PrimExpr, after: PrimExpr) -> None:
    assert simplify(before, {X: (0, 7), J: (-3, 4), K: (0, 2)}) == after


def test_symbolic_extents_decide_divisions() -> None:
    f = PrimVar("f")
    known = Analyzer().with_extent(X, imm(0), N).with_extent(J, imm(0), M)
    known = known.with_extent(f, imm(0), N * M)
    assert known.simplify((X * M + J) // M) is X
    assert known.simplify((X * M + J) % M) is J
    assert known.simplify((f // M) * M + f % M) is f
    assert known.simplify((f // M + 2) // 3) == known.simplify((f + M * 2) // (M * 3))
    assert known.simplify((f // (M * 3)) * M * 3 + (f // M) % 3 * M + f % M) is f
    assert known.simplify((f // 60) // M) == known.simplify(f // (M * 60))
    assert known.simplify((f // 5 + X * 7) // M) == known.simplify((f + X * 35) // (M * 5))
    joined = (f // (M * 60)) * M * 60 + (f // 60 % M) * 60 + f % 60
    assert known.simplify(joined) is f
    assert known.prove(f // M < N)
    assert known.prove(f % M < M)
    assert known.prove(X * M + J < N * M)
    assert not known.prove(X * M + J + 1 < N * M)


def test_a_number_split_twice_is_put_together() -> None:
    f, a, b = PrimVar("f"), Binary("floordiv", N + 1, imm(2)), Binary("floordiv", M + 1, imm(2))
    for height, width in ((N, M), (a, b)):
        rows = Binary("floormod", Binary("floordiv", f, width), height)
        rest = rows * width + Binary("floormod", f, width)
        image = Binary("floordiv", f, height * width)
        assert simplify(image * height * width + rest) is f
        assert simplify(image * height * width + rest + width) == simplify(f + width)
        assert simplify(image * height + rest) != f


def test_what_whole_multiples_leave_is_the_remainder() -> None:
    known, left = Analyzer(), N - N // 16 * 16
    assert known.equal(N % 16, left)
    assert known.equal(N % 16 * M, N * M - N // 16 * M * 16)
    assert known.prove(left >= N % 16)
    assert not known.prove(left > N % 16)
    assert not known.equal(N % 16, N - N // 8 * 8)


def test_loops_over_parts_of_others_stay_within_these() -> None:
    run, i, count = PrimVar("run"), PrimVar("i"), Binary("floordiv", N * M + 23, imm(24))
    first = Binary("floordiv", run * count, imm(4))
    last = Binary("floordiv", (run + 1) * count, imm(4))
    known = Analyzer().with_extent(run, imm(0), imm(4)).with_extent(i, first, last - first)
    assert known.prove(i < count)
    assert not known.prove(i < count - 1)
    assert not known.prove(run * N < N * 3)
    assert known.prove(run * N <= N * 3)
    assert known.bounds(N) == known.bounds(M) == (1, None)


def test_what_runs_says_which_sizes_are_none() -> None:
    t, i = PrimVar("t"), PrimVar("i")
    whole = Binary("floordiv", N + 1, imm(2)) * M
    left = Binary("sub", whole, t * 24)
    extents: dict[PrimExpr, tuple[int, int]] = {
        left: (1, 1),
        Binary("max", imm(0), Binary("min", imm(24), left)): (1, 1),
        Binary("max", imm(1), left): (0, 0),
        Binary("sub", left, N): (1, 1),
        (N - 1) * M: (2, 1),
        (N - 2) * M * (M - 1): (0, 1),
        Binary("add", left, imm(1)): (0, 0),
        Binary("sub", N + M, t): (0, 0),
        Binary("min", N, M - 2): (1, 3),
    }
    for extent, least in extents.items():
        known = Analyzer().with_extent(t, imm(0), imm(9)).with_extent(i, imm(0), extent)
        found = known.bounds(N)[0], known.bounds(M)[0]
        assert found == least, extent
        for n, m, at in product(range(6), range(6), range(9)):
            values: dict[PrimVar | SizeVar, PrimExpr] = {N: imm(n), M: imm(m), t: imm(at)}
            count = simplify(substitute_prim(extent, values))
            assert isinstance(count, Imm)
            assert count.value < 1 or (n, m) >= least, (extent, n, m, at)


def test_loop_limits_follow_outer_loops() -> None:
    known = Analyzer().with_extent(X, imm(0), N).with_extent(J, X, N - X)
    assert known.prove(J < N)
    assert known.prove(J >= X)
    assert not known.prove(J > X)


def test_facts_of_sizes() -> None:
    n = SizeVar("n", Facts(min=4, max=64, multiple_of=8))
    assert simplify(n % 4) == imm(0)
    assert bounds(n * 2 + 1) == (9, 129)
    assert prove(n > 3)


def test_halves_of_halves_cover_the_whole() -> None:
    whole: PrimExpr = SizeVar("n")
    for _ in range(4):
        for parts in (2, 3, 14):
            part = Binary("floordiv", whole + (parts - 1), imm(parts))
            assert Analyzer().prove(Compare("ge", part * parts, whole))
            assert not Analyzer().prove(Compare("ge", part * parts, whole + 1))
        whole = Binary("floordiv", whole + 1, imm(2))


def test_a_loop_over_a_product_runs_where_each_factor_is_positive() -> None:
    n, m = SizeVar("n"), SizeVar("m")
    inside = Analyzer().with_extent(PrimVar("i"), imm(0), n * m * 4)
    assert inside.bounds(n) == inside.bounds(m) == (1, None)
    tiles = Analyzer().with_extent(PrimVar("i"), imm(0), Binary("floordiv", n * m + 7, imm(8)))
    assert tiles.bounds(n * m) == (1, None)
    assert Analyzer().with_extent(PrimVar("i"), imm(0), n + m).bounds(n) == (0, None)


def test_a_loop_over_frames_of_rows_runs_where_there_are_frames() -> None:
    frames: PrimExpr = Binary("floordiv", M + 128, imm(160)) - 3
    inside = Analyzer().with_extent(PrimVar("i"), imm(0), N * frames)
    assert inside.bounds(frames) == inside.bounds(N) == (1, None)
    assert inside.bounds(M) == (4 * 160 - 128, None)


def test_what_limits_leave_is_a_number() -> None:
    blocks = Binary("floordiv", N * M + 143, imm(144))
    task, panel = PrimVar("task"), PrimVar("panel")
    known = Analyzer().with_extent(task, imm(0), blocks * 5)
    value = Binary("floordiv", task, blocks)
    assert known.bounds(value) == (0, 4)
    assert known.bounds(value * 2 - 3) == (-3, 5)
    known = known.with_value(panel, value)
    assert known.bounds(panel) == (0, 4)
    assert known.with_condition(Not(Compare("lt", panel, imm(4)))).simplify(panel * 64) == imm(256)
    assert Analyzer().with_extent(J, N, imm(4)).bounds(J - N) == (0, 3)


def test_data_and_floats_keep_their_arithmetic() -> None:
    x = Load(Buffer("x", (imm(4),), FLOAT32), (X + 0,))
    assert simplify(x - x) == Load(x.buffer, (X,)) - Load(x.buffer, (X,))
    index = Load(Buffer("t", (imm(4),), INT64), (X,))
    assert simplify(index * 2 // 2) == index * 2 // 2  # may wrap


def test_unchanged_expressions_are_the_same_objects() -> None:
    e = simplify(X * 64 + J * 8 + K)
    assert simplify(e) is e


def test_places_in_a_map_that_are_kept_inside_by_minima_lie_inside() -> None:
    rows, columns, images = SizeVar("rows"), SizeVar("columns"), SizeVar("images")
    image, i, j = PrimVar("image"), PrimVar("i"), PrimVar("j")
    known = Analyzer().with_extent(image, imm(0), images)

    def held(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
        return Binary("min", Binary("max", index, imm(0)), extent - 1)

    place = image * (rows * columns) + held(i, rows) * columns + held(j, columns)
    assert known.prove(place < images * rows * columns)
    assert not known.prove(place < images * rows * columns - 1)
    assert not known.prove(Compare("ge", place, imm(0)))  # of no rows, it is -1 of them
    some = known.with_range(rows, 1, None).with_range(columns, 1, None)
    assert some.prove(Compare("ge", place, imm(0)))
    signed = PrimVar("signed")  # times what may be negative, the smaller one is the larger
    least = Binary("min", i, imm(3)) * signed
    assert not Analyzer().prove(least <= signed * 3)
    assert Analyzer().with_range(signed, 0, None).prove(least <= signed * 3)
