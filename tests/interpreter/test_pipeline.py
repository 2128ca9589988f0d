"""Random programs mean the same after every pass of the pipeline, and print and parse there."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.generators.graph import arguments_for, module
from unity.interpreter import Value, interpret
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.script import constants_of, parse, print_module
from unity.transform import pipeline
from unity.transform.passes import Context

CONTEXT = Context(Target("cpu", "", "generic", (), vector_bits=256, threads=2))


@pytest.mark.long("interprets and reads back a program after each pass")
@pytest.mark.rotated(8)
@pytest.mark.parametrize("seed", range(16))
def test_every_pass_keeps_meaning_and_form(seed: int) -> None:
    m = module(Random(seed))
    args = arguments_for(m, np.random.default_rng(0))
    expected = arrays(interpret(m, "main", args))
    for step in pipeline("cpu").passes:
        before, m = m, step(m, CONTEXT)
        if m is before:
            continue
        verify(m)
        assert first_difference(m, parse(print_module(m), constants_of(m))) is None, step.name
        for want, got in zip(expected, arrays(interpret(m, "main", args)), strict=True):
            assert want.dtype == got.dtype, step.name
            a, b = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=step.name)


def arrays(value: Value) -> list[Array]:
    """The arrays and numbers in a result, in order."""
    if isinstance(value, tuple):
        return [a for item in value for a in arrays(item)]
    return [np.asarray(value)]
