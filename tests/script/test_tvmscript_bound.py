"""Buffers of TVMScript's kernels that are bound to regions of others."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.script import tvmscript

A = np.arange(256, dtype=np.float32).reshape(16, 16)
BOUND = """
@T.prim_func
def f(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.attr(A.data, "storage_alignment", 64)
    for ti, tj in T.grid(4, 2):
        B = T.Buffer([4, 8], "float32")
        D = T.Buffer([8], "float32")
        T.attr([B, A], "buffer_bind_scope", T.tvm_tuple(ti * 4, 4, tj * 8, 8, dtype="handle"))
        for i in range(4):
            with T.attr([D, C], "buffer_bind_scope", T.tvm_tuple(ti * 4 + i, 1, tj * 8, 8)):
                for j in range(8):
                    D[j] = B[i, 7 - j] * 2.0
"""
REGION = """
@T.prim_func
def f(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i in range(16):
        with T.block("rows"):
            vi = T.axis.spatial(16, i)
            X = T.match_buffer(A[vi, 0:16])
            Y = T.match_buffer(C[vi, :])
            for j in range(16):
                Y[0, j] = X[0, 15 - j] + 1.0
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BOUND, A.reshape(16, 2, 8)[..., ::-1].reshape(16, 16) * 2),
        (REGION, A[:, ::-1] + 1),
        (REGION.replace("0:16]", "0:16], (1, 16)"), A[:, ::-1] + 1),
    ],
)
def test_their_elements_are_those_of_the_region(text: str, wanted: np.ndarray) -> None:
    module = tvmscript.parse(text)
    found = np.zeros((16, 16), np.float32)
    run_prim_func(module.prim_funcs()["f"], [A, found])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(unity.compile(module)(A), wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REGION.replace("0:16]", "0:16], (1, 8)"), "the region takes 16 along this axis, the view"),
        (REGION.replace("vi, :]", "vi, :], (1, 32)"), "takes 16 along this axis, the view 32"),
        (REGION.replace("vi, :]", "vi]"), "C has 2 dims, got 1 index"),
        (BOUND.replace("[4, 8]", "[4, 4]"), "the region takes 8 along this axis, the view 4"),
        (BOUND.replace('D = T.Buffer([8], "float32")', "pass"), "'D' is bound, but declared"),
        (BOUND.replace('[8], "float32"', '[8], "int32"'), "holds float32, its view int32"),
        (BOUND.replace(', 8, dtype="handle"', ""), "'B' is bound to T.tvm_tuple"),
        (BOUND.replace("storage_alignment", "reduce_scope"), "Unity has no T.attr"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None
