"""A product scheduled by hand is lowered to what was meant: sums in registers, nothing spilled."""

from __future__ import annotations

import re

import pytest

from tests.transform.tensor.kernels import assert_same
from unity.codegen.llvm import compile_kernels, host_target
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context
from unity.transform.schedule import Schedule
from unity.transform.tensor import lowering

AVX2 = Target("cpu", host_target().triple, "haswell", ("avx", "avx2", "fma"), 256, 16, threads=1)
AVX512 = Target(
    "cpu",
    host_target().triple,
    "skylake-avx512",
    ("avx", "avx2", "avx512f", "avx512vl", "fma"),
    512,
    32,
    threads=1,
)


def product(rows: str, columns: int, depth: int) -> PrimFunc:
    return parse(f"""
n = dim("n")

@script.prim_func
def main(
    a: f32[Buffer, {rows}, {depth}], b: f32[Buffer, {depth}, {columns}],
    c: f32[Buffer, {rows}, {columns}]
) -> None:
    for i, j, k in T.grid({rows}, {columns}, {depth}):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]
""").prim_funcs()["main"]


def tiled(func: PrimFunc, rows: int, vectors: int, lanes: int) -> Schedule:
    sch = Schedule(func)
    copy = sch.cache_write("product", 0, "local")
    i, j, k = sch.get_loops("product")
    i_tile, i_row = sch.split(i, [None, rows])
    j_tile, j_vector, j_lane = sch.split(j, [None, vectors, lanes])
    sch.reorder(j_tile, i_tile, k, i_row, j_vector, j_lane)
    sch.reverse_compute_at(copy, i_tile)
    _, lane = sch.split(sch.get_loops(copy)[-1], [None, lanes])
    for loop in (lane, j_lane):
        sch.vectorize(loop)
    for loop in (i_row, j_vector):
        sch.unroll(loop)
    sch.parallel(j_tile)
    init = sch.decompose_reduction("product", k)
    sch.vectorize(sch.get_loops(init)[-1])
    return sch


def lowered(func: PrimFunc, target: Target) -> PrimFunc:
    module = IRModule({"main": func})
    for step in lowering():
        module = step(module, Context(target))
    return module.prim_funcs()["main"]


@pytest.mark.parametrize(
    ("target", "rows", "vectors", "register"),
    [(AVX2, 6, 2, "ymm"), (AVX512, 6, 4, "zmm")],
    ids=["avx2", "avx512"],
)
def test_sums_stay_in_registers(target: Target, rows: int, vectors: int, register: str) -> None:
    sch = tiled(product("48", 128, 64), rows, vectors, target.vector_bits // 32)
    low = lowered(sch.func, target)
    assembly = compile_kernels({"main": low}, target).asm("main")
    spilled = re.findall(rf"\tvmov[a-z]+\t.*%{register}\d+, .*\(%rsp\)", assembly)
    assert not spilled
    assert len(re.findall(r"\tvfmadd\d+ps\t", assembly)) == rows * vectors


@pytest.mark.rotated(4)
@pytest.mark.parametrize("sizes", [{"n": 0}, {"n": 1}, {"n": 6}, {"n": 13}])
@pytest.mark.parametrize(("columns", "depth"), [(64, 8), (40, 7)])
def test_tails(sizes: dict[str, int], columns: int, depth: int) -> None:
    before = product("n", columns, depth)
    sch = tiled(before, 6, 2, 8)
    assert_same(before, lowered(sch.func, AVX2), sizes)
