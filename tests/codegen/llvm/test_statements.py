"""Loops, storage, masks, tasks and asserts of compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.levels import LEVELS, runs_here
from tests.codegen.llvm.run_kernel import HOST, build, run
from tests.transform.tensor.kernels import assert_same
from unity.codegen.llvm import OUT_OF_BOUNDS, compile_kernels, expr
from unity.codegen.llvm.arithmetic import int_binary
from unity.codegen.llvm.emitter import Emitter
from unity.errors import UnityError
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, Array, DType, dtype
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Compare,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Buffer,
    For,
    ForKind,
    IfThen,
    Let,
    PrimFunc,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.script import parse

N = SizeVar("n")
ZERO = imm(0)


def f32(*values: float) -> Array:
    return np.asarray(values, np.float32)


def ramp(base: PrimExpr, stride: int = 1, lanes: int = 4) -> PrimExpr:
    return Ramp(base, imm(stride), lanes)


def wide(value: float, lanes: int = 4, dtype: DType = FLOAT32) -> PrimExpr:
    return Broadcast(imm(value, dtype), lanes)


@pytest.mark.parametrize("kind", ["serial", "parallel", "unrolled"])
@pytest.mark.parametrize("length", [0, 1, 5, 100_000])
def test_a_loop_visits_each_element_once(kind: ForKind, length: int) -> None:
    x, y, i = Buffer("x", (N,), FLOAT32), Buffer("y", (N,), FLOAT32), PrimVar("i")
    body = Store(y, (i,), Load(y, (i,)) + Load(x, (i,)) * imm(2.0, FLOAT32))
    data = np.arange(length, dtype=np.float32)
    out = run(
        PrimFunc((x, y), For(i, ZERO, N, body, kind)),
        [data],
        np.ones(length, np.float32),
        {"n": length},
    )
    np.testing.assert_array_equal(out, data * 2 + 1)


def test_a_loop_begins_where_it_says() -> None:
    y, i = Buffer("y", (imm(6),), INT64), PrimVar("i")
    func = PrimFunc((y,), For(i, imm(2), imm(3), Store(y, (i,), i * i)))
    np.testing.assert_array_equal(run(func, [], np.zeros(6, np.int64)), [0, 0, 4, 9, 16, 0])


def test_a_parallel_loop_sees_everything_around_it() -> None:
    x, y = Buffer("x", (N,), FLOAT64), Buffer("y", (N, imm(4)), FLOAT64)
    i, j, k = PrimVar("i"), PrimVar("j"), PrimVar("k")
    scale = PrimVar("scale", FLOAT64)
    local = Buffer("local", (imm(4),), FLOAT64, scope="local")
    body = Allocate(
        local,
        Seq(
            (
                For(k, ZERO, imm(4), Store(local, (k,), Load(x, (i,)) * scale)),
                For(j, ZERO, imm(4), Store(y, (i * 4 + j,), Load(local, (imm(3) - j,)))),
            )
        ),
    )
    whole = Let(scale, Load(x, (ZERO,)), For(i, ZERO, N, body, "parallel"))
    data = np.arange(1, 50_001, dtype=np.float64) + 1
    out = run(PrimFunc((x, y), whole), [data], np.zeros((50_000, 4)), {"n": 50_000})
    np.testing.assert_array_equal(out, np.repeat(data * 2, 4).reshape(-1, 4))


@pytest.mark.parametrize("stride", [1, -1, 3, 0])
def test_a_ramp_loads_its_elements(stride: int) -> None:
    x, y = Buffer("x", (imm(16),), FLOAT32), Buffer("y", (imm(4),), FLOAT32)
    func = PrimFunc((x, y), Store(y, (ramp(ZERO),), Load(x, (ramp(imm(5), stride),))))
    data = np.arange(16, dtype=np.float32)
    out = run(func, [data], np.zeros(4, np.float32))
    np.testing.assert_array_equal(out, data[5 + stride * np.arange(4)])


@pytest.mark.parametrize("stride", [1, -1, 3])
def test_a_ramp_stores_its_elements(stride: int) -> None:
    x, y = Buffer("x", (imm(4),), FLOAT32), Buffer("y", (imm(16),), FLOAT32)
    func = PrimFunc((x, y), Store(y, (ramp(imm(5), stride),), Load(x, (ramp(ZERO),))))
    data = f32(1, 2, 3, 4)
    expected = np.zeros(16, np.float32)
    expected[5 + stride * np.arange(4)] = data
    np.testing.assert_array_equal(run(func, [data], np.zeros(16, np.float32)), expected)


def test_sums_and_products_of_ramps_are_ramps() -> None:
    x, y = Buffer("x", (imm(40),), FLOAT32), Buffer("y", (imm(4),), FLOAT32)
    index = Broadcast(imm(7), 4) + ramp(imm(1)) * Broadcast(imm(2), 4)
    func = PrimFunc((x, y), Store(y, (ramp(ZERO),), Load(x, (index,))))
    kernel = build({"k": func})["k"]
    assert "<4 x i64>" not in kernel.code.llvm("k").replace("<4 x i64> <i64 0", "")
    data = np.arange(40, dtype=np.float32)
    out = np.zeros(4, np.float32)
    kernel([data, out])
    np.testing.assert_array_equal(out, data[9:17:2])


def test_indices_from_memory_gather_and_scatter() -> None:
    at, x, y = (
        Buffer("at", (imm(4),), INT64),
        Buffer("x", (imm(8),), FLOAT32),
        Buffer("y", (imm(8),), FLOAT32),
    )
    places = Load(at, (ramp(ZERO),))
    func = PrimFunc((at, x, y), Store(y, (places,), Load(x, (places,))))
    data = np.arange(8, dtype=np.float32)
    out = run(func, [np.asarray([6, 1, 3, 0]), data], np.full(8, -1, np.float32))
    np.testing.assert_array_equal(out, [0, 1, -1, 3, -1, -1, 6, -1])


@pytest.mark.parametrize("stride", [1, -1, 2])
def test_lanes_that_are_off_touch_no_memory(stride: int) -> None:
    """Half of the lanes point far outside; the tail of the output stays as it was."""
    x, y = Buffer("x", (imm(4),), FLOAT32), Buffer("y", (imm(4),), FLOAT32)
    start, far = imm(0 if stride > 0 else 3), imm(1 << 40)
    lane = ramp(start, stride)
    on = Compare("lt", ramp(ZERO), Broadcast(imm(2), 4))
    away = Select(on, lane, lane + Broadcast(far, 4))
    plain = PrimFunc((x, y), Store(y, (lane,), Load(x, (lane,), on), on))
    scattered = PrimFunc((x, y), Store(y, (away,), Load(x, (away,), on), on))
    data = f32(1, 2, 3, 4)
    expected = np.full(4, -1, np.float32)
    used = [i for i in (np.arange(2) * stride + (0 if stride > 0 else 3)) if 0 <= i < 4]
    expected[used] = data[used]
    for func in (plain, scattered):
        out = run(func, [data], np.full(4, -1, np.float32), checks=True)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("level", ["sse4.2", "avx2", "host"])
@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "float64"])
def test_the_first_lanes_are_stored_and_no_others(name: str, lanes: int, level: str) -> None:
    """As tails of rows are, whose masks are told by how many elements are left, and named."""
    target = LEVELS.get(level, HOST)
    if not runs_here(target):
        pytest.skip(f"this machine has no {level}")
    d, m = dtype(name), SizeVar("m")
    x, y, mask = Buffer("x", (N,), d), Buffer("y", (N,), d), PrimVar("mask", BOOL.with_lanes(lanes))
    at, short = ramp(ZERO, 1, lanes), Compare("lt", ramp(ZERO, 1, lanes), Broadcast(m, lanes))
    both = Binary("and", short, Compare("lt", ramp(ZERO, 1, lanes), Broadcast(N, lanes)))
    body = Let(mask, both, Store(y, (at,), Load(x, (at,), mask), mask))
    kernel = build({"k": PrimFunc((x, y, m), body)}, target=target)["k"]
    data = np.arange(1, lanes + 1).astype(d.numpy)
    for count in range(-1, lanes + 2):
        for size in range(max(0, count), lanes + 1):
            found = np.zeros(size, d.numpy)
            kernel([data[:size], found], {"n": size, "m": count})
            want = np.where(np.arange(size) < count, data[:size], 0)
            np.testing.assert_array_equal(found, want.astype(d.numpy))


def test_a_load_that_is_off_is_zero() -> None:
    x, y = Buffer("x", (imm(4),), FLOAT32), Buffer("y", (imm(8),), FLOAT32)
    on = Compare("lt", ramp(ZERO, lanes=8), Broadcast(imm(3), 8))
    func = PrimFunc((x, y), Store(y, (ramp(ZERO, lanes=8),), Load(x, (ramp(ZERO, lanes=8),), on)))
    out = run(func, [f32(1, 2, 3, 4)], np.full(8, -1, np.float32), checks=True)
    np.testing.assert_array_equal(out, [1, 2, 3, 0, 0, 0, 0, 0])


def test_select_loads_only_in_the_branch_taken() -> None:
    """Indices of the other branch are out of bounds, for scalars and for vectors."""
    x, i = Buffer("x", (imm(4),), FLOAT32), PrimVar("i")
    scalar, vector = Buffer("s", (imm(8),), FLOAT32), Buffer("v", (imm(8),), FLOAT32)
    zero = imm(0.0, FLOAT32)
    padded = Select(Compare("lt", i, imm(4)), Load(x, (i,)), zero)
    lanes = ramp(ZERO, lanes=8)
    below = Compare("lt", lanes, Broadcast(imm(4), 8))
    masked = Select(below, Load(x, (lanes,)), wide(0.0, 8))
    data = f32(1, 2, 3, 4)
    for out, body in (
        (scalar, For(i, ZERO, imm(8), Store(scalar, (i,), padded))),
        (vector, Store(vector, (lanes,), masked)),
    ):
        got = run(PrimFunc((x, out), body), [data], np.full(8, -1, np.float32), checks=True)
        np.testing.assert_array_equal(got, [1, 2, 3, 4, 0, 0, 0, 0])


def test_what_a_condition_has_loaded_needs_no_branch() -> None:
    x, y, i = Buffer("x", (N,), INT64), Buffer("y", (N,), INT64), PrimVar("i")
    value = Load(x, (i,))
    told, other = Compare("lt", value, imm(0)), Load(x, (N - imm(1) - i,))
    data = np.asarray([3, -2, 0, -7], np.int64)
    for orelse, branches, want in ((value, 0, [3, 2, 0, -3]), (other, 1, [-7, 2, -2, -3])):
        body = For(i, ZERO, N, Store(y, (i,), Select(told, value + N, orelse)))
        kernel = PrimFunc((x, y), body)
        text = compile_kernels({"k": kernel}, HOST).listing("k").llvm
        assert text.count("%then") == 2 * branches  # where it is gone to, and come from
        got = run(kernel, [data], np.zeros(4, np.int64), {"n": 4})
        np.testing.assert_array_equal(got, want)


def test_what_is_stored_where_memory_says_goes_one_by_one() -> None:
    x, at, y = Buffer("x", (N,), FLOAT32), Buffer("at", (N,), INT64), Buffer("y", (N,), FLOAT32)
    i, place = PrimVar("i"), PrimVar("place")
    stored = IfThen(Compare("ge", place, imm(0)), Store(y, (place,), Load(x, (i,))))
    kernel = PrimFunc((x, at, y), For(i, ZERO, N, Let(place, Load(at, (i,)), stored)))
    listing = compile_kernels({"k": kernel}, HOST).listing("k")
    assert '!"llvm.loop.vectorize.enable", i1 false' in listing.llvm
    assert "x i64>" not in listing.optimized
    given = [f32(1, 2, 3, 4), np.asarray([2, -1, 0, 2])]
    got = run(kernel, given, np.zeros(4, np.float32), {"n": 4})
    np.testing.assert_array_equal(got, [3, 0, 4, 0])


def test_while_if_and_let() -> None:
    """Collatz steps of each number."""
    x, y, i = Buffer("x", (N,), INT64), Buffer("y", (N,), INT64), PrimVar("i")
    n, steps = Buffer("n", (imm(1),), INT64), Buffer("steps", (imm(1),), INT64)
    now, count = Load(n, (ZERO,)), Load(steps, (ZERO,))
    half = PrimVar("half", BOOL)
    step: Stmt = Let(
        half,
        Compare("eq", now % imm(2), ZERO),
        IfThen(half, Store(n, (ZERO,), now // imm(2)), Store(n, (ZERO,), now * imm(3) + imm(1))),
    )
    body = Seq(
        (
            Store(n, (ZERO,), Load(x, (i,))),
            Store(steps, (ZERO,), ZERO),
            PrimWhile(
                Compare("ne", now, imm(1)), Seq((step, Store(steps, (ZERO,), count + imm(1))))
            ),
            Store(y, (i,), count),
        )
    )
    func = PrimFunc((x, y), For(i, ZERO, N, Allocate(n, Allocate(steps, body))))
    out = run(func, [np.asarray([1, 2, 3, 27])], np.zeros(4, np.int64), {"n": 4})
    np.testing.assert_array_equal(out, [0, 1, 7, 111])


@pytest.mark.parametrize("scope", ["global", "local"])
def test_big_and_symbolic_storage(scope: str) -> None:
    x, y, i, j = Buffer("x", (N,), FLOAT32), Buffer("y", (N,), FLOAT32), PrimVar("i"), PrimVar("j")
    kept = Buffer("kept", (N * 3,), FLOAT32, scope=scope)
    body = Seq(
        (
            For(i, ZERO, N, Store(kept, (i * 3,), Load(x, (i,))), "parallel"),
            For(j, ZERO, N, Store(y, (j,), Load(kept, ((N - 1 - j) * 3,)))),
        )
    )
    data = np.arange(70_001, dtype=np.float32)
    out = run(PrimFunc((x, y), Allocate(kept, body)), [data], data * 0, {"n": len(data)})
    np.testing.assert_array_equal(out, data[::-1])


def _asserting(kind: ForKind) -> PrimFunc:
    x, i = Buffer("x", (N,), INT32), PrimVar("i")
    inside = Seq(
        (
            Assert(Compare("ge", Load(x, (i,)), imm(0, INT32)), "negative"),
            Assert(Compare("lt", Load(x, (i,)), imm(10, INT32)), "too big"),
            Store(x, (i,), Load(x, (i,)) + imm(1, INT32)),
        )
    )
    return PrimFunc((x,), For(i, ZERO, N, inside, kind))


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_the_result_names_the_assert_that_failed(kind: ForKind) -> None:
    kernel = build({"k": _asserting(kind)})["k"]
    assert kernel.code.messages["k"] == ("negative", "too big")
    for bad, expected in ((5, 0), (-1, 1), (10, 2)):
        data = np.zeros(50_000, np.int32)
        data[40_000] = bad
        assert kernel([data], {"n": data.size}) == expected


def test_checks_find_an_index_out_of_bounds() -> None:
    x, y, i = Buffer("x", (N,), FLOAT32), Buffer("y", (N,), FLOAT32), PrimVar("i")
    at = PrimVar("at")
    func = PrimFunc((x, y, at), For(i, ZERO, N, Store(y, (i,), Load(x, (i + at,)))))
    kernel = build({"k": func}, checks=True)["k"]
    data = np.zeros(8, np.float32)
    results = [kernel([data, data.copy()], {"n": 8}, [s]) for s in (0, 1, -1, 100)]
    assert results == [0, OUT_OF_BOUNDS, OUT_OF_BOUNDS, OUT_OF_BOUNDS]


def test_scalar_parameters() -> None:
    y = Buffer("y", (imm(1),), FLOAT64)
    a, b, flag = PrimVar("a", FLOAT32), PrimVar("b", INT32), PrimVar("flag", BOOL)
    value = Select(
        flag,
        Load(y, (ZERO,)) + imm(1.0, FLOAT64),
        Binary("mul", imm(2.0, FLOAT64), imm(3.0, FLOAT64)),
    )
    ok = Seq(
        (
            Assert(Compare("eq", a, imm(1.5, FLOAT32)), "a"),
            Assert(Compare("eq", b, imm(-7, INT32)), "b"),
            Store(y, (ZERO,), value),
        )
    )
    kernel = build({"k": PrimFunc((y, a, b, flag), ok)})["k"]
    out = np.asarray([41.0])
    assert kernel([out], scalars=[1.5, -7, True]) == 0
    assert out[0] == 42
    assert kernel([out], scalars=[1.5, -7, False]) == 0
    assert out[0] == 6
    assert kernel([out], scalars=[1.5, 7, False]) == 2


def test_names_of_the_runtime_are_taken() -> None:
    with pytest.raises(UnityError, match="must not be named malloc"):
        build({"malloc": _asserting("serial")})


@pytest.mark.parametrize("n", [1, 4, 9])
def test_temporaries_of_less_than_nothing_have_no_elements(n: int) -> None:
    """Keys that rows of a block see, of which there may be fewer than none."""
    func = parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    for i in range(n):
        t = T.alloc(((n + i - 5) * 20,), "float32")
        for j in range((n + i - 5) * 20):
            t[j] = a[i] + 1.0
        c[i] = 1.0
        for j in range((n + i - 5) * 20):
            c[i] = c[i] + t[j]
""").prim_funcs()["main"]
    assert_same(func, func, {"n": n})
    x, got = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    assert build({"k": func})["k"]([x, got], {"n": n}) == 0
    some = 20 * np.maximum(n + np.arange(n) - 5, 0)
    np.testing.assert_array_equal(got, 1 + some * (x + 1))


