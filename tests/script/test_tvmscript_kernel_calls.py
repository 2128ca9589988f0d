"""Kernels of TVMScript that call kernels of their module: what they call stands in them."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.script.tvmscript import parse

A = np.arange(16, dtype=np.float32).reshape(4, 4)
MODULE = '''
@I.ir_module
class M:
    @T.prim_func(private=True)
    def add(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
        """With an i and a t of its own."""
        T.func_attr({{"tir.noalias": True}})
        for i in range(16):
            t = A[i // 4, i % 4]
            B[i] = t + 1.0

    @T.prim_func(private=True)
    def scale(a: T.handle, b: T.handle, k: T.int32):
        A = T.match_buffer(a, (16,), "float32")
        B = T.match_buffer(b, (16,), "float32")
        for i in range(16):
            B[i] = A[i] * T.Cast("float32", k)

    @T.prim_func(private=True)
    def both(A: T.Buffer((4, 4), "float32"), p: T.handle("float32")):
        B = T.decl_buffer((16,), "float32", data=p)
        M.add(A, B.data)
        T.evaluate(M.scale(B.data, B.data, 3))

    @T.prim_func(private=True)
    def sized(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.float32(7)

    @T.prim_func(private=True)
    def itself(A: T.Buffer((16,), "float32")):
        M.itself(A.data)

    @T.prim_func(private=True)
    def assigns(A: T.Buffer((16,), "float32"), k: T.int32):
        k = 3
        A[0] = 1.0

    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
        {}
'''


def module(*lines: str, without: tuple[str, ...] = ("itself", "assigns")) -> IRModule:
    head, *kernels = MODULE.format("\n        ".join(lines)).split("    @T.prim_func")
    kept = [k for k in kernels if not any(f"def {name}(" in k for name in without)]
    return parse("    @T.prim_func".join([head, *kept]))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["M.add(A.data, B.data)"], A.ravel() + 1),
        (["M.add(A, B)", "M.scale(B.data, B.data, 2)"], (A.ravel() + 1) * 2),
        (["for i in range(3):", "    M.add(A.data, B.data)"], A.ravel() + 1),
        (["t = A[0, 1]", "M.add(A.data, B.data)", "B[0] = B[0] + t"], [2, *range(2, 17)]),
        (["M.both(A.data, B.data)"], (A.ravel() + 1) * 3),
        (["M.add(A, B)", "M.sized(B.data)"], [7] * 16),
        (["T.evaluate(M.both(A.data, B.data))"], (A.ravel() + 1) * 3),
        (["M.add(A, B)", "M.add(B.data, B.data)"], A.ravel() + 2),
        (["M.add(A, B)", "M.add(B, B)"], A.ravel() + 2),
    ],
)
def test_what_they_compute(lines: list[str], wanted: np.ndarray) -> None:
    read = module(*lines)
    found = np.zeros(16, np.float32)
    run_prim_func(read.prim_funcs()["main"], [A.copy(), found])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(unity.compile(read)["main"](A), wanted)


def test_pointers_to_rows() -> None:
    """A kernel of a row, whose block's regions are over the axis of the caller's block."""
    read = parse("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def row(a: T.handle("float32"), b: T.handle("float32")):
        A = T.decl_buffer((4,), "float32", data=a)
        B = T.decl_buffer((2, 2), "float32", data=b)
        for i, j in T.grid(2, 2):
            with T.block("row"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + vj] * 2.0

    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4, 8), "float32")):
        for i in range(8):
            with T.block("rows"):
                vi = T.axis.spatial(8, i)
                M.row(T.address_of(A[vi, 0]), T.address_of(B[vi // 2, vi % 2 * 4]))
""")
    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    found = np.zeros((4, 8), np.float32)
    run_prim_func(read.prim_funcs()["main"], [a, found])
    np.testing.assert_array_equal(found, a.reshape(4, 8) * 2)
    np.testing.assert_array_equal(unity.compile(read)["main"](a), a.reshape(4, 8) * 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("M.add(A.data)", r"add needs 'B'"),
        ("M.add(A.data, B[4])", "'B' is a buffer, got a value"),
        (
            "M.add(A.data, T.address_of(B[4]))",
            r"'B' is .*, which does not lie in B, .* from B\[4\]",
        ),
        ("M.sized(T.address_of(B[4]))", r"got the address of B\[4\], which does not tell n"),
        ("M.itself(B.data)", "the kernel 'itself' calls itself"),
        ("M.assigns(B.data, 4)", "the name 'k' is defined twice"),
        ("M.nosuch(B.data)", "nosuch"),
    ],
)
def test_refused(line: str, said: str) -> None:
    name = line[2:].partition("(")[0]
    others = tuple(n for n in ("itself", "assigns") if n != name)
    with pytest.raises(UnityError, match=said) as caught:
        module(line, without=others)
    assert caught.value.span is not None
