"""Answers that are remembered are those that would be found anew, whatever else was known."""

from __future__ import annotations

from random import Random

import pytest

from unity.arith import Analyzer, remembered
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, SizeVar, imm

from .test_oracle import index

X, Y, N = PrimVar("i"), PrimVar("j"), SizeVar("n")


def halved(e: PrimExpr) -> PrimExpr:
    return Binary("floordiv", e, imm(8))


def test_what_is_known_of_a_variable_counts() -> None:
    known = Analyzer()
    assert known.with_range(X, 0, 7).simplify(halved(X)) == imm(0)
    assert known.with_range(X, 0, 8).simplify(halved(X)) == halved(X)
    assert known.with_range(X, 8, 15).simplify(halved(X)) == imm(1)
    assert known.simplify(halved(X)) == halved(X)


def test_what_is_known_of_a_limit_counts() -> None:
    """``i < n``, and n is at most 8 in one place only."""
    small, large = (Analyzer().with_range(N, 1, most).with_extent(X, imm(0), N) for most in (8, 9))
    below = Compare("lt", X, imm(8))
    assert small.prove(below)
    assert not large.prove(below)
    other = Analyzer().with_extent(Y, imm(0), N).with_extent(X, imm(0), Y)
    assert other.prove(Compare("lt", X, N))
    assert not Analyzer().with_extent(Y, imm(0), N + 1).prove(Compare("lt", Y, N))


def test_what_sums_are_at_least_counts() -> None:
    left = Compare("lt", imm(0), N - X)
    assert Analyzer().with_range(X, 0, None).with_positive(N - X).prove(left)
    assert not Analyzer().with_range(X, 0, None).prove(left)


def test_limits_in_a_circle() -> None:
    known = Analyzer().with_extent(X, imm(0), Y).with_extent(Y, imm(0), X)
    assert known.simplify(halved(X)) == halved(X)
    again = Analyzer().with_range(Y, 0, 7).with_extent(X, imm(0), Y)
    assert again.simplify(halved(X)) == imm(0)


def simplified(seed: int) -> list[list[PrimExpr]]:
    """Random expressions, each in scopes where different things are known."""
    random = Random(seed)
    asked = [index(random, [X, Y, N]) for _ in range(6)]
    found: list[list[PrimExpr]] = []
    for _ in range(8):
        known = Analyzer()
        if random.random() < 0.5:
            known = known.with_range(N, 1, random.choice((None, 1, 8, 33)))
        extent = random.choice((imm(1), imm(8), imm(20), N, N * 2, halved(N + 7)))
        known = known.with_extent(X, random.choice((imm(0), imm(3))), extent)
        if random.random() < 0.7:
            known = known.with_extent(Y, imm(0), random.choice((imm(4), N, X + 1)))
        found.append([known.simplify(e) for e in asked])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions_in_scopes_one_after_the_other(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = simplified(seed)
    monkeypatch.setattr(remembered, "_MOST", 1)  # all is forgotten at every answer
    assert simplified(seed) == warm
