"""Kernels of TVMScript with views, results and mixed dtypes: the numbers are TVM's."""

from __future__ import annotations

import numpy as np
import pytest

from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.script import tvmscript

from .tvm_oracle import Array, run_theirs

REGION = """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(2, 8):
        with T.sblock("part"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4 : vi * 4 + 4, vj])
            T.writes(B[vi * 4 : vi * 4 + 4, vj])
            A0 = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj], (4, 1), "float32", offset_factor=1)
            B0 = T.match_buffer(B[vi * 4 : vi * 4 + 4, vj], (4, 1), "float32", offset_factor=1)
            for k in range(4):
                B0[k, 0] = A0[3 - k, 0] * 2.0
"""
MEMORY = """
@T.prim_func
def f(A: T.Buffer((4, 6), "float32"), B: T.Buffer((24,), "float32")):
    flat = T.decl_buffer((24,), "float32", data=A.data)
    turned = T.decl_buffer((3, 8), "float32", data=B.data)
    for i, j in T.grid(3, 8):
        turned[i, j] = flat[i * 8 + j] + A[j % 4, i]
"""
MIXED = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] * (i - 3)
"""
BITS = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        upper = T.shift_left(T.Cast("uint32", A[i] + 16256), T.uint32(16))
        back = T.reinterpret("int32", T.reinterpret("float32", upper))
        B[i] = T.reinterpret("float32", upper) + T.Cast("float32", T.clz(A[i] + 16) + back // 65536)
"""
CASES = {
    "a region": (REGION, (8, 8), np.float32, (8, 8)),
    "memory in another shape": (MEMORY, (4, 6), np.float32, (24,)),
    "bits": (BITS, (8,), np.int32, (8,)),
    "mixed dtypes": (MIXED, (8,), np.int32, (8,)),
}


def ours(text: str, a: Array, out: Array) -> Array:
    run_prim_func(tvmscript.parse(text).prim_funcs()["f"], [a, out])
    return out


def theirs(text: str, a: Array, out: Array) -> Array:
    return run_theirs(text, [a, out])[1]


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_tvm(case: str) -> None:
    text, shape, kind, out = CASES[case]
    a = np.random.default_rng(0).integers(-9, 9, shape).astype(kind)
    empty = np.zeros(out, np.float32)
    found = ours(text, a, empty.copy())
    assert found.any()
    np.testing.assert_array_equal(found, theirs(text, a, empty.copy()))


@pytest.mark.parametrize(("value", "expected"), [(7, 10), (-7, -8)])
def test_a_returned_value_is_written_to_the_last_parameter(value: int, expected: int) -> None:
    text = """
@T.prim_func
def f(x: T.int32) -> T.int32:
    if x > 0:
        return 10
    return T.floordiv(x, 2) * 2
"""
    out = np.zeros((), np.int32)
    run_prim_func(tvmscript.parse(text).prim_funcs()["f"], [out], scalars=[value])
    assert out == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MEMORY.replace('"float32", data=A', '"int32", data=A'), "holds float32, its view int32"),
        (BITS.replace('t("float32", up', 't("float16", up'), "uint32 has 32 bits, float16 has 16"),
        (
            BITS.replace("uint32", "uint16").replace("float32", "float16"),
            "reinterprets float16 and",
        ),
        (REGION.replace("(4, 1)", "(1,)", 1), "the first 1 of the region are points"),
        (REGION.replace("for k in range(4)", "for vi in range(4)"), "depends on 'vi'"),
        (REGION.replace("A0[3 - k, 0]", "A0[3 - k]"), "A0 has 2 dims, got 1 index"),
        (
            "@T.prim_func\ndef f(x: T.float32):\n    for i in range(3):\n        return x\n",
            "a value is returned from within",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None
