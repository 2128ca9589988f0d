"""Symbols that sizes tell: by linear ones, in any order, and not where many numbers would do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from unity.runtime.bytecode import ScalarSpec, ShapeSpec, TensorSpec, TupleSpec, spec_sizes
from unity.runtime.bytecode.sizes import (
    Size,
    SizeOp,
    Slot,
    combine,
    definitions,
    definitions_of,
    evaluate,
    untold,
)

K, N, M = Slot(0), Slot(1), Slot(2)


def less(a: Size, b: Size) -> Size:
    """As sympy writes a difference."""
    return combine("add", a, combine("mul", b, -1))


def times(a: Size, b: Size) -> Size:
    return combine("mul", a, b)


def plus(a: Size, b: Size) -> Size:
    return combine("add", a, b)


@pytest.mark.parametrize(
    ("size", "k"),
    [
        (times(K, 2), 5),
        (plus(times(3, K), N), 4),
        (plus(SizeOp("floordiv", N, 2), K), 9),
        (less(N, K), 3),
        (combine("sub", N, times(2, K)), 3),
        (less(times(M, N), times(K, M)), 2),
        (times(plus(K, 1), M), 6),
        (plus(times(K, M), K), 6),
    ],
)
def test_a_linear_size_tells_its_unknown(size: Size, k: int) -> None:
    slots: list[int | None] = [k, 12, 5]
    (told,) = definitions_of([K.index], [size])
    assert evaluate(told.value(evaluate(size, slots)), [None, 12, 5]) == k


@pytest.mark.parametrize(
    "size",
    [
        SizeOp("min", K, 4), SizeOp("floordiv", K, 2), times(K, K), SizeOp("floormod", K, 3),
        less(K, K), times(less(M, N), K), plus(SizeOp("max", K, 1), K), 7, N,
    ],
)  # fmt: skip
def test_others_tell_nothing(size: Size) -> None:
    assert untold([0], [size]) == (0,)


def test_one_tells_what_the_next_needs() -> None:
    sizes = [plus(K, times(N, 2)), plus(N, M), M]
    assert [(d.slot, d.place) for d in definitions(sizes, ())] == [(2, 2), (1, 1), (0, 0)]
    assert definitions(sizes[:1], ()) == ()
    assert [d.slot for d in definitions(sizes[:1], {N.index})] == [0]


def test_numbers_go_before_factors_that_may_be_0() -> None:
    (told,) = definitions_of([0], [times(K, M), times(K, 2)])
    assert (told.place, told.slope) == (1, 2)


def test_sizes_of_specs_come_in_order() -> None:
    fields = (TensorSpec("f", (N, 3)), ShapeSpec((M,)), ScalarSpec("i", K), TensorSpec("f", None))
    assert spec_sizes(TupleSpec(fields)) == (N, 3, M, K)


def sums() -> st.SearchStrategy[Size]:
    terms = st.tuples(st.integers(-3, 3), st.sampled_from([1, K, N, M, times(N, M)]))
    return st.lists(terms, min_size=1, max_size=4).map(
        lambda given: _sum([times(size, factor) for factor, size in given])
    )


def _sum(terms: list[Size]) -> Size:
    total: Size = 0
    for term in terms:
        total = plus(total, term)
    return total


@given(st.lists(sums(), min_size=1, max_size=4), st.tuples(*[st.integers(1, 9)] * 3))
@settings(max_examples=examples(60))
def test_what_is_told_is_what_made_the_sizes(sizes: list[Size], values: tuple[int, ...]) -> None:
    found: list[int | None] = [None, None, None]
    for told in definitions(sizes, ()):
        actual = evaluate(sizes[told.place], values)
        found[told.slot] = evaluate(told.value(actual), found)
        assert found[told.slot] == values[told.slot]
