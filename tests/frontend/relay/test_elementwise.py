"""Relay's elementwise operators and reductions, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.frontend.relay.calls import Case, check_interpreted

_DRAW = np.random.default_rng(1)
X = _DRAW.uniform(0.1, 0.9, (2, 3)).astype(np.float32)
Y = _DRAW.uniform(-2, 2, (2, 3)).astype(np.float32)
ROW = _DRAW.uniform(0.5, 2, (3,)).astype(np.float32)
INTS = np.array([[-7, 7, -8], [9, 0, 100]], np.int32)
DIVISORS = np.array([[2, -2, 3], [4, 5, -7]], np.int32)
BOOLS = np.array([[True, False, True], [False, False, True]])


def _erf(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([erf(v) for v in x.flat], np.float32).reshape(x.shape)


def _truncated(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.trunc(a.astype(np.float64) / b.astype(np.float64)).astype(np.int32)


def test_of_one_element() -> None:
    functions: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
        "exp": np.exp, "fast_exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10,
        "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos,
        "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
        "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "fast_tanh": np.tanh,
        "asinh": np.arcsinh, "acosh": lambda x: np.arccosh(x), "atanh": np.arctanh,
        "erf": _erf, "fast_erf": _erf, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "abs": np.abs, "negative": np.negative, "sign": np.sign, "copy": lambda x: x,
        "zeros_like": np.zeros_like, "ones_like": np.ones_like,
        "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    }  # fmt: skip
    cases = [
        Case(name, [x], function(x).astype(bool if name.startswith("is") else np.float32))
        for name, function in functions.items()
        for x in [X + 1 if name == "acosh" else X]
    ]
    for name in ("floor", "ceil", "trunc"):
        cases += [Case(name, [Y], getattr(np, name)(Y)), Case(name, [INTS], INTS)]
    check_interpreted(cases)


def test_halves_are_rounded_away_from_zero() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, -0.2, 8388609.0], np.float32)
    wanted = np.array([-3, -2, -1, 1, 2, 3, 0, 0, 8388609], np.float32)
    check_interpreted([Case("round", [x], wanted), Case("round", [INTS], INTS)])


def test_integers() -> None:
    squares = np.array([0, 1, 2, 3, 4, 8, 9, 10, 1 << 30], np.int32)
    check_interpreted(
        [
            Case("sqrt", [squares], np.floor(np.sqrt(squares)).astype(np.int32)),
            Case("abs", [INTS], abs(INTS)),
            Case("nn.relu", [INTS], np.maximum(INTS, 0)),
            Case("bitwise_not", [INTS], ~INTS),
            Case("negative", [INTS], -INTS),
            Case("divide", [INTS, DIVISORS], _truncated(INTS, DIVISORS)),
            Case("trunc_divide", [INTS, DIVISORS], _truncated(INTS, DIVISORS)),
            Case("floor_divide", [INTS, DIVISORS], INTS // DIVISORS),
            Case("mod", [INTS, DIVISORS], np.fmod(INTS, DIVISORS)),
            Case("trunc_mod", [INTS, DIVISORS], np.fmod(INTS, DIVISORS)),
            Case("floor_mod", [INTS, DIVISORS], np.mod(INTS, DIVISORS)),
            Case("left_shift", [INTS, abs(DIVISORS)], INTS << abs(DIVISORS)),
            Case("right_shift", [INTS, abs(DIVISORS)], INTS >> abs(DIVISORS)),
            Case("bitwise_and", [INTS, DIVISORS], INTS & DIVISORS),
            Case("bitwise_or", [INTS, DIVISORS], INTS | DIVISORS),
            Case("bitwise_xor", [INTS, DIVISORS], INTS ^ DIVISORS),
        ]
    )


def test_of_two_elements_that_broadcast() -> None:
    arithmetic = {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
        "maximum": np.maximum, "minimum": np.minimum, "power": np.power,
    }  # fmt: skip
    comparisons = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    cases = [Case(n, [X, ROW], f(X, ROW)) for n, f in arithmetic.items()]
    cases += [Case(n, [X, ROW], getattr(np, n)(X, ROW)) for n in comparisons]
    cases += [
        Case(n, [BOOLS, BOOLS[0]], getattr(np, n)(BOOLS, BOOLS[0]))
        for n in ("logical_and", "logical_or", "logical_xor")
    ]
    cases.append(Case("logical_not", [BOOLS], ~BOOLS))
    check_interpreted(cases)


def test_choice_and_casts() -> None:
    check_interpreted(
        [
            Case("where", [BOOLS, X, ROW], np.where(BOOLS, X, ROW)),
            Case("where", [INTS, X, Y], np.where(INTS != 0, X, Y)),
            Case("clip", [Y], np.clip(Y, -1, 1), a_min=-1.0, a_max=1.0),
            Case("clip", [INTS], np.clip(INTS, -5, 9), a_min=-5.0, a_max=9.0),
            Case("clip", [INTS.astype(np.int8)], np.clip(INTS, -5, 127).astype(np.int8),
                 a_min=-5.0, a_max=1e9),
            Case("cast", [Y], Y.astype(np.int8), dtype="int8"),
            Case("cast", [Y], Y.astype(np.float16), dtype="float16"),
            Case("cast", [INTS], INTS.astype(np.int64), dtype="int64"),
            Case("cast_like", [INTS, X], INTS.astype(np.float32)),
        ]
    )  # fmt: skip


def test_reductions() -> None:
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4) / 8
    cases: list[Case] = []
    for name in ("sum", "prod", "max", "min", "mean"):
        f = getattr(np, name)
        cases += [
            Case(name, [x], np.asarray(f(x))),
            Case(name, [x], f(x, axis=1), axis=(1,)),
            Case(name, [x], f(x, axis=(0, 2), keepdims=True), axis=(-1, 0), keepdims=True),
            Case(name, [x], f(x, axis=(0, 2)), axis=(1,), exclude=True),
        ]
    mean = x.mean(1, keepdims=True)
    ints = np.array([[-7, 2, 3], [1, 1, 2]], np.int32)
    cases += [
        Case("mean", [ints], _truncated(ints.sum(1), np.array(3)), axis=(1,)),
        Case("sum", [ints], ints.sum(0, dtype=np.int32), axis=(0,)),
        Case("variance", [x, mean], x.var(1), axis=(1,)),
        Case("variance", [x, mean], x.var(1, ddof=1), axis=(1,), unbiased=True),
        Case("all", [BOOLS], np.array([False, False]), axis=(1,)),
        Case("any", [BOOLS], np.array([True, False, True]), axis=(0,)),
        Case("logsumexp", [x], np.log(np.exp(x).sum(2, keepdims=True)), axis=(2,), keepdims=True),
    ]
    check_interpreted(cases)


def test_places_of_extremes() -> None:
    x = np.array([[3, 1, 3], [0, 5, 5]], np.float32)
    check_interpreted(
        [
            Case("argmax", [x], np.array([0, 1], np.int32), axis=(1,)),
            Case("argmax", [x], np.array([2, 2], np.int32), axis=(1,), select_last_index=True),
            Case("argmin", [x], np.array([[1, 0, 0]], np.int32), axis=(0,), keepdims=True),
            Case("argmax", [x], np.asarray(4, np.int32)),
            Case("argmin", [x], np.array([1, 0], np.int32), axis=(0,), exclude=True),
        ]
    )
