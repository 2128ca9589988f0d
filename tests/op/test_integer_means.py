"""Means of integers are float64, as numpy has them; what is only compared keeps its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import Array, dtype
from unity.ir.types import TensorType
from unity.op.accumulate import real

RNG = np.random.default_rng(5)
KINDS = ("int8", "uint8", "int32", "uint64", "int64")


def called(name: str, x: Array, **attrs: Any) -> Array:
    """What compiled code gives, which is what the interpreter gives."""
    b = unity.GraphBuilder()
    module = b.finish(b.op(name, b.param("x", TensorType(x.shape, dtype(x.dtype))), **attrs))
    found = np.asarray(unity.compile(module)(x))
    expected = np.asarray(interpret(module, "main", [x]))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(real(found), real(expected), rtol=1e-12)
    return found


def integers(kind: str, *shape: int) -> Array:
    """Some of the whole range of a dtype, whose sums overflow it."""
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max, shape, kind, endpoint=True)


@pytest.mark.parametrize("kind", KINDS)
def test_over_axes(kind: str) -> None:
    x = integers(kind, 4, 9)
    for name, function in (("mean", np.mean), ("variance", np.var), ("std", np.std)):
        for axis in (None, 1):
            found = called(name, x, axis=axis)
            assert found.dtype == np.float64
            expected = np.asarray(function(x.astype(np.float64), axis=axis))
            np.testing.assert_allclose(real(found), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["int8", "int32", "uint64"])
def test_of_windows(kind: str) -> None:
    x = integers(kind, 1, 2, 4, 6)
    parts = x.reshape(1, 2, 2, 2, 3, 2).swapaxes(3, 4)
    mean = called("nn.avg_pool2d", x, pool_size=2, strides=2)
    assert mean.dtype == np.float64
    np.testing.assert_allclose(real(mean), real(parts).mean((4, 5)), rtol=1e-12)
    np.testing.assert_array_equal(mean, called("nn.adaptive_avg_pool2d", x, output_size=(2, 3)))
    largest = called("nn.max_pool2d", x, pool_size=2, strides=2)
    assert largest.dtype == x.dtype
    np.testing.assert_array_equal(largest, parts.max((4, 5)))
    np.testing.assert_array_equal(largest, called("nn.adaptive_max_pool2d", x, output_size=(2, 3)))


def test_padding_is_less_than_any_integer() -> None:
    x = np.full((1, 1, 2, 2), -7, np.int8)
    assert (called("nn.max_pool2d", x, pool_size=3, padding=1) == -7).all()


def test_bools_are_no_numbers() -> None:
    with pytest.raises(unity.UnityError, match="mean: 'x' must be numbers, got bool"):
        called("mean", np.ones(3, np.bool_))
