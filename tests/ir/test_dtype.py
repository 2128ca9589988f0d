"""The dtype table agrees with numpy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from unity.errors import UnityError
from unity.ir.dtype import BFLOAT16, BOOL, FLOAT32, INT32, SHORT_NAMES, DType, dtype


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


@pytest.mark.parametrize("bad", ["float31", np.dtype("complex64"), np.dtype("U4"), object])
def test_what_there_is_not(bad: str) -> None:
    with pytest.raises(UnityError, match="unknown dtype"):
        dtype(bad)
