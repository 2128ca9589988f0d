"""Dims: rewrite rules agree with Python's integers; equality, bounds and text do what they say."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from unity.errors import UnityError
from unity.ir.dims import (
    Dim,
    Symbol,
    always_ge,
    as_dim,
    bounds,
    ceildiv,
    dim,
    dim_max,
    dim_min,
    dim_text,
    divisor,
    equal,
    evaluate,
    floordiv,
    floormod,
    substitute,
    symbols_of,
)

N, M, K = dim("n"), dim("m"), dim("k", min=4, max=64, multiple_of=4)
SYMBOLS: tuple[Symbol, ...] = (N, M, K)
Pair = tuple[Dim, Callable[[dict[Symbol, int]], int]]


def leaves() -> st.SearchStrategy[Pair]:
    """A dim and the function of its symbols' values that it must equal."""

    def of_symbol(s: Symbol) -> Pair:
        return s, lambda env: env[s]

    def of_int(i: int) -> Pair:
        return i, lambda env: i

    return st.one_of(st.sampled_from(SYMBOLS).map(of_symbol), st.integers(0, 20).map(of_int))


def grow(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def binary(parts: tuple[str, Pair, Pair, int]) -> Pair:
        op, (a, f), (b, g), c = parts
        match op:
            case "+":
                return as_dim(a + b), lambda env: f(env) + g(env)
            case "-":
                return as_dim(a - b), lambda env: f(env) - g(env)
            case "*":
                return as_dim(a * b), lambda env: f(env) * g(env)
            case "//":
                return floordiv(a, c), lambda env: f(env) // c
            case "%":
                return floormod(a, c), lambda env: f(env) % c
            case "min":
                return dim_min(a, b), lambda env: min(f(env), g(env))
            case _:
                return dim_max(a, b), lambda env: max(f(env), g(env))

    ops = st.sampled_from(["+", "-", "*", "//", "%", "min", "max"])
    return st.tuples(ops, inner, inner, st.integers(1, 16)).map(binary)


PAIRS = st.recursive(leaves(), grow, max_leaves=6)
VALUES = st.fixed_dictionaries(
    {N: st.integers(0, 40), M: st.integers(0, 40), K: st.integers(1, 16).map(lambda i: 4 * i)}
)


@settings(max_examples=examples(45))
@given(PAIRS, VALUES)
def test_a_dim_is_the_integer_expression_it_was_built_as(
    pair: Pair, env: dict[Symbol, int]
) -> None:
    value, meaning = pair
    assert evaluate(value, env) == meaning(env)


@settings(max_examples=examples(30))
@given(PAIRS, VALUES)
def test_bounds_hold_and_divisors_divide(pair: Pair, env: dict[Symbol, int]) -> None:
    value, meaning = pair
    low, high = bounds(value)
    number = meaning(env)
    assert low is None or low <= number
    assert high is None or number <= high
    known = divisor(value)
    assert number % known == 0 if known else number == 0


@settings(max_examples=examples(18))
@given(PAIRS, VALUES)
def test_the_text_of_a_dim_is_python_that_evaluates_to_it(
    pair: Pair, env: dict[Symbol, int]
) -> None:
    value, meaning = pair
    names = {s.name: v for s, v in env.items()}
    assert eval(dim_text(value), {"min": min, "max": max}, names) == meaning(env)


def test_equality_sees_through_the_distributive_law() -> None:
    assert equal((N + 1) * M, N * M + M)
    assert not equal(N * M, N + M)
    assert equal(floordiv(N * 16 + 15, 16), N)


def test_factors_that_a_quotients_terms_share_with_its_divisor_go() -> None:
    assert floordiv(N * M * 24, N * 4) == M * 6
    assert floordiv(N * M + N * 3, N * K) == floordiv(M + 3, K)
    assert floordiv(N * M + 3, N * 4) != floordiv(M + 3, 4)


def test_facts_make_division_exact() -> None:
    assert floormod(K, 4) == 0
    assert equal(floordiv(K * 2, 2), K)
    assert floormod(N, 4) != 0
    assert bounds(K + 1) == (5, 65)


def test_order_is_proved_from_facts() -> None:
    assert always_ge(N + 1, N)
    assert always_ge(K, 4)
    assert not always_ge(N, M)
    assert dim_max(N + 1, N) == N + 1


def test_symbols_are_values() -> None:
    assert dim("n") is N
    assert dim("n", max=4) != N
    assert symbols_of(N * 2, M) == {N, M}
    assert substitute(floordiv(N + 15, 16), {N: 33}) == 3
    assert ceildiv(17, 16) == 2


def test_sympys_own_floor_becomes_ours() -> None:
    assert as_dim((N + 15) // 16) == floordiv(N + 15, 16)
    assert as_dim(np.int64(4)) == 4


@pytest.mark.parametrize("bad", ["no name", "", "1n"])
def test_a_name_must_be_an_identifier(bad: str) -> None:
    with pytest.raises(UnityError, match="identifier"):
        dim(bad)


def test_facts_must_agree() -> None:
    with pytest.raises(UnityError, match="contradict"):
        dim("n", min=3, max=2)


@pytest.mark.parametrize("bad", [1.5, "n", None])
def test_a_dim_is_no_fraction(bad: object) -> None:
    with pytest.raises(UnityError, match="integer"):
        as_dim(bad)


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(UnityError, match="needs values for m"):
        evaluate(N + M, {N: 1})


def test_wide_sums_stay_cheap() -> None:
    """PyTorch met minutes here; a thousand terms must take no time worth noting."""
    start = time.perf_counter()
    total: Dim = 0
    for i in range(200):
        total = as_dim(total + dim(f"s{i}") * (i % 7 + 1))
    assert floormod(total, 4) != 0
    assert equal(total + 1 - total, 1)
    assert time.perf_counter() - start < 5
