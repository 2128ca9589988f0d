"""A sum over nothing leaves its init, whatever else stands in the loops that don't run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import sizes_of
from tests.fuzz.kernels import Scheduled, check_machine_code, check_steps
from unity.interpreter import run_prim_func
from unity.script import parse
from unity.transform.schedule import Schedule

VERSIONS = parse(
    """
m = dim("m")


@script.prim_func(attrs={"num_outputs": 1})
def main(x: f64[Buffer, 3, m], y: f64[Buffer, 3]) -> None:
    for i, k in T.grid(3, m):
        if m == 2:
            with T.block("two"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    y[vi] = 1.0
                y[vi] = y[vi] + x[vi, vk]
        else:
            with T.block("others"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    y[vi] = -1.0
                y[vi] = y[vi] + x[vi, vk]
"""
).prim_funcs()["main"]
FUNC = parse(
    """
m = dim("m")


@script.prim_func(attrs={"num_outputs": 1})
def main(x: f64[Buffer, 3, m], y: f64[Buffer, 3]) -> None:
    for i, k in T.grid(3, m):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                y[vi] = T.imm("float64", "-inf")
            y[vi] = T.max(y[vi], x[vi, vk])
"""
).prim_funcs()["main"]


@pytest.mark.parametrize("m", [0, 2, 3])
def test_versions_of_what_is_fetched_beside_a_sum(m: int) -> None:
    """Found by the fuzzer: beside a branch by a size, the init of an empty sum was forgotten."""
    sch = Schedule(FUNC)
    _, step = sch.get_loops("y")
    sch.specialize_when("m == 2", sch.prefetch("y", 0, step, step, None, 3, None, False))
    program = Scheduled(FUNC, {"m": m}, sch.trace)
    check_steps(program)
    check_machine_code(program)


@pytest.mark.parametrize("m", [0, 2, 3])
def test_versions_of_a_sum_in_its_loop(m: int) -> None:
    """Which of two sums runs is said by a size: each leaves its own init where none runs."""
    check_machine_code(Scheduled(VERSIONS, {"m": m}, Schedule(VERSIONS).trace))
    if not m:
        (found,) = run_prim_func(VERSIONS, [np.zeros((3, 0))], sizes_of({"m": 0}))
        np.testing.assert_array_equal(found, [-1.0] * 3)
