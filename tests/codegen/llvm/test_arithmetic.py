"""Operations on every dtype, scalar and vector, against numpy and ml_dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.llvm.run_kernel import HOST, build, run
from tests.rotation import examples
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, Array, DType, dtype
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer, For, PrimFunc, Store
from unity.machine.target import Target

N = SizeVar("n")
BASELINE = Target("cpu", HOST.triple, "x86-64", ("sse2",)) if "x86" in HOST.triple else HOST
"""The host without any feature that is not in every such machine: all fallbacks are taken."""
NARROW = [
    "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float4_e2m1fn",
]  # fmt: skip
INTS = [
    "int2", "int4", "int8", "int16", "int32", "int64",
    "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
EVERY = [*INTS, *NARROW, "float32", "float64", "bool"]


def elementwise(
    value: Callable[..., PrimExpr], ins: Sequence[DType], out: DType, lanes: int
) -> PrimFunc:
    """A kernel that applies an expression to each element of its inputs."""
    buffers = [Buffer(f"x{k}", (N,), d) for k, d in enumerate(ins)]
    y, i = Buffer("y", (N,), out), PrimVar("i")
    at: PrimExpr = i if lanes == 1 else Ramp(i * imm(lanes), imm(1), lanes)
    body = Store(y, (at,), value(*(Load(b, (at,)) for b in buffers)))
    return PrimFunc((*buffers, y), For(i, imm(0), N // imm(lanes), body))


def apply(
    value: Callable[..., PrimExpr],
    inputs: Sequence[Array],
    out: DType,
    lanes: int = 1,
    target: Target = HOST,
) -> Array:
    """The expression on arrays whose length is a multiple of `lanes`."""
    func = elementwise(value, [dtype(a.dtype) for a in inputs], out, lanes)
    return run(
        func, inputs, np.zeros(inputs[0].size, out.numpy), {"n": inputs[0].size}, target=target
    )


def conversion(to: DType) -> Callable[[PrimExpr], PrimExpr]:
    """A cast, of as many lanes as the value."""
    return lambda x: Cast(to.with_lanes(x.dtype.lanes), x)


def binary(op: BinaryOp, constant: int | None = None) -> Callable[..., PrimExpr]:
    """An operation on two values, or on one and a constant."""
    if constant is not None:
        return lambda x: Binary(op, x, imm(constant))
    return lambda x, y: Binary(op, x, y)


def comparison(op: CompareOp) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """A comparison of two values."""
    return lambda x, y: Compare(op, x, y)


def every_value(of: DType) -> Array:
    """All values of a narrow float type."""
    if of.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(of.numpy)
    return np.arange(1 << 8, dtype=np.uint8).view(of.numpy)


def limits(d: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if d.kind == "uint":
        return 0, (1 << d.bits) - 1
    return -(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1


def test_loads_and_stores_keep_every_dtype() -> None:
    rng = np.random.default_rng(0)
    for name in EVERY:
        d = dtype(name)
        data = rng.integers(-8 if d.kind != "uint" else 0, 8, 64).astype(d.numpy)
        for lanes in (1, 8):
            got = apply(lambda x: x, [data], d, lanes)
            np.testing.assert_array_equal(got.view(np.uint8), data.view(np.uint8))


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_widen_exactly(name: str, target: Target) -> None:
    data = every_value(dtype(name))[: 1 << dtype(name).bits]
    got = apply(conversion(FLOAT32), [data], FLOAT32, 16, target)
    np.testing.assert_array_equal(got, data.astype(np.float32))


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", NARROW)
def test_narrowing_rounds_to_even(name: str, source: str, target: Target) -> None:
    """Every value of the type, the midpoints between, and the neighbours of these."""
    d, s = dtype(name), dtype(source)
    with np.errstate(all="ignore"):
        values = every_value(d).astype(np.float64)
    finite = np.unique(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / 2
    points = np.concatenate([finite, middle, finite * 1.5, [np.inf, -np.inf, np.nan, 1e30, -1e30]])
    with np.errstate(all="ignore"):
        points = points.astype(s.numpy)
    around = np.concatenate([points, np.nextafter(points, s.numpy.type(np.inf)),
                             np.nextafter(points, s.numpy.type(-np.inf))])  # fmt: skip
    around = np.resize(around, -(-around.size // 16) * 16)
    got = apply(conversion(d), [around], d, 16, target)
    with np.errstate(all="ignore"):
        want = around.astype(d.numpy).astype(np.float32)
    if name == "bfloat16" and target.has("avx512bf16"):  # the instruction flushes these
        tiny = np.abs(around) < 2.0**-126
        want[tiny] = np.copysign(np.float32(0), want[tiny])
    np.testing.assert_array_equal(got.astype(np.float32), want)


_BINARY: dict[BinaryOp, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
_PASSING_NAN: dict[BinaryOp, Callable[..., Array]] = {"fmin": np.fmin, "fmax": np.fmax}


@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", [n for n in EVERY if n != "bool" and dtype(n).bits >= 8])
def test_arithmetic_is_numpys(name: str) -> None:
    """Integers wrap, floats round once, NaN propagates."""
    d = dtype(name)
    rng = np.random.default_rng(1)
    if d.is_float:
        a, b = (rng.standard_normal(64).astype(d.numpy) for _ in range(2))
        a[:8], b[4:12] = d.numpy.type(np.nan), d.numpy.type(np.nan)
    else:
        low, high = limits(d)
        a, b = (
            np.asarray([rng.bit_generator.random_raw() % (high - low + 1) + low for _ in range(64)])
            .astype(object)
            .astype(d.numpy)
            for _ in range(2)
        )
    functions = _BINARY | (_PASSING_NAN if d.is_float else {})
    funcs = {
        f"{op}_{lanes}": elementwise(binary(op), [d, d], d, lanes)
        for op in functions
        for lanes in (1, 16)
    }
    kernels = build(funcs)
    with np.errstate(all="ignore"):
        for op, function in functions.items():
            for lanes in (1, 16):
                out = np.zeros(64, d.numpy)
                kernels[f"{op}_{lanes}"]([a, b, out], {"n": 64})
                want = function(a, b)
                np.testing.assert_array_equal(
                    out.astype(np.float64), want.astype(np.float64), f"{op} {lanes}"
                )


def test_integers_of_few_bits_wrap() -> None:
    for name, low, high in (("int4", -8, 8), ("uint4", 0, 16), ("int2", -2, 2), ("uint2", 0, 4)):
        d = dtype(name)
        pairs = np.stack(np.meshgrid(np.arange(low, high), np.arange(low, high)), -1).reshape(-1, 2)
        a, b = (np.ascontiguousarray(pairs[:, k]).astype(d.numpy) for k in (0, 1))
        products: dict[BinaryOp, Callable[..., Array]] = {"add": np.add, "mul": np.multiply}
        for op, function in products.items():
            exact = function(pairs[:, 0], pairs[:, 1]).astype(np.int64)
            got = apply(binary(op), [a, b], d, 16)
            want = (exact - low) % (high - low) + low
            np.testing.assert_array_equal(got.astype(np.int64), want)


_DIVISIONS: tuple[BinaryOp, ...] = ("floordiv", "floormod", "truncdiv", "truncmod")


def _divided(op: BinaryOp, a: int, b: int) -> int:
    if b == 0:
        return 0
    if op == "floordiv":
        return a // b
    if op == "floormod":
        return a % b
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if op == "truncdiv" else a - b * quotient


@pytest.mark.parametrize("d", [INT8, INT32, INT64, dtype("uint8")], ids=str)
def test_division_of_integers_never_traps(d: DType) -> None:
    low, high = limits(d)
    numbers = [low, low + 1, high, 0, 1, 2, 3, 7, 8, 100]
    numbers += [] if low == 0 else [-1, -2, -3, -7, -8]
    a = np.asarray([x for x in numbers for _ in numbers], d.numpy)
    b = np.asarray([y for _ in numbers for y in numbers], d.numpy)
    keep = a.size // 4 * 4
    for op in _DIVISIONS:
        want = [_divided(op, int(x), int(y)) for x, y in zip(a, b, strict=True)]
        wrapped = np.asarray(want, object) % (1 << d.bits)
        for lanes in (1, 4):
            got = apply(binary(op), [a[:keep], b[:keep]], d, lanes)
            np.testing.assert_array_equal(
                got.astype(object) % (1 << d.bits), wrapped[:keep], f"{op} {lanes}"
            )


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("d", [INT32, INT64], ids=str)
def test_quotients_of_vectors_are_exact(d: DType, lanes: int) -> None:
    """They may be had from doubles, which hold few of the large numbers."""
    rng = np.random.default_rng(lanes)
    low, high = limits(d)
    count = 1 << 12
    some = rng.integers(low, high, count, endpoint=True) >> rng.integers(0, d.bits, count)
    edges = [low, low + 1, high, high - 1, high - 1024, high // 2, 1, -1, 2, -2, 3, 1 << 30]
    edges += [(1 << 53) - 1, (1 << 53) + 1, -(1 << 53) - 1] if d.bits == 64 else []
    b = np.where(rng.random(count) < 0.3, rng.choice(edges, count), some).astype(d.numpy)
    with np.errstate(over="ignore"):  # near whole multiples, whose quotients are easily off by one
        times = rng.integers(-2000, 2000, count).astype(d.numpy)
        near = np.multiply(b, times) + rng.integers(-1, 2, count).astype(d.numpy)
    a = np.where(rng.random(count) < 0.5, near, np.roll(some, 1).astype(d.numpy))
    for op in _DIVISIONS:
        want = [_divided(op, int(x), int(y)) for x, y in zip(a, b, strict=True)]
        got = apply(binary(op), [a, b], d, lanes).astype(object)
        np.testing.assert_array_equal((got - np.asarray(want, object)) % (1 << d.bits), 0, op)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, -3])
def test_division_by_constants(divisor: int) -> None:
    a = np.arange(-70, 70, dtype=np.int64)
    for op in _DIVISIONS:
        got = apply(binary(op, divisor), [a], INT64)
        np.testing.assert_array_equal(got, [_divided(op, int(x), divisor) for x in a], op)


def test_division_of_counters_is_unsigned() -> None:
    """Loop counters are not negative: no correction of the quotient is emitted."""
    y, i = Buffer("y", (N,), INT64), PrimVar("i")
    func = PrimFunc((y,), For(i, imm(0), N, Store(y, (i,), i // imm(3) + i % imm(5))))
    text = build({"k": func})["k"].code.llvm("k")
    assert "udiv" in text
    assert "urem" in text
    assert "sdiv" not in text


@pytest.mark.parametrize("op", ["shl", "shr"])
def test_shifts_past_the_width(op: BinaryOp) -> None:
    a = np.asarray([1, -1, 127, -128] * 4, np.int8)
    b = np.repeat(np.asarray([0, 1, 7, 8], np.int8), 4)
    got = apply(binary(op), [a, b], INT8, 4)
    exact = [
        int(x) << int(s) if op == "shl" else int(x) >> int(s) for x, s in zip(a, b, strict=True)
    ]
    np.testing.assert_array_equal(got, (np.asarray(exact) + 128) % 256 - 128)


_COMPARE: dict[CompareOp, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_comparisons(name: str) -> None:
    d = dtype(name)
    values: list[float] = [0, 1, 2, 127, 200] if d.kind == "uint" else [0, 1, -1, 2, 127]
    if d.is_float:
        values = [*values, np.nan, np.inf, -0.0]
    a = np.asarray([x for x in values for _ in values]).astype(d.numpy)
    b = np.asarray([y for _ in values for y in values]).astype(d.numpy)
    for op, function in _COMPARE.items():
        got = apply(comparison(op), [a, b], BOOL)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, function(a, b), op)


def test_casts_follow_numpy() -> None:
    """Between every two dtypes, in range and, from floats to small integers, out of it."""
    numbers = np.asarray([0, 1, -1, 2.5, -2.5, 7, 100, -100, 127.9, 255, 300, -129, 1e4, 7.5, 3, 6])
    for source in ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16"):
        s = dtype(source)
        with np.errstate(all="ignore"):
            data = numbers.astype(np.int64).astype(s.numpy) if s.is_int else numbers.astype(s.numpy)
        targets = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
                   "uint8", "uint16", "uint32", "bool"]  # fmt: skip
        funcs = {t: elementwise(conversion(dtype(t)), [s], dtype(t), 16) for t in targets}
        kernels = build(funcs)
        for name in targets:
            out = np.zeros(16, dtype(name).numpy)
            kernels[name]([data, out], {"n": 16})
            known = data  # ml_dtypes' own give 0 where a number does not fit, since 0.7
            if source == "bfloat16" and dtype(name).is_int:
                known = data.astype(np.float32)
            with np.errstate(all="ignore"):
                want = known.astype(dtype(name).numpy)
            np.testing.assert_array_equal(
                out.astype(np.float64), want.astype(np.float64), f"{source} to {name}"
            )


@pytest.mark.parametrize("limit", [1.5, math.nan, -math.nan])
@given(st.lists(st.floats(width=32), min_size=4, max_size=4), st.sampled_from(["min", "max"]))
@settings(max_examples=examples(4))
def test_minimum_with_a_constant_propagates_nan(
    limit: float, values: list[float], op: BinaryOp
) -> None:
    data = np.asarray(values, np.float32)
    bound = Imm(limit, FLOAT32.with_lanes(4))
    got = apply(lambda x: binary(op)(x, bound), [data], FLOAT32, 4)
    want = (np.minimum if op == "min" else np.maximum)(data, np.float32(limit))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("op", ["fmin", "fmax"])
def test_an_extreme_beside_numbers_passes_nan_over(
    op: Literal["fmin", "fmax"], lanes: int, target: Target
) -> None:
    """What is known to be a number takes one instruction; it must be the right operand of it."""
    data = np.array([1.5, math.nan, -math.inf, math.inf, -2.0, math.nan, 0.0, 7.0] * 2, np.float32)
    number = Imm(1.0, FLOAT32.with_lanes(lanes))
    want = (np.fmin if op == "fmin" else np.fmax)(data, np.float32(1.0))
    for value in (lambda x: Binary(op, x, number), lambda x: Binary(op, number, x)):
        np.testing.assert_array_equal(apply(value, [data], FLOAT32, lanes, target), want)


def test_a_product_and_a_sum_are_one_instruction() -> None:
    func = elementwise(lambda x, y: x * y + x, [FLOAT64, FLOAT64], FLOAT64, 4)
    text = build({"k": func})["k"].code.llvm("k")
    assert "llvm.fmuladd.v4f64" in text
    assert "fmul" not in text.replace("fmuladd", "")
