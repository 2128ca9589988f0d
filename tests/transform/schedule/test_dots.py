"""Dot product intrinsics, each by itself: a matrix product tensorized, interpreted and compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tests.codegen.llvm.run_kernel import HOST, run
from unity import te
from unity.codegen.llvm import compile_kernels
from unity.errors import UnityError
from unity.interpreter.kernel import run_prim_func
from unity.ir.dtype import Array, DType
from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import PrimFunc
from unity.ir.well_formed.verify import verify
from unity.machine.dot_units import group_of
from unity.machine.target import Target
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.blocks.extents import number
from unity.transform.pipeline import TENSOR
from unity.transform.schedule import Schedule
from unity.transform.schedule.dots import DOTS

M, N, STEPS = 32, 64, 2
"""Rows, columns and steps of depth of the product."""
FEATURES = {"amx": "amx-bf16", "avx512bf16": "avx512bf16", "vnni": "avx512vnni", "avx2": "avx2"}


def product(a: DType, b: DType, out: DType, depth: int) -> PrimFunc:
    group = group_of(a)
    left = te.placeholder((M, depth * group), a, "a")
    right = te.placeholder((depth, N, group), b, "b")
    k, p = te.reduce_axis(depth, "k"), te.reduce_axis(group, "p")

    def element(m: PrimExpr, n: PrimExpr) -> te.Reduce:
        x, y = left[m, k.var * group + p.var], right[k.var, n, p.var]
        return te.sum(te.cast(x, out) * te.cast(y, out), axis=[k, p])

    return te.create_prim_func((left, right, te.compute((M, N), element, "product")))


def tensorized(name: str) -> PrimFunc:
    intrinsic = DOTS[name]
    a, b, c = intrinsic.description.buffers
    depth = STEPS * (16 if len(c.shape) == 2 else 8)
    sch = Schedule(product(a.dtype, b.dtype, c.dtype, depth))
    m, n, k, p = sch.get_loops("product")
    columns = number(c.shape[-1])
    n0, n1 = sch.split(n, [None, columns])
    if len(c.shape) == 2:
        m0, m1 = sch.split(m, [None, number(c.shape[0])])
        k0, k1 = sch.split(k, [None, 16])
        sch.reorder(m0, n0, k0, m1, n1, k1, p)
        sch.decompose_reduction("product", k0)
        sch.tensorize(m1, name)
    else:
        sch.reorder(m, n0, k, n1, p)
        sch.decompose_reduction("product", k)
        sch.tensorize(n1, name)
    verify(IRModule({"main": sch.func}))
    return sch.func


def lowered(func: PrimFunc) -> PrimFunc:
    return TENSOR.run(IRModule({"main": func}), Context(HOST)).prim_funcs()["main"]


def operands(func: PrimFunc, seed: int) -> tuple[list[Array], npt.NDArray[np.float64]]:
    """Random ones, the extremes among them, and the product; in integers it wraps around."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for buffer in func.buffers[:2]:
        shape = tuple(number(e) or 0 for e in buffer.shape)
        if buffer.dtype.is_float:
            values = rng.standard_normal(shape)
        else:
            bits = buffer.dtype.bits
            low = 0 if buffer.dtype.kind == "uint" else -(1 << (bits - 1))
            high = low + (1 << bits) - 1
            values = rng.integers(low, high + 1, shape).astype(np.float64)
            values.flat[:64] = high
            values.flat[64:128] = low
        arrays.append(values.astype(buffer.dtype.numpy))
    a, b = (x.astype(np.float64) for x in arrays)
    k, n, group = b.shape
    product = a @ b.transpose(0, 2, 1).reshape(k * group, n)
    if not func.buffers[2].dtype.is_float:
        product = (product + 2.0**31) % 2.0**32 - 2.0**31
    return arrays, product


def able(name: str, target: Target) -> bool:
    unit = name.partition("_")[0]
    needed = "amx-int8" if unit == "amx" and "bf16" not in name else FEATURES[unit]
    return target.has(needed)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", DOTS)
def test_a_tensorized_product(name: str) -> None:
    func = tensorized(name)
    arrays, want = operands(func, seed=len(name))
    low = lowered(func)
    exact = not func.buffers[2].dtype.is_float
    tolerance = 0.0 if exact else 1e-5 * float(np.abs(want).max())
    out = np.full(want.shape, 7, func.buffers[2].dtype.numpy)
    if name in ("amx_bf16_32x32x32", "amx_u8s8_16x16x64", "vnni_u8s8_16x4"):  # slow: one of each
        run_prim_func(func, [*arrays, out], {})
        np.testing.assert_allclose(out.astype(np.float64), want, rtol=0, atol=tolerance)
    if not able(name, HOST):
        with pytest.raises(UnityError, match="the target has no"):
            run(low, arrays, out)
        return
    for checks in (False, True):
        out.fill(7)
        got = run(low, arrays, out, checks=checks)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["amx_bf16_16x16x32", "vnni_u8s8_16x4", "avx512bf16_8x2"])
@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_a_target_without_the_unit_is_refused(name: str, triple: str) -> None:
    target = Target("cpu", triple, "generic", ("avx2",) if "x86" in triple else ())
    with pytest.raises(UnityError, match="the target has no"):
        compile_kernels({"main": lowered(tensorized(name))}, target)


def test_marked_loops_print_and_parse() -> None:
    for name, intrinsic in DOTS.items():
        module = IRModule({name: intrinsic.implementation})
        again = parse(print_module(module))
        assert again == module or print_module(again) == print_module(module)


WRONG = [
    ("sub", "c[i, j] = c[i, j] - T.cast('float32', a[i, k, p]) * T.cast('float32', b[k, j, p])"),
    ("swapped", "c[i, j] += T.cast('float32', a[k, i, p]) * T.cast('float32', b[k, j, p])"),
    ("copy", "c[i, j] = c[i, j]"),
]


@pytest.mark.parametrize(("name", "store"), WRONG)
def test_a_mark_that_is_not_true_is_refused(name: str, store: str) -> None:
    func = parse(f"""
@script.prim_func
def main(x: f32[Buffer, 4]) -> None:
    c = T.alloc((16, 16), "float32", scope="amx.tile")
    a = T.alloc((16, 16, 2), "bfloat16", scope="amx.tile")
    b = T.alloc((16, 16, 2), "bfloat16", scope="amx.tile")
    for i in T.serial(16, attrs={{"instruction": "tile_dot"}}):
        for j, k, p in T.grid(16, 16, 2):
            {store}
""").prim_funcs()["main"]
    target = replace(HOST, features=(*HOST.features, "amx-tile", "amx-bf16"))
    with pytest.raises(UnityError, match="marked 'tile_dot' does not compute"):
        compile_kernels({name: lowered(func)}, target)


def test_too_many_tiles_are_refused() -> None:
    tiles = "\n".join(
        f'    t{i} = T.alloc((16, 16), "float32", scope="amx.tile")' for i in range(9)
    )
    func = parse(f"""
@script.prim_func
def main(x: f32[Buffer, 4]) -> None:
{tiles}
    x[0] = 1.0
""").prim_funcs()["main"]
    target = replace(HOST, features=(*HOST.features, "amx-tile"))
    with pytest.raises(UnityError, match="9 tiles at once: there are 8"):
        compile_kernels({"main": lowered(func)}, target)
