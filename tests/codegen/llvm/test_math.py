"""Elementary functions: within their documented error, and right at the special values."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, build
from tests.codegen.llvm.test_arithmetic import BASELINE, apply, elementwise
from unity.codegen.llvm.math.table import ULPS
from unity.ir.dtype import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, Array, DType
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, imm
from unity.machine.target import Target

COUNT = 640
UNDERFLOW = 0x10
"""FE_UNDERFLOW of x86."""
Draw = Callable[[np.random.Generator, int, float], Array]


def between(low: float, high: float) -> Draw:
    """Evenly over a range, a third of it near zero, where that is inside."""

    def draw(rng: np.random.Generator, count: int, _: float) -> Array:
        x = rng.uniform(low, high, count)
        near = count // 3
        x[:near] = rng.uniform(max(low, -1), min(high, 1), near)
        x[: near // 2] = rng.uniform(-1, 1, near // 2) * 10.0 ** -rng.uniform(0, 20, near // 2)
        return np.asarray(np.clip(x, low, high))

    return draw


def magnitudes(*, signs: bool = True, least: float = 0.0) -> Draw:
    """Evenly over the exponents, half of it of ordinary size."""

    def draw(rng: np.random.Generator, count: int, most: float) -> Array:
        x = 10.0 ** rng.uniform(-most, most, count)
        x[: count // 2] = rng.uniform(0.3, 4, count // 2)
        x = least + x if least else x
        return np.asarray(x * rng.choice([-1, 1], count) if signs else x)

    return draw


def angles(rng: np.random.Generator, count: int, most: float) -> Array:
    """Ordinary, near multiples of pi/2, and huge ones."""
    x = rng.uniform(-10, 10, count)
    x[::4] = np.round(rng.uniform(-1e5, 1e5, x[::4].size)) * (np.pi / 2)
    x[1::4] = 10.0 ** rng.uniform(5, most, x[1::4].size)
    return np.asarray(x)


ANY_SIZE, POSITIVE = magnitudes(), magnitudes(signs=False)
DRAWS: dict[str, tuple[Draw, Draw]] = {
    "exp": (between(-104, 88), between(-745, 709)),
    "exp2": (between(-149, 127), between(-1074, 1023)),
    "expm1": (between(-20, 88), between(-40, 709)),
    "sinh": (between(-89, 89), between(-710, 710)),
    "cosh": (between(-89, 89), between(-710, 710)),
    "tanh": (between(-12, 12), between(-22, 22)),
    "sigmoid": (between(-103, 30), between(-744, 40)),
    "log": (POSITIVE, POSITIVE),
    "log2": (POSITIVE, POSITIVE),
    "log10": (POSITIVE, POSITIVE),
    "log1p": (between(-0.999, 5), between(-0.999, 5)),
    "asinh": (ANY_SIZE, ANY_SIZE),
    "acosh": (magnitudes(signs=False, least=1.0), magnitudes(signs=False, least=1.0)),
    "atanh": (between(-0.9999, 0.9999), between(-0.9999, 0.9999)),
    "sin": (angles, angles),
    "cos": (angles, angles),
    "tan": (angles, angles),
    "asin": (between(-1, 1), between(-1, 1)),
    "acos": (between(-1, 1), between(-1, 1)),
    "atan": (ANY_SIZE, ANY_SIZE),
    "atan2": (ANY_SIZE, ANY_SIZE),
    "erf": (between(-6, 6), between(-6, 6)),
    "pow": (POSITIVE, POSITIVE),
    "sqrt": (POSITIVE, POSITIVE),
    "rsqrt": (POSITIVE, POSITIVE),
}
EXACT: dict[str, Callable[..., mpmath.mpf]] = {
    "expm1": mpmath.expm1,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "pow": mpmath.power,
}


def call(name: str) -> Callable[..., PrimExpr]:
    """The expression that calls an intrinsic."""

    def value(*args: PrimExpr) -> PrimExpr:
        result = INTRINSICS[name].result_dtype([a.dtype for a in args])
        return Intrinsic(name, args, result)

    return value


def evaluate(name: str, inputs: list[Array], d: DType, lanes: int, target: Target = HOST) -> Array:
    out = INTRINSICS[name].result_dtype([d] * len(inputs))
    func = elementwise(call(name), [d] * len(inputs), out, lanes)
    result = np.zeros(inputs[0].size, out.numpy)
    assert build({"k": func}, target)["k"]([*inputs, result], {"n": result.size}) == 0
    return result


def error_in_ulps(name: str, inputs: list[Array], got: Array) -> float:
    """The greatest distance from the exact value, in units of the last place of it."""
    exact = EXACT.get(name) or getattr(mpmath, name)
    worst = 0.0
    with mpmath.workprec(200):
        for k, value in enumerate(got.tolist()):
            true = exact(*(mpmath.mpf(float(x[k])) for x in inputs))
            nearest = got.dtype.type(float(true))
            if not np.isfinite(nearest):
                assert value == nearest, (name, [x[k] for x in inputs], value)
                continue
            unit = mpmath.mpf(float(np.spacing(np.abs(nearest))))
            worst = max(worst, float(abs(mpmath.mpf(value) - true) / unit))
    return worst


def drawn(name: str, d: DType) -> list[Array]:
    rng = np.random.default_rng(sum(map(ord, name)))
    single = d.bits == 32
    draw = DRAWS[name][0 if single else 1]
    most = 30.0 if single else 290.0
    with np.errstate(all="ignore"):
        inputs = [draw(rng, COUNT, most).astype(d.numpy) for _ in range(INTRINSICS[name].arity)]
        if name == "pow":
            limit = (85 if single else 700) / np.log(inputs[0].astype(np.float64))
            inputs[1] = (limit * rng.uniform(-1, 1, COUNT)).astype(d.numpy)
    return inputs


@pytest.mark.rotated(3)
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", sorted(ULPS))
def test_error_is_within_the_documented_bound(name: str, d: DType) -> None:
    inputs = drawn(name, d)
    vectors = evaluate(name, inputs, d, 512 // d.bits)
    assert error_in_ulps(name, inputs, vectors) <= ULPS[name][d.bits // 32 - 1]


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
def test_tanh_ends_at_one(target: Target) -> None:
    """Every float where the quotient of polynomials comes to 1, with and without fused steps."""
    first, last = (int(np.float32(x).view(np.int32)) for x in (7.5, 8.5))
    x = np.arange(first, last, dtype=np.int32).view(np.float32)
    for sign in (1, -1):
        y = np.multiply(sign, evaluate("tanh", [sign * x], FLOAT32, 4, target))
        assert y.max() == 1.0
        assert (y[x > 7.94] == 1.0).all()
        far = np.array([9.0, 20.0, 3e38, np.inf], np.float32)
        np.testing.assert_array_equal(evaluate("tanh", [sign * far], FLOAT32, 4, target), sign)


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_powers_of_what_is_never_positive(d: DType, target: Target) -> None:
    """``exp(min(x, 0))`` takes fewer steps: as exact, subnormal results and special values too."""
    least = -104.0 if d.bits == 32 else -746.0
    special = [0.0, -0.0, 3.0, math.inf, -math.inf, math.nan, least, 1.1 * least]
    x = np.concatenate([np.linspace(1.01 * least, 0.5, 4088), special]).astype(d.numpy)
    zero = imm(0.0, d)

    def power(x: PrimExpr) -> PrimExpr:
        return Intrinsic("exp", (Binary("min", x, zero),), x.dtype)

    with np.errstate(all="ignore"):
        want = np.exp(np.minimum(x, 0).astype(np.longdouble))
        ulp = np.spacing(want.astype(d.numpy)).astype(np.longdouble)
    for lanes in (1, 8):
        got = apply(power, [x], d, lanes, target)
        assert np.isnan(got[np.isnan(x)]).all()
        near = ~np.isnan(x)
        errors = np.abs(got[near].astype(np.longdouble) - want[near]) / ulp[near]
        assert errors.max() <= ULPS["exp"][d.bits // 32 - 1]


@pytest.mark.skipif(not HOST.triple.startswith("x86_64"), reason="flags as x86 has them")
@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_masked_elements_do_not_underflow(d: DType, target: Target) -> None:
    """Intel takes a hundred cycles for what does, and a mask of -10000 would do it each time."""
    environment = ctypes.CDLL("libm.so.6")
    masks = [-math.inf, -1e38, -1e4, -3000.0, 0.0, 0.5, 1.0, 2.0]
    x = np.array(masks, d.numpy)
    exps: dict[str, Callable[[PrimExpr], PrimExpr]] = {
        "exp": lambda x: Intrinsic("exp", (x,), x.dtype),
        "never positive": lambda x: Intrinsic("exp", (Binary("min", x, imm(0.0, d)),), x.dtype),
        "exp2": lambda x: Intrinsic("exp2", (x,), x.dtype),
        "sigmoid": lambda x: Intrinsic("sigmoid", (x,), x.dtype),
    }
    for name, value in exps.items():
        for lanes in (1, 8):
            (code, sizes) = {"kernel": elementwise(value, [d], d, lanes)}, {"n": x.size}
            kernel, out = build(code, target)["kernel"], np.ones_like(x)
            environment.feclearexcept(UNDERFLOW)
            assert kernel([x, out], sizes) == 0
            assert not environment.fetestexcept(UNDERFLOW), (name, lanes)
            at = x.astype(float) < -1e3
            assert (out[at] == 0).all()


@pytest.mark.rotated(2)
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_scalars_and_machines_without_features_agree(d: DType) -> None:
    """One implementation serves all: results differ by fused operations at most."""
    for name in sorted(ULPS):
        inputs = [x[:64] for x in drawn(name, d)]
        with np.errstate(all="ignore"):
            vectors = evaluate(name, inputs, d, 8)
            for other in (evaluate(name, inputs, d, 1), evaluate(name, inputs, d, 4, BASELINE)):
                a, b = vectors.astype(np.float64), other.astype(np.float64)
                near = 20.0 * np.spacing(np.abs(vectors)).astype(np.float64)
                same = (np.abs(a - b) <= near) | (a == b)
                assert same.all(), (name, [x[~same] for x in inputs])


_NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "abs": np.abs, "sign": np.sign,
}  # fmt: skip


@pytest.mark.rotated(2)
@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_special_values(d: DType, target: Target) -> None:
    tiny = 1e-40 if d.bits == 32 else 1e-310
    values = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        tiny,
        -tiny,
        1,
        -1,
        2,
        -2,
        0.5,
        -0.5,
        1.5,
        2.5,
        1e30,
    ]
    data = np.asarray(values, d.numpy)
    for name, function in _NUMPY.items():
        got = evaluate(name, [data], d, 8, target)
        with np.errstate(all="ignore"):
            want = function(data)
        wide = 2e-6 if d.bits == 32 else 1e-14
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), wide, err_msg=name
        )
        zero = (want == 0) & (got == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), name)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_inverse_functions_at_every_magnitude(d: DType, lanes: int) -> None:
    """Also far outside the domain, where what is computed on the way overflows or cancels."""
    limits = np.finfo(np.float32) if d == FLOAT32 else np.finfo(np.float64)
    most, tiny, least = (float(x) for x in (limits.max, limits.tiny, limits.smallest_subnormal))
    with np.errstate(all="ignore"):
        powers = 10.0 ** np.linspace(np.log10(tiny), np.log10(most) * 0.9999, 400)
        near = [1 + float(limits.eps), 1 - float(limits.epsneg)]
        ends = [most, tiny, least, least * 3, tiny / 2, *near, 0, 1, np.inf, np.nan]
        positive = np.concatenate([powers, ends]).astype(d.numpy)
        data = np.concatenate([positive, np.negative(positive)])
        data = np.resize(data, -(-data.size // lanes) * lanes)
        for name in ("acosh", "asinh", "atanh", "log1p", "asin", "acos"):
            got = evaluate(name, [data], d, lanes)
            want = _NUMPY[name](data)
            near_it = np.abs(got - want) <= 8 * np.spacing(np.abs(want))
            same = near_it | (got == want) | (np.isnan(got) & np.isnan(want))
            assert same.all(), (name, data[~same], got[~same], want[~same])


@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
def test_special_pairs(name: str, d: DType) -> None:
    values = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e30, -1e30, 1e-30]
    a = np.asarray([x for x in values for _ in values], d.numpy)
    b = np.asarray([y for _ in values for y in values], d.numpy)
    got = evaluate(name, [a, b], d, 8)
    function = {"pow": np.power, "atan2": np.arctan2, "fmod": np.fmod}[name]
    with np.errstate(all="ignore"):
        want = function(a, b)
    wide = 2e-6 if d.bits == 32 else 1e-14
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), wide)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
def test_the_error_function_never_passes_one(target: Target) -> None:
    data = np.linspace(3.5, 4.5, 1 << 15, dtype=np.float32)
    got = evaluate("erf", [data], FLOAT32, 16, target)
    assert got.max() == 1
    assert got[data >= 4].min() >= np.float32(1 - 2e-7)


def test_remainders_are_exact() -> None:
    rng = np.random.default_rng(2)
    for d, most in ((FLOAT32, 37), (FLOAT64, 300)):
        a, b = (
            (10.0 ** rng.uniform(-most, most, 128) * rng.choice([-1, 1], 128)).astype(d.numpy)
            for _ in range(2)
        )
        np.testing.assert_array_equal(evaluate("fmod", [a, b], d, 4), np.fmod(a, b))


@pytest.mark.parametrize("target", [HOST, BASELINE], ids=["host", "baseline"])
@pytest.mark.parametrize("d", [FLOAT32, FLOAT64], ids=str)
def test_remainders_next_to_whole_quotients_are_exact(d: DType, target: Target) -> None:
    rng = np.random.default_rng(3)
    # Up to what one division gives, and beyond; the divisors reach below the normal numbers.
    count = np.floor(2.0 ** rng.uniform(0, 26 if d.bits == 32 else 55, 1024))
    least = -140 if d.bits == 32 else -1060
    b = np.ldexp(rng.uniform(1, 2, 1024), rng.integers(least, 60, 1024)).astype(d.numpy)
    a = (count * b).astype(d.numpy)
    for way in (0, np.inf):
        a[::2] = np.nextafter(a[::2], np.asarray(way, d.numpy))
        for x, y in ((a, b), (np.negative(a), b), (a, np.negative(b))):
            with np.errstate(all="ignore"):
                want = np.fmod(x, y)
            got = evaluate("fmod", [x, y], d, 8, target)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_rounding_of_halves_and_big_numbers() -> None:
    data = np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388607.5, -4194303.5], np.float32)
    for target in (HOST, BASELINE):
        for name in ("floor", "ceil", "round", "trunc"):
            got = evaluate(name, [data], FLOAT32, 8, target)
            np.testing.assert_array_equal(got, _NUMPY[name](data), name)


def test_narrow_floats_are_rounded_after_the_function() -> None:
    data = np.linspace(-4, 4, 64).astype(np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate("exp", [data], FLOAT16, 16), np.exp(data))


def test_predicates() -> None:
    data = np.asarray([0, 1, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 3e38], np.float32)
    for name, function in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        np.testing.assert_array_equal(evaluate(name, [data], FLOAT32, 8), function(data))
    bits = np.asarray([True, False] * 4)
    np.testing.assert_array_equal(evaluate("likely", [bits], BOOL, 8), bits)


def test_functions_of_integers() -> None:
    data = np.asarray([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 12], np.int32)
    np.testing.assert_array_equal(evaluate("abs", [data], INT32, 8), np.abs(data))
    np.testing.assert_array_equal(evaluate("sign", [data], INT32, 4), np.sign(data))
    np.testing.assert_array_equal(evaluate("popcount", [data], INT32, 8),
                                  [bin(int(x) & 0xFFFFFFFF).count("1") for x in data])  # fmt: skip
    zeros = [32 - (int(x) & 0xFFFFFFFF).bit_length() for x in data]
    np.testing.assert_array_equal(evaluate("clz", [data], INT32, 8), zeros)
    exponents = np.asarray([0, 1, 2, 3, 5, 2, 3, 31], np.int32)
    for lanes in (1, 8):
        got = evaluate("pow", [data, exponents], INT32, lanes)
        exact = [
            (int(x) ** int(e) + 2**31) % 2**32 - 2**31 for x, e in zip(data, exponents, strict=True)
        ]
        np.testing.assert_array_equal(got, exact)


def test_every_intrinsic_of_the_language_has_code() -> None:
    for row in INTRINSICS.values():
        d = {"float": FLOAT32, "int": INT32, "number": FLOAT32, "any": BOOL}[row.accepts]
        inputs = [np.ones(8).astype(d.numpy)] * row.arity
        evaluate(row.name, inputs, d, 4)
