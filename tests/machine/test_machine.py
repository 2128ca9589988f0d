"""The numbers of a machine: one grain, what a backend overrides, what follows from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from tests.codegen.llvm.levels import LEVELS
from unity.codegen.kernel_cache import setting_of
from unity.codegen.llvm.abilities import abilities
from unity.errors import UnityError
from unity.ir.prim_expr import imm
from unity.ir.stmt import For
from unity.ir.visit import walk_stmt
from unity.machine.machine import Machine, Work
from unity.machine.target import Target
from unity.runtime.records import decode, encode
from unity.script import parse
from unity.transform.roles.reduction import rows_of
from unity.transform.rules.default import schedule
from unity.transform.tactics.tile_sizes import cheapest_size

AVX2 = LEVELS["avx2"]


@pytest.mark.parametrize("work", get_args(Work))
def test_one_grain_is_told_in_every_unit_of_work(work: Work) -> None:
    usual, slow = Machine(), Machine(wake_cycles=6000)
    assert slow.grain(work) == pytest.approx(2 * usual.grain(work), abs=1)
    assert usual.grain(work) == pytest.approx(usual.grain_cycles * usual.rate(work), abs=0.5)
    assert Machine(wake_cycles=0).grain(work) == 1


def test_a_machine_is_printed_by_what_is_its_own() -> None:
    assert repr(Machine()) == "Machine()"
    assert repr(replace(AVX2.machine, wake_cycles=9)) == "Machine(wake_cycles=9)"


def test_a_target_is_stored_with_its_machine() -> None:
    target = replace(AVX2, machine=Machine(wake_cycles=9000))
    assert decode(Target, json.dumps(encode(target))) == target


def test_threads_are_woken_for_more_work_where_that_costs_more() -> None:
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 64, 1024], c: f32[Buffer, 64, 1024]) -> None:
    for i, j in T.grid(64, 1024):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0
""").prim_funcs()["main"]

    def is_parallel(machine: Machine) -> bool:
        body = schedule(func, replace(AVX2, machine=machine)).body
        return any(isinstance(s, For) and s.kind == "parallel" for s in walk_stmt(body))

    assert is_parallel(Machine())
    assert not is_parallel(Machine(wake_cycles=100_000))


def test_cached_kernels_of_another_machine_are_not_taken() -> None:
    machines = (Machine(), Machine(wake_cycles=9000))
    keys = {setting_of("", replace(AVX2, machine=m), checks=False) for m in machines}
    assert len(keys) == 2


def test_numbers_that_no_machine_has_are_refused() -> None:
    with pytest.raises(UnityError, match="Machine: elements_per_cycle=0"):
        Machine(elements_per_cycle=0)


def test_a_step_takes_what_the_busiest_part_does() -> None:
    machine = Machine(fma_per_cycle=1, loads_per_cycle=2, fma_latency=4, loop_cycles=0)
    assert machine.step_cycles(12, 8) == 12, "one multiplier"
    assert machine.step_cycles(2, 10) == 5, "loads"
    assert machine.step_cycles(2, 3) == 4, "sums that wait for themselves"
    assert machine.step_cycles(2, 3, chain=3) == 12
    assert machine.step_cycles(12, 8, spilled=9) == 13, "each spilled sum is loaded and stored"
    assert machine.step_cycles(2, 8, from_l2=6) == pytest.approx(6 * machine.l2_vector_cycles)


def test_tiles_follow_the_machine() -> None:
    quick, usual = Machine(fma_latency=1, loads_per_cycle=2), Machine()
    assert cheapest_size(imm(9), 6, 2, quick) != cheapest_size(imm(9), 6, 2, usual)


@pytest.mark.parametrize(
    ("triple", "features", "fused"),
    [
        ("x86_64-unknown-linux-gnu", (), False),
        ("x86_64-unknown-linux-gnu", ("fma",), True),
        ("arm64-apple-macosx14", ("neon",), True),
        ("riscv64-unknown-linux-gnu", ("d",), True),
        ("wasm32-unknown-unknown", ("simd128",), False),
    ],
)
def test_one_answer_to_whether_multiply_adds_are_fused(
    triple: str, features: tuple[str, ...], fused: bool
) -> None:
    target = Target("cpu", triple, "generic", features)
    assert target.fused == abilities(target).fma == fused
    assert (rows_of(2, target) < rows_of(2, replace(target, triple=""))) == (not fused)
