"""The dtype table agrees with numpy and ml_dtypes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from unity.errors import UnityError
from unity.ir.dtype import BFLOAT16, BOOL, FLOAT32, INT32, NAMES, SHORT_NAMES, DType, dtype


@pytest.mark.parametrize("short", SHORT_NAMES)
def test_every_short_name_is_a_type_that_numpy_can_hold(short: str) -> None:
    d = dtype(short)
    assert dtype(d.numpy) == d
    assert d.numpy.itemsize == d.bytes


def test_families() -> None:
    assert FLOAT32.is_float
    assert not FLOAT32.is_int
    assert INT32.is_int
    assert not BOOL.is_int
    assert not BOOL.is_float
    assert BFLOAT16.is_float
    assert dtype(ml_dtypes.bfloat16) == BFLOAT16


def test_vectors() -> None:
    v = dtype("float32x16")
    assert (v.lanes, v.element, str(v)) == (16, FLOAT32, "float32x16")
    assert v == FLOAT32.with_lanes(16) == DType("float32", 16)


def test_there_is_one_object_of_each() -> None:
    v = FLOAT32.with_lanes(4)
    assert dtype("float32x4") is v
    assert v.element is FLOAT32
    assert copy.deepcopy(v) is v
    assert pickle.loads(pickle.dumps(v)) is v
    assert replace(v, lanes=8) is DType("float32", 8)
    assert v == DType("float32", 4) != FLOAT32


def test_families_are_those_of_the_kinds() -> None:
    for name in NAMES:
        d = dtype(name)
        assert d.is_float == d.kind.startswith(("float", "bfloat"))
        assert d.is_int == (d.kind in ("int", "uint"))


@pytest.mark.parametrize("bad", ["float31", np.dtype("complex64"), np.dtype("U4"), object])
def test_what_there_is_not(bad: str) -> None:
    with pytest.raises(UnityError, match="unknown dtype"):
        dtype(bad)
