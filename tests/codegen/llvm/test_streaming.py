"""Stores past the caches: what is written so, wherever the memory begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, build
from tests.transform.schedule.printed import run_printed
from unity.codegen.llvm.streaming import streamed_of
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform import Context
from unity.transform.schedule import Schedule, ScheduleDefault, default_schedule
from unity.transform.tactics.streaming_stores import past_caches

SOURCE = """
@script.prim_func(attrs={{"nontemporal": {which}}})
def main(x: f32[Buffer, 200], y: f32[Buffer, 200], z: f32[Buffer, 200]) -> None:
    for i in T.parallel(12):
        y[T.ramp(i * 16, 1, 16)] = x[T.ramp(i * 16, 1, 16)] + T.broadcast(1.0, 16)
        z[T.ramp(i * 16 + 4, 1, 16)] = x[T.ramp(i * 16, 1, 16)]
    for i in range(192, 200):
        y[i] = x[i] + 1.0
"""

ADDED = """
@script.prim_func
def main(x: f32[Buffer, {rows}, 2048], y: f32[Buffer, {rows}, 2048]) -> None:
    for i, j in T.grid({rows}, 2048):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = x[vi, vj] + 1.0
"""
TWICE = f"{ADDED}            y[vi, vj] = y[vi, vj] * 2.0\n"


def kernel(which: str) -> PrimFunc:
    return parse(SOURCE.format(which=which)).prim_funcs()["main"]


def aligned(offset: int) -> Array:
    """200 elements that begin so many bytes behind a line."""
    raw = np.zeros(200 * 4 + 128, np.uint8)
    begin = -raw.ctypes.data % 64 + offset
    return raw[begin : begin + 800].view(np.float32)


@pytest.mark.parametrize("offset", [0, 4, 32])
def test_memory_may_begin_anywhere(offset: int) -> None:
    x = np.random.default_rng(0).standard_normal(200).astype(np.float32)
    y, z = aligned(offset), aligned(0)
    assert build({"main": kernel("(1, 2)")})["main"]([x, y, z]) == 0
    np.testing.assert_array_equal(y, x + np.float32(1))
    np.testing.assert_array_equal(z[4:196], x[:192])


def test_whole_registers_at_multiples_of_their_size() -> None:
    if not HOST.triple.startswith("x86_64") or HOST.vector_bits < 512:
        pytest.skip("names instructions of AVX-512")
    names = {"()": 0, "(1,)": 1, "(1, 2)": 1}  # z is written beside the lines
    for which, count in names.items():
        code = build({"main": kernel(which)})["main"].code
        assert code.asm("main").count("vmovnt") == count


@pytest.mark.parametrize(("rows", "past"), [(100, ()), (8192, (1,))])
def test_large_results_that_nobody_reads(rows: int, past: tuple[int, ...]) -> None:
    func = parse(ADDED.format(rows=rows)).prim_funcs()["main"]
    assert past_caches(func, HOST) == past
    func = parse(TWICE.format(rows=rows)).prim_funcs()["main"]
    assert past_caches(func, HOST) == ()
    few = replace(HOST, l3_bytes=1 << 20)
    assert past_caches(kernel("()"), few) == ()


def test_the_default_schedule_says_so_by_a_step() -> None:
    machine = replace(HOST, l3_bytes=1 << 20)
    func = parse(ADDED.format(rows=256)).prim_funcs()["main"]
    sch = default_schedule(func, machine)
    assert [step.args for step in sch.trace if step.name == "stream_stores"] == [(1,)]
    assert run_printed(sch).func.attrs == sch.func.attrs
    compiled = ScheduleDefault()(IRModule({"main": func}), Context(machine)).prim_funcs()["main"]
    assert compiled.attrs == sch.kernel().attrs


def test_what_a_later_step_reads_again_is_not_written_so() -> None:
    """Threads see such stores in order only behind the kernel."""
    sch = Schedule(parse(ADDED.format(rows=4)).prim_funcs()["main"])
    sch.stream_stores("y")
    assert streamed_of(sch.func) == {sch.func.buffers[1]}
    again = parse(TWICE.format(rows=4)).prim_funcs()["main"]
    assert streamed_of(replace(again, attrs=sch.func.attrs)) == frozenset()
    refused = "stream_stores, argument 1 'parameter': the kernel "
    with pytest.raises(UnityError, match=f"{refused}reads 'y' as well"):
        Schedule(again).stream_stores("y")
    for parameter, why in (("x", "stores nothing to 'x'"), (2, "has 2 buffers, got 2")):
        with pytest.raises(UnityError, match=refused + why):
            sch.stream_stores(parameter)
    with pytest.raises(UnityError, match="there is no buffer 'z'"):
        sch.stream_stores("z")
