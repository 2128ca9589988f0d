"""tensorize with implementations that call C functions, on parts that lie as they say."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm
from unity.ir.stmt import PrimFunc
from unity.runtime.linking import foreign
from unity.runtime.linking.foreign_library import LibraryRecord
from unity.script import parse
from unity.transform.schedule import Schedule, TensorIntrinsic, register_intrinsic
from unity.transform.schedule.intrinsics import INTRINSICS


class _C:
    """The C library of this process."""

    def address(self, function: str) -> int:
        return ctypes.cast(ctypes.CDLL(None)[function], ctypes.c_void_p).value or 0

    def record(self) -> LibraryRecord:
        raise AssertionError

    def serial_object(self) -> bytes:
        return b""


foreign.provide("c", _C())

INTRINSICS_OF_C = parse("""
s = dim("s")
t = dim("t")

@script.prim_func
def described(a: f32[Buffer, 4, 4], b: f32[Buffer, 4, 4]) -> None:
    for i, j in T.grid(4, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", i, j)
            b[vi, vj] = a[vi, vj]

@script.prim_func
def compact(a: f32[Buffer, 4, 4], b: f32[Buffer, 4, 4]) -> None:
    T.call_extern("c.memcpy", T.address_of(b[0, 0]), T.address_of(a[0, 0]), 64)

@script.prim_func
def eights(a: f32[Buffer, 4, 4, T.strides(8, 1)], b: f32[Buffer, 4, 4, T.strides(8, 1)]) -> None:
    T.call_extern("c.memcpy", T.address_of(b[0, 0]), T.address_of(a[0, 0]), 16)
    T.call_extern("c.memcpy", T.address_of(b[1, 0]), T.address_of(a[1, 0]), 16)
    T.call_extern("c.memcpy", T.address_of(b[2, 0]), T.address_of(a[2, 0]), 16)
    T.call_extern("c.memcpy", T.address_of(b[3, 0]), T.address_of(a[3, 0]), 16)

@script.prim_func
def strided(a: f32[Buffer, 4, 4, T.strides(s, 1)], b: f32[Buffer, 4, 4, T.strides(t, 1)]) -> None:
    for i in range(4):
        T.call_extern(
            "c.memcpy", T.address_of(b[i, 0]), T.address_of(a[i, 0]),
            16 + 0 * s * t,
        )

@script.prim_func
def alike(a: f32[Buffer, 4, 4, T.strides(s, 1)], b: f32[Buffer, 4, 4, T.strides(s, 1)]) -> None:
    for i in range(4):
        T.call_extern("c.memcpy", T.address_of(b[i, 0]), T.address_of(a[i, 0]), 16)

@script.prim_func
def aligned(
    a: f32[Buffer, 4, 4, T.strides(s, 1), T.align(32)], b: f32[Buffer, 4, 4, T.strides(t, 1)]
) -> None:
    for i in range(4):
        T.call_extern("c.memcpy", T.address_of(b[i, 0]), T.address_of(a[i, 0]), 16)

@script.prim_func
def by_elements(a: f32[Buffer, 4, 4], b: f32[Buffer, 4, 4]) -> None:
    for i, j in T.grid(4, 4):
        b[i, j] = a[i, j]
""").prim_funcs()  # fmt: skip
NAMES = ("compact", "eights", "strided", "alike", "aligned", "by_elements")
REFUSED = {
    ("compact", "8", "8"): "neighbours along axis 0 of 'a' lie 8 elements apart in 'a', and the "
    "implementation takes its address to be compact",
    ("eights", "8", "12"): "neighbours along axis 0 of 'b' lie 12 elements apart in 'c', and the "
    "implementation takes its address to be of stride 8 there",
    ("alike", "8", "12"): "the stride 's' of 'b' along axis 0 is 12 in 'c', and 8 elsewhere",
    ("aligned", "8", "8"): "'a' is to be aligned to 32 bytes",
    ("compact", "n", "8"): "neighbours along axis 0 of 'a' lie n elements apart in 'a', and the "
    "implementation takes its address to be compact",
}
TAKEN = {
    ("by_elements", "8", "12"),
    ("compact", "4", "4"),
    ("eights", "8", "8"),
    ("strided", "8", "12"),
    ("strided", "n", "8"),
    ("alike", "12", "12"),
    ("aligned", "4", "8"),
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    funcs = INTRINSICS_OF_C
    for name in NAMES:
        register_intrinsic(f"test_{name}", TensorIntrinsic(funcs["described"], funcs[name]))
    yield
    for name in NAMES:
        del INTRINSICS[f"test_{name}"]


def _kernel(a: str, c: str) -> IRModule:
    """A copy of eight rows of what is common to rows of lengths `a` and `c`."""
    columns = min((int(x) for x in (a, c) if x.isdigit()), default=8) // 4 * 4
    return parse(f"""
n = dim("n", min=8)

@script.prim_func
def kernel(a: f32[Buffer, 8, {a}], c: f32[Buffer, 8, {c}]) -> None:
    for i, j in T.grid(8, {c}):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = 0.0
    for i, j in T.grid(8, {columns}):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj]

