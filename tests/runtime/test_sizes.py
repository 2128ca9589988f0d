"""Size expressions: evaluated, folded and written as text, all alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from unity.codegen.vm.native.overflow import divisors, small_bits
from unity.runtime.bytecode.sizes import (
    Size,
    SizeOp,
    SizeOpName,
    Slot,
    combine,
    evaluate,
    may_be_negative,
    parts_of,
    product,
    size_text,
    slots_of,
)

NAMES = ["n", "m"]
FOLDED: list[SizeOpName] = ["add", "mul", "min"]


def sizes() -> st.SearchStrategy[Size]:
    leaf: st.SearchStrategy[Size] = st.one_of(st.integers(1, 20), st.integers(0, 1).map(Slot))
    names = st.sampled_from(["add", "sub", "mul", "min", "max"])
    return st.recursive(leaf, lambda inner: st.builds(SizeOp, names, inner, inner), max_leaves=6)


@given(sizes(), st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=examples(15))
def test_the_text_is_python_that_means_the_same(size: Size, n: int, m: int) -> None:
    assert eval(size_text(size, NAMES), {"n": n, "m": m}) == evaluate(size, [n, m])


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (0, 3), (8, 8)])
def test_divisions_round_down(a: int, b: int) -> None:
    assert evaluate(SizeOp("floordiv", Slot(0), b), [a]) == a // b
    assert evaluate(SizeOp("floormod", Slot(0), b), [a]) == a % b


@given(sizes(), sizes(), st.sampled_from(FOLDED), st.integers(0, 9))
@settings(max_examples=examples(15))
def test_combining_folds_without_changing_the_value(
    a: Size, b: Size, op: SizeOpName, n: int
) -> None:
    slots = [n, n + 1]
    assert evaluate(combine(op, a, b), slots) == evaluate(SizeOp(op, a, b), slots)


def test_numbers_fold() -> None:
    assert combine("mul", 6, 7) == 42
    assert combine("add", Slot(0), 0) == Slot(0)
    assert combine("mul", 1, Slot(1)) == Slot(1)
    assert product([]) == 1
    assert product([2, Slot(0), 3]) == SizeOp("mul", SizeOp("mul", Slot(0), 2), 3)


def test_the_slots_of_a_size() -> None:
    assert list(slots_of(SizeOp("add", Slot(1), SizeOp("mul", Slot(0), 2)))) == [1, 0]


def test_an_unbound_slot_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="before it is bound"):
        evaluate(Slot(0), [None])


def test_sizes_too_deep_for_a_line_of_python_are_evaluated_as_well() -> None:
    size: Size = Slot(0)
    for _ in range(120):
        size = SizeOp("floordiv", SizeOp("mul", size, 3), 2)
    expected = 9
    for _ in range(120):
        expected = expected * 3 // 2
    assert evaluate(size, [9]) == expected
    assert evaluate(size, [0]) == 0


def test_parts_that_are_shared_are_looked_at_once() -> None:
    """Sizes that follow from others share them: written out, this one has 2**200 parts."""
    size: Size = Slot(0)
    for k in range(200):
        size = SizeOp("sub" if k % 2 else "add", SizeOp("mul", size, 3), size)
    expected = 1
    for k in range(200):
        expected = expected * 2 if k % 2 else expected * 4
    assert evaluate(size, [7]) == 7 * expected
    assert slots_of(size) == (0,)
    assert may_be_negative(size)
    assert not may_be_negative(SizeOp("add", Slot(0), Slot(1)))
    assert len(parts_of([size, size])) == 402
    assert divisors([SizeOp("floordiv", SizeOp("add", size, Slot(1)), Slot(1))]) == [Slot(1)]
    assert small_bits([size]) == 0
    assert small_bits([SizeOp("mul", Slot(0), Slot(1))]) == 31
