"""Subtype, join, unify and erase agree with what types mean."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from unity.errors import UnityError
from unity.ir.dims import Dim, dim
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.lattice import erase, is_subtype, join, unify
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

N, M = dim("n"), dim("m")
DIMS: st.SearchStrategy[Dim] = st.sampled_from([1, 3, N, M, N + 1])
SHAPES = st.one_of(st.lists(DIMS, max_size=3).map(tuple), st.integers(0, 3), st.none())
TENSORS = st.builds(TensorType, SHAPES, st.sampled_from([FLOAT32, INT64, None]))
TYPES: st.SearchStrategy[Type] = st.recursive(
    st.one_of(
        TENSORS,
        st.builds(ShapeType, SHAPES),
        st.builds(PrimType, st.just(INT64), st.one_of(st.none(), DIMS)),
        st.just(ObjectType()),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda f: TupleType(tuple(f))),
    max_leaves=4,
)


@settings(max_examples=examples(60))
@given(TYPES, TYPES)
def test_a_join_is_above_both(a: Type, b: Type) -> None:
    both = join(a, b)
    assert is_subtype(a, both)
    assert is_subtype(b, both)


@settings(max_examples=examples(30))
@given(TYPES, TYPES, TYPES)
def test_subtyping_is_an_order(a: Type, b: Type, c: Type) -> None:
    assert is_subtype(a, a)
    if is_subtype(a, b) and is_subtype(b, c):
        assert is_subtype(a, c)


@settings(max_examples=examples(30))
@given(TYPES)
def test_erasing_widens_and_forgets(t: Type) -> None:
    erased = erase(t, frozenset({N}))
    assert is_subtype(t, erased)
    assert erase(erased, frozenset({N})) == erased


def test_the_join_of_two_shapes_keeps_the_rank() -> None:
    a, b = TensorType((N, 4), FLOAT32), TensorType((N, 5), FLOAT32)
    assert join(a, b) == TensorType(2, FLOAT32)
    assert join(a, TensorType((4,), FLOAT32)) == TensorType(None, FLOAT32)


def test_unify_binds_symbols_to_dims() -> None:
    params = [TensorType((N, 128), FLOAT32), TensorType((N * 2,), FLOAT32)]
    args = [TensorType((M + 1, 128), FLOAT32), TensorType((2 * M + 2,), FLOAT32)]
    assert unify(params, args) == {N: M + 1}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([TensorType((3, 4), FLOAT32)], "expected 2 arguments, got 1"),
        ([TensorType((3, 4), INT64), TensorType((3,), FLOAT32)], "argument 0: expected dtype"),
        ([TensorType((3,), FLOAT32), TensorType((3,), FLOAT32)], "argument 0: expected rank 2"),
        ([TensorType((3, 5), FLOAT32), TensorType((3,), FLOAT32)], "argument 0, axis 1"),
        ([TensorType((3, 4), FLOAT32), TensorType((2,), FLOAT32)], "n is 3 elsewhere but 2 here"),
        ([TensorType((3, 4), FLOAT32), ShapeType((3,))], r"expected float32\(n,\), got shape\(3\)"),
    ],
)
def test_what_does_not_fit_is_named(args: list[Type], message: str) -> None:
    params = [TensorType((N, 4), FLOAT32), TensorType((N,), FLOAT32)]
    with pytest.raises(UnityError, match=message):
        unify(params, args)


def test_functions_are_contravariant() -> None:
    known, unknown = TensorType((3,), FLOAT32), TensorType(1, FLOAT32)
    assert is_subtype(FuncType((unknown,), known), FuncType((known,), unknown))
    assert not is_subtype(FuncType((known,), known), FuncType((unknown,), known))
