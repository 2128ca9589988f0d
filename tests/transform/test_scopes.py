"""Memories that backends name: unknown ones are refused, and kernels they are too small for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import unity
from unity import te
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.ir.dims import Dim, dim
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, MemoryScope, backend_of, register_backend
from unity.transform.backend import BACKENDS
from unity.transform.schedule import Schedule
from unity.transform.tensor import CheckScopes

SRAM = MemoryScope("pad.sram", 2048)
PRODUCT = """
@script.prim_func
def product(a: f32[Buffer, 32, 16], b: f32[Buffer, 16, 64], c: f32[Buffer, 32, 64]) -> None:
    for i, j, k in T.grid(32, 64, 16):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]

@script.function
def main(x: f32[Tensor, 32, 16], w: f32[Tensor, 16, 64]) -> f32[Tensor, 32, 64]:
    return R.call_tir(product, (x, w), out=f32[Tensor, 32, 64])
"""


def detect(threads: int | None) -> Target:
    return replace(host_target(threads), kind="pad", scopes=(SRAM,))


@pytest.fixture(autouse=True)
def pad() -> Iterator[None]:
    """A machine with a scratchpad, as a backend."""
    register_backend(replace(backend_of("cpu"), name="pad", detect=detect))
    yield
    del BACKENDS["pad"]


def staged(module: IRModule, columns: int) -> IRModule:
    """A strip of so many columns of the right side lies in the scratchpad."""
    sch = Schedule(module.prim_funcs()["product"], backend_of("pad").machine(1))
    copy = sch.cache_read("product", "b", "pad.sram")
    _, j, _ = sch.get_loops("product")
    strip, _ = sch.split(j, [None, columns])
    sch.reorder(strip, sch.get_loops("product")[0])
    sch.compute_at(copy, strip)
    return module.with_({"product": sch.kernel()})


def test_a_kernel_computes_in_a_memory_of_its_backends() -> None:
    module = parse(PRODUCT)
    rng = np.random.default_rng(0)
    x, w = rng.random((32, 16), np.float32), rng.random((16, 64), np.float32)
    exe = unity.compile(staged(module, 32), "pad")  # 16 rows of 32 floats: all there is
    np.testing.assert_allclose(exe(x, w), x @ w, rtol=1e-5)
    assert 'scope="pad.sram"' in exe.ir("product")


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(UnityError) as caught:
        unity.compile(staged(parse(PRODUCT), 64), "pad")
    assert caught.value.message == "product needs 4,096 bytes of 'pad.sram', which has 2,048"
    assert caught.value.hint == "at a time it holds b_pad_sram (4,096 bytes)"


def test_unknown_memories_are_refused_with_those_that_there_are() -> None:
    there = r"there are global, shared, local, amx.tile"
    func = parse(PRODUCT).prim_funcs()["product"]
    sch = Schedule(func, backend_of("pad").machine(1))
    message = r"cache_read, argument 'scope': the target has no scope 'pad.dram'"
    with pytest.raises(UnityError, match=f"{message}\nhint: {there}, pad.sram"):
        sch.cache_read("product", "b", "pad.dram")
    with pytest.raises(UnityError, match=f"no scope 'pad.sram'\nhint: {there};"):
        Schedule(func).cache_write("product", "c", "pad.sram")
    with pytest.raises(
        UnityError, match=f"product, buffer b_pad_sram: the target has no .*\nhint: {there};"
    ):
        unity.compile(staged(parse(PRODUCT), 32))


def held(rows: Dim, columns: Dim) -> PrimFunc:
    """A kernel with a temporary of such a shape in the scratchpad."""
    x = te.placeholder((rows, columns), "float32", "x")
    y = te.compute((rows, columns), lambda i, j: x[i, j] + 1.0, "y")
    z = te.compute((rows, columns), lambda i, j: y[i, j] * 2.0, "z")
    sch = Schedule(te.create_prim_func([x, z]), backend_of("pad").machine(1))
    sch.set_scope("y", 0, "pad.sram")
    return sch.func


def test_unknown_sizes_count_with_their_bounds() -> None:
    check, here = CheckScopes(), Context(backend_of("pad").machine(1))
    check(IRModule({"k": held(dim("n", max=32), 16)}), here)
    with pytest.raises(UnityError, match=r"k needs 2,112 bytes of 'pad.sram', which has 2,048"):
        check(IRModule({"k": held(dim("n", max=33), 16)}), here)
    with pytest.raises(UnityError, match=r"nothing bounds the size of y, which is in 'pad.sram'"):
        check(IRModule({"k": held(dim("n"), 16)}), here)


@pytest.mark.parametrize(("name", "size"), [("sram", 1), ("a b.c", 1), ("a.b", 0)])
def test_a_scope_has_a_name_of_its_own_and_a_size(name: str, size: int) -> None:
    with pytest.raises(UnityError, match="MemoryScope"):
        MemoryScope(name, size)
