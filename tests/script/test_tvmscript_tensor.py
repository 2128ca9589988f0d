"""Kernels of TVMScript in all of its words: interpreted, compiled and by TVM, the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.prim_expr import Imm
from unity.ir.stmt import PrimFunc
from unity.script import parse, print_module, tvmscript
from unity.script.program import ScriptPrimFunc

from .tvm_oracle import Array, run_theirs

TO_FLOAT = 'A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")'
TWO = 'A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")'
INTS = 'A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")'
BOTH = {
    "a step": (
        TO_FLOAT,
        """
        for i in T.serial(1, 8, step=3):
            B[i] = A[i] * (i - 3)
        """,
    ),
    "a step from zero": (
        INTS,
        """
        for i in T.serial(0, 15, step=4):
            B[i] = A[i] - i
        """,
    ),
    "loops over unsigned numbers": (
        INTS,
        """
        for i in T.serial(16, dtype="uint32"):
            B[i] = T.Cast("int32", i // T.uint32(3)) + A[i]
        """,
    ),
    "one name for a nest": (
        TWO,
        """
        for ij in T.grid(4, 6):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", ij)
                B[vi, vj] = A[vi, vj] + T.float32(1)
        """,
    ),
    "as many loops as dims": (
        TWO,
        """
        for ij in T.grid(*A.shape):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", ij)
                B[vi, vj] = A[vi, vj] * T.float32(3)
        """,
    ),
    "slices are lanes": (
        TWO,
        """
        for i in range(4):
            B[i, 2:6] = T.Broadcast(T.float32(5), 4)
            B[i, i : i + 2] = A[i, T.Ramp(0, 1, 2)]
        """,
    ),
    "memory from an element on": (
        TWO,
        """
        a = T.decl_buffer((6,), "float32", data=A.data, elem_offset=7)
        for i in range(6):
            B[1, i] = a[i]
        """,
    ),
    "memory with strides": (
        TWO,
        """
        a = T.decl_buffer((3, 2), "float32", data=A.data, strides=[7, 2])
        for i, j in T.grid(3, 2):
            B[i, j] = a[i, j]
        """,
    ),
    "a name that is given while parsing": (
        TWO,
        """
        n = T.meta_var(3)
        for i in range(n):
            x = T.meta_var(A[i, n])
            B[i, 2] = x + x
        """,
    ),
    "what is taken for granted holds": (
        INTS,
        """
        for i in range(16):
            T.evaluate(T.assume(A[i] > -10))
            B[i] = A[i] * 2
        """,
    ),
    "bits of a dtype that is said": (
        INTS,
        """
        for i in range(16):
            B[i] = T.shift_left(i - 7, 3, dtype="int32") + T.bitwise_and(A[i], 6, dtype="int32")
        """,
    ),
    "a product of fixed point": (
        INTS,
        """
        for i in range(8):
            B[i] = T.q_multiply_shift(A[i] * 1000003, 1395864371, 31, -1)
            B[i + 8] = T.q_multiply_shift(A[i], 1395864371, 31, 3)
        """,
    ),
    "an init without a reduction": (
        TWO,
        """
        for i, j in T.grid(4, 6):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                with T.init():
                    B[vi, vj] = T.float32(2)
                B[vi, vj] = B[vi, vj] + A[vi, vj]
        """,
    ),
    "memory of another dtype": (
        INTS,
        """
        raw = T.alloc_buffer((64,), "int8")
        x = T.decl_buffer([16], "int32", data=raw.data)
        for i in range(16):
            x[i] = A[15 - i]
        for i in range(16):
            B[i] = x[i]
        """,
    ),
}
OURS: Mapping[str, tuple[str, str, Callable[[Any, Any], None]]] = {
    "numbers as conditions": (
        INTS,
        """
        for i in range(16):
            if i % 3:
                B[i] = A[i]
        """,
        lambda a, b: np.copyto(b, a, where=np.arange(16) % 3 != 0),
    ),
    "hints": (
        TWO,
        """
        for i in range(4):
            cache = T.alloc_buffer((6,), "float32")
            T.attr(cache.data, "double_buffer_scope", 1)
            for j in range(6):
                cache[j] = A[i, j]
            for j in range(6):
                B[i, j] = cache[5 - j]
        """,
        lambda a, b: np.copyto(b, a[:, ::-1]),
    ),
    "masked lanes": (
        TWO,
        """
        with T.LetStmt(T.int32(2)) as i:
            mask = T.meta_var(T.Ramp(0, 1, 4) < T.Broadcast(3, 4))
            x = T.meta_var(A.vload([i, T.Ramp(0, 1, 4)], predicate=mask))
            B.vstore([i, T.Ramp(1, 1, 4)], x, predicate=T.get_active_lane_mask("uint1x4", 0, 2))
        """,
        lambda a, b: b.__setitem__((2, slice(1, 3)), a[2, :2]),
    ),
    "allocated memory": (
        TWO,
        """
        p = T.allocate([24], "float32", "global")
        x = T.decl_buffer((24,), data=p)
        y = T.Buffer([4, 5], "float32", data=p, strides=[6, 1])
        for i in range(24):
            x[i] = A[i // 6, i % 6]
        for i, j in T.grid(4, 5):
            B[i, j] = y[i, j]
        """,
        lambda a, b: b.__setitem__((slice(None), slice(0, 5)), a[:, :5]),
    ),
    "opened memory": (
        TWO,
        """
        for i in range(4):
            with T.decl_buffer([6], "float32") as x:
                for j in range(6):
                    x[j] = A[i, j]
                for j in range(6):
                    B[i, j] = x[j] + x[5 - j]
        """,
        lambda a, b: b.__setitem__(slice(None), a + a[:, ::-1]),
    ),
    "constants": (
        TO_FLOAT,
        """
        c = T.allocate_const([1, 2, 3, 4, 5, 6], "int32", [2, 3])
        C = T.decl_buffer((2, 3), "int32", data=c)
        for i, j in T.grid(2, 3):
            B[i * 3 + j] = A[i] * C[i, j]
        """,
        lambda a, b: b.__setitem__(slice(0, 6), a[[0, 0, 0, 1, 1, 1]] * np.arange(1, 7)),
    ),
    "numbers again and again": (
        TO_FLOAT,
        """
        c = T.allocate_const([1, 2] * 3, "int32", [6])
        C = T.decl_buffer((6,), "int32", data=c)
        for i in range(6):
            B[i] = A[i] * C[i]
        """,
        lambda a, b: b.__setitem__(slice(0, 6), a[:6] * np.array([1, 2] * 3)),
    ),
    "an undefined value": (
        INTS,
        """
        x: T.let[T.int32] = T.undef(dtype="int32")
        B[0] = A[1] + x
        """,
        lambda a, b: b.__setitem__(0, a[1]),
    ),
}


def text_of(params: str, body: str) -> str:
    lines = [line.removeprefix("    ") for line in body.strip("\n").splitlines()]
    return f"@T.prim_func\ndef f({params}):\n" + "\n".join(lines) + "\n"


def kernel(text: str) -> PrimFunc:
    module = tvmscript.parse(text)
    assert print_module(parse(print_module(module))) == print_module(module)
    return module.prim_funcs()["f"]


def arguments(func: PrimFunc) -> list[Array]:
    rng = np.random.default_rng(0)
    shapes = [tuple(int(e.value) for e in b.shape if isinstance(e, Imm)) for b in func.buffers]
    kinds = [b.dtype.numpy for b in func.buffers]
    return [rng.integers(-9, 9, s).astype(k) for s, k in zip(shapes, kinds, strict=True)]


def ours(func: PrimFunc, args: list[Array]) -> tuple[list[Array], list[Array]]:
    """What the kernel leaves in its arguments: interpreted, and compiled."""
    interpreted, compiled = [a.copy() for a in args], [a.copy() for a in args]
    run_prim_func(func, interpreted)
    ScriptPrimFunc("f", func)(*compiled)
    return interpreted, compiled


@pytest.mark.long("TVM is imported for the first of them")
@pytest.mark.parametrize("case", BOTH)
def test_numbers_are_those_of_tvm(case: str) -> None:
    text = text_of(*BOTH[case])
    func = kernel(text)
    args = arguments(func)
    interpreted, compiled = ours(func, args)
    assert any(not np.array_equal(a, b) for a, b in zip(args, interpreted, strict=True))
    theirs = run_theirs(text, args)
    for a, b, c in zip(interpreted, compiled, theirs, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


@pytest.mark.parametrize("case", OURS)
def test_words_of_older_versions(case: str) -> None:
    params, body, reference = OURS[case]
    func = kernel(text_of(params, body))
    args = arguments(func)
    expected = [a.copy() for a in args]
    reference(*expected)
    for found in ours(func, args):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


CALLED = """
@T.prim_func
def f(A: T.Buffer((4, 6), "float32")):
    p = T.decl_buffer((8,), "float32", data=A.data, elem_offset=4)
    {}
"""


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ('T.evaluate(T.call_extern("int32", "lib.g", A.data))', ', dtype="int32"'),
        ('T.evaluate(T.call_extern("lib.g", A.data, dtype=""))', ""),
        ('T.call_extern("void", "lib.g", A.data)', ""),
        ('T.call_extern("float16", "lib.g", A.data)', ""),
    ],
)
def test_a_foreign_function_is_given_addresses(said: str, read: str) -> None:
    text = print_module(tvmscript.parse(CALLED.format(said)))
    assert f'T.call_extern("lib.g", T.address_of(A[0, 0]){read})' in text


def test_a_view_lies_in_the_memory_of_its_buffer() -> None:
    said = 'T.call_extern("void", "lib.g", p.data, p.elem_offset, T.address_of(p[3]))'
    text = print_module(tvmscript.parse(CALLED.format(said)))
    assert "T.address_of(A[0, 0]), 4, T.address_of(A[(4 + 3) // 6, (4 + 3) % 6])" in text


def test_pointers_are_the_buffers_that_lie_there() -> None:
    text = """
@T.prim_func
def f(a: T.handle("float32"), b: T.ptr("float32"), n: T.int32):
    again: T.let[T.handle("float32")] = a
    A = T.decl_buffer((n, 4), "float32", data=again)
    B = T.Buffer((n * 4,), "float32", data=b)
    last = T.decl_buffer((4,), "float32", data=T.address_of(B[4]))
    for i in range(4):
        last[i] = A[0, i] * 2.0
"""
    func = kernel(text)
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros(8, np.float32)
    run_prim_func(func, [a, b])
    assert b.tolist() == [0, 0, 0, 0, 0, 2, 4, 6]


def test_attributes_keep_dicts_and_buffers() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({"bounds": {"n": 4, "m": [1, {"k": 2}]}})
    for i in T.serial(4, annotations={"test": {"arr": [0, 0]}}):
        with T.sblock("b"):
            T.sblock_attr({"placed": [A]})
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(0)
"""
    printed = print_module(tvmscript.parse(text))
    assert '"bounds": (("n", 4), ("m", (1, (("k", 2),))))' in printed
    assert '"test": (("arr", (0, 0)),)' in printed
    assert '"placed": ("A",)' in printed


REFUSED = {
    "a step of less than nothing": (
        INTS,
        "for i in T.serial(0, 8, step=-1):\n    B[i] = 1",
        "step",
    ),
    "assigned before": (INTS, 'T.attr(A.data, "storage_scope", 1)', "Unity has no T.attr"),
    "code of another language": (INTS, 'T.attr(A.data, "pragma_import_llvm", 1)', "has no T.attr"),
    "another device": (INTS, 'T.attr(0, "device_type", 2)', "has no T.attr"),
    "what a function gives": (INTS, 'T.call_extern("f", A.data)', "says first what the function"),
    "lanes without end": (INTS, "B[0:A[0]] = 1", "so many lanes as are known"),
    "a pointer to anything": ("A: T.handle", "T.evaluate(0)", "points to is said nowhere"),
    "two dtypes": (
        INTS,
        'x = T.decl_buffer((16,), "float32", data=A.data)\nx[0] = 1.0',
        "holds int32, its view float32",
    ),
    "strides of fewer axes": (
        INTS,
        'x = T.decl_buffer((4, 4), "int32", data=A.data, strides=[1])\nx[0, 0] = 1',
        "as many strides as dims",
    ),
    "numbers that don't fill it": (
        INTS,
        'x = T.allocate_const([1, 2], "int32", [3])',
        "2 numbers of 'int32' with 3 elements",
    ),
    "a shift that is not known": (
        INTS,
        "B[0] = T.q_multiply_shift(A[0], 3, A[1], 1)",
        "known numbers",
    ),
    "memory sometimes": (INTS, 'x = T.allocate([4], "int32", "", A[0] > 1)', "no condition"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case: str) -> None:
    params, body, message = REFUSED[case]
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(f"@T.prim_func\ndef f({params}):\n{lines}\n")
    assert caught.value.span is not None
