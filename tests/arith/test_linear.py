"""Sums of variables are put in normal form once, whatever is known; what is known still counts."""

from __future__ import annotations

import pytest

from unity.arith import Analyzer
from unity.arith.linear import linear
from unity.ir.dtype import INT32
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, SizeVar, imm

V, W, N = PrimVar("v"), PrimVar("w"), SizeVar("n")
SUM = W + V * 8 - (N + 1) * 2 + V


def test_a_sum_is_written_once() -> None:
    one, other = Analyzer().with_extent(V, imm(0), imm(4)), Analyzer().with_extent(W, imm(0), N)
    assert one.simplify(SUM) is other.simplify(SUM)
    assert one.simplify(one.simplify(SUM)) is one.simplify(SUM)
    assert linear(SUM) == {(V,): 9, (W,): 1, (N,): -2, (): -2}


def test_variables_that_are_one_number_count_as_that() -> None:
    assert Analyzer().with_extent(V, imm(3), imm(1)).simplify(V * 2 + 1) == imm(7)
    assert Analyzer().simplify(V * 2 + 1) == V * 2 + 1
    assert Analyzer().with_range(W, 2, 2).simplify(SUM) == Analyzer().simplify(V * 9 - N * 2)


@pytest.mark.parametrize("e", [V // 2, Binary("min", V, W), imm(3) - V % 4])
def test_what_divides_or_chooses_is_none(e: PrimExpr) -> None:
    assert linear(e) is None
    assert linear(e + V) is None


def test_sums_that_differ_by_a_number_share_the_rest() -> None:
    one = Analyzer().simplify(N + 3 + V // 2 * 8)
    other = Analyzer().simplify(N + 19 + V // 2 * 8)
    assert isinstance(one, Binary)
    assert isinstance(other, Binary)
    assert one.a is other.a
    assert (one.b, other.b) == (imm(3), imm(19))


def test_rests_are_joined_wherever_they_stand_in_a_sum() -> None:
    known = Analyzer()
    assert known.simplify(V // 4 * 4 + W + 5 + V % 4 - W) == V + 5
    assert known.simplify(V % 4 + W - N + V // 4 * 4 + N) == known.simplify(V + W)


def test_narrow_integers_are_left() -> None:
    a, b = PrimVar("a", INT32), PrimVar("b", INT32)
    e = Binary("sub", Binary("add", a, b), b)
    assert Analyzer().simplify(e) == e


def test_what_is_asked_again_keeps_what_was_found() -> None:
    known, extent = Analyzer(), N + 1
    inside = known.with_extent(V, imm(0), extent)
    assert inside is not known
    zero = imm(0)
    assert known.with_extent(W, zero, extent) is known.with_extent(W, zero, extent)
    assert known.with_extent(W, zero, extent).bounds(W) == (0, None)
