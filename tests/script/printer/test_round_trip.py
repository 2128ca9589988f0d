"""``parse(print(m)) == m``: printing loses nothing, on random programs of both levels."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.graph import arguments_for, module
from tests.generators.prim_func import prim_func
from tests.rotation import examples
from tests.script.printer.kernels import kernels_of
from unity.interpreter import interpret
from unity.ir.equality import first_difference, structural_hash
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.op.table import OPS
from unity.script import constants_of, parse, print_module

SEEDS = st.integers(0, 2**32)


def again(m: IRModule) -> IRModule:
    """The module printed and read back."""
    return parse(print_module(m), constants_of(m))


@settings(max_examples=examples(15))
@given(SEEDS)
def test_prim_funcs(seed: int) -> None:
    m = IRModule({"main": prim_func(Random(seed))})
    assert first_difference(m, again(m)) is None


@settings(max_examples=examples(15))
@given(SEEDS)
def test_modules(seed: int) -> None:
    m = module(Random(seed))
    back = again(m)
    assert first_difference(m, back) is None
    assert structural_hash(m) == structural_hash(back)


@settings(max_examples=examples(8))
@given(SEEDS)
def test_what_is_read_back_is_well_formed_and_means_the_same(seed: int) -> None:
    m = module(Random(seed))
    back = again(m)
    verify(back)
    check_types(back)
    args = arguments_for(m, np.random.default_rng(0))
    _same(interpret(m, "main", args), interpret(back, "main", args))


def _same(a: object, b: object) -> None:
    if isinstance(a, tuple) and isinstance(b, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _same(x, y)
    else:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", [name for name, row in OPS.items() if row.compute is not None])
def test_the_kernel_of_every_operator(name: str) -> None:
    for func in kernels_of(name, count=3):
        m = IRModule({"main": func})
        assert first_difference(m, again(m)) is None
