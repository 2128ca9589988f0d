"""Compiled random programs give what the interpreter gives."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for, module
from unity.interpreter import interpret


@pytest.mark.rotated(8)
@pytest.mark.parametrize("seed", range(24))
def test_compiled_and_interpreted_agree(seed: int) -> None:
    m = module(Random(seed))
    args = arguments_for(m, np.random.default_rng(0))
    executable = unity.compile(m, cache=None)
    for _ in range(2):  # a second call finds the arena as the first one left it
        _close(executable(*args), interpret(m, "main", args))


def _close(got: object, expected: object) -> None:
    if isinstance(expected, tuple):
        assert isinstance(got, tuple | list)
        for g, e in zip(got, expected, strict=True):
            _close(g, e)
        return
    a, b = np.asarray(got), np.asarray(expected)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