@script.function
def main(a: f32[Tensor, 8, {a}]) -> f32[Tensor, 8, {c}]:
    c = R.call_tir(kernel, (a,), out=f32[Tensor, 8, {c}])
    return c
""")


def _tensorized(module: IRModule, name: str) -> PrimFunc:
    sch = Schedule(module.prim_funcs()["kernel"])
    i, j = sch.get_loops("b")
    tile = sch.tile(i, j, 4, 4)
    sch.parallel(sch.get_loops("b")[0])
    sch.tensorize(tile[2], f"test_{name}")
    return sch.kernel()


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: tuple[str, str, str]) -> None:
    name, a, c = case
    with pytest.raises(UnityError) as caught:
        _tensorized(_kernel(a, c), name)
    assert caught.value.message == f"tensorize, argument 1 'loop': {REFUSED[case]}"


def test_taken() -> None:
    rng = np.random.default_rng(0)
    for name, a, c in sorted(TAKEN):
        module = _kernel(a, c)
        func = _tensorized(module, name)
        x = rng.standard_normal((8, 11 if a == "n" else int(a))).astype(np.float32)
        want = np.zeros((8, int(c)), np.float32)
        both = min(x.shape[1], want.shape[1]) // 4 * 4
        want[:, :both] = x[:, :both]
        got = np.ones_like(want)
        run_prim_func(func, [x, got])
        np.testing.assert_array_equal(got, want, name)
        np.testing.assert_array_equal(unity.compile(module.with_({"kernel": func}))(x), want, name)


def test_what_was_tensorized_keeps_its_layout() -> None:
    text = """
@script.prim_func
def kernel(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]) -> None:
    t = T.alloc((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = a[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("q"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = t[vi, vj] + 1.0
"""
    sch = Schedule(parse(text).prim_funcs()["kernel"])
    tile = sch.tile(sch.get_loops("b")[0], sch.get_loops("b")[1], 4, 4)
    sch.tensorize(tile[2], "test_strided")
    for step in (
        lambda: sch.transform_layout("q", "t", lambda i, j: (j, i)),
        lambda: sch.storage_align("b_o", 0, 0, 8, 3),
        lambda: sch.cache_write("b_o", 0, "local"),
    ):
        with pytest.raises(UnityError):
            step()
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    shape = [int(n.value) for n in sch.func.buffers[1].shape if isinstance(n, Imm)]
    got = np.zeros(shape, np.float32)
    run_prim_func(sch.func, [x, got])
    np.testing.assert_array_equal(got, x + 1)


def test_a_symbol_that_is_no_stride_is_refused() -> None:
    funcs = parse("""
s = dim("s")

@script.prim_func
def said(b: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("zero"):
            vi = T.axis.spatial(4, i)
            b[vi] = 0.0

@script.prim_func
def made(b: f32[Buffer, 4, T.strides(s * 2)]) -> None:
    T.call_extern("c.zero", T.address_of(b[0]), s)
""").prim_funcs()
    with pytest.raises(UnityError, match="no buffer of the intrinsic 'zero4' has the stride 's'"):
        register_intrinsic("zero4", TensorIntrinsic(funcs["said"], funcs["made"]))


LINES = parse("""
@script.prim_func
def described(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("double"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi] * 2.0

@script.prim_func
def twice(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
    for i in T.vectorized(4):
        b[i] = a[i] + a[i]

@script.prim_func
def kernel(a: f32[Buffer, 3, 8, 3], c: f32[Buffer, 3, 4]) -> None:
    for i, j in T.grid(3, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vi * 2 + vj // 3, vj % 3] * 2.0

@script.prim_func
def apart(a: f32[Buffer, 3, 8, 5], c: f32[Buffer, 3, 4]) -> None:
    for i, j in T.grid(3, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vi * 2 + vj // 3, vj % 3] * 2.0
""").prim_funcs()


def test_a_part_may_go_on_from_line_to_line() -> None:
    """As one element lies behind another in memory, not where lines are longer."""
    register_intrinsic("test_twice", TensorIntrinsic(LINES["described"], LINES["twice"]))
    sch = Schedule(LINES["kernel"])
    sch.tensorize(sch.get_loops("b")[1], "test_twice")
    x = np.random.default_rng(0).standard_normal((3, 8, 3)).astype(np.float32)
    want = np.stack([2 * x[i].reshape(-1)[i * 6 : i * 6 + 4] for i in range(3)])
    got = np.zeros((3, 4), np.float32)
    run_prim_func(sch.func, [x, got])
    np.testing.assert_array_equal(got, want)
    sch = Schedule(LINES["apart"])
    with pytest.raises(UnityError, match="it does not compute what 'test_twice' describes"):
        sch.tensorize(sch.get_loops("b")[1], "test_twice")
    del INTRINSICS["test_twice"]
