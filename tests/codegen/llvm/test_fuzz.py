"""Random prim funcs, lowered and compiled with and without checks, against the interpreter."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import Kernel, build, sizes_of
from tests.generators.prim_func import DEFAULT, Options, arrays_for, prim_func
from tests.transform.tensor.kernels import after
from unity.interpreter import run_prim_func
from unity.ir.dtype import Array, dtype
from unity.ir.stmt import PrimFunc
from unity.transform.tensor import lowering

EVERY = Options(
    dtypes=tuple(
        dtype(name)
        for name in (
            "float32", "float64", "float16", "bfloat16", "float8_e5m2", "int4", "int8", "int32",
            "int64", "uint8", "uint16", "uint64", "bool",
        )
    )
)  # fmt: skip


def drawn(seed: int) -> PrimFunc:
    return prim_func(Random(seed), Random(seed + 1), EVERY if seed % 3 == 0 else DEFAULT)


def compare(func: PrimFunc, kernel: Kernel, seed: int) -> None:
    """The compiled kernel and the interpreter on one input; zero sizes occur."""
    sizes = {"n": 1 + seed % 5, "m": seed % 4}
    inputs = arrays_for(func, np.random.default_rng(seed), sizes_of(sizes))
    (want,) = run_prim_func(func, inputs, sizes_of(sizes))
    out: Array = np.zeros_like(want)
    code = kernel([*(np.ascontiguousarray(x) for x in inputs), out], sizes)
    assert code == 0, f"seed {seed} returned {code}"
    wide = 1e-4 if want.dtype.itemsize >= 4 else 2e-2
    np.testing.assert_allclose(
        out.astype(np.float64), want.astype(np.float64), wide, 1e-4, err_msg=f"seed {seed}"
    )


def hold(first: int, count: int, *, checks: bool) -> None:
    """Draw, lower, compile together, compare."""
    funcs = {f"k{seed}": drawn(seed) for seed in range(first, first + count)}
    lowered = {name: after(func, *lowering()) for name, func in funcs.items()}
    kernels = build(lowered, checks=checks)
    for name, func in funcs.items():
        compare(func, kernels[name], int(name[1:]))


@pytest.mark.rotated(2)
@pytest.mark.parametrize("checks", [False, True], ids=["plain", "checked"])
def test_compiled_kernels_do_what_the_interpreter_does(checks: bool) -> None:
    hold(0, 30, checks=checks)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 6000, 25))
def test_many_more_of_them(first: int) -> None:
    hold(first, 25, checks=first % 50 == 0)