def test_an_index_that_loads_is_another_number_when_memory_changed() -> None:
    """A walk through a table: each step reads where the next one is."""
    func = parse("""
@script.prim_func
def main(table: i64[Buffer, 16], out: i64[Buffer, 4]) -> None:
    at = T.alloc((1,), "int64")
    at[0] = 0
    out[0] = table[at[0] * 2 + 1]
    at[0] = table[at[0] * 2]
    out[1] = table[at[0] * 2 + 1]
    at[0] = table[at[0] * 2]
    out[2] = table[at[0] * 2 + 1]
    at[0] = table[at[0] * 2]
    out[3] = table[at[0] * 2 + 1]
""").prim_funcs()["main"]
    table = np.asarray([3, 30, 0, 0, 5, 50, 2, 20, 0, 0, 7, 70, 0, 0, 1, 11], np.int64)
    out = run(func, [table], np.zeros(4, np.int64))
    np.testing.assert_array_equal(out, [30, 20, 50, 70])


@pytest.mark.parametrize(("second", "times"), [("i // 3", 1), ("t[0] // 3", 4)])
def test_a_division_that_indices_share_is_worked_out_once(
    second: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that reads memory may be another number when it is met again."""
    func = parse(f"""
@script.prim_func
def main(a: f32[Buffer, 8], t: i64[Buffer, 1], c: f32[Buffer, 8]) -> None:
    for i in range(6):
        c[{second}] = a[{second} * 2]
        c[{second} * 3 + 2] = a[{second} * 4 + 1]
""").prim_funcs()["main"]
    divided: list[BinaryOp] = []

    def counted(
        em: Emitter, op: BinaryOp, dtype: DType, a: str, b: str, *, nonnegative: bool, safe: bool
    ) -> str:
        divided.append(op)
        return int_binary(em, op, dtype, a, b, nonnegative=nonnegative, safe=safe)

    monkeypatch.setattr(expr, "int_binary", counted)
    a, t = np.arange(8, dtype=np.float32), np.asarray([5], np.int64)
    c = run(func, [a, t], np.zeros(8, np.float32))
    assert divided == ["floordiv"] * times
    np.testing.assert_array_equal(c[[1, 5]], a[[2, 5]])
