"""C functions called from kernels: once each time, in order, whatever is done to the kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from textwrap import dedent, indent

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm
from unity.ir.stmt import PrimFunc
from unity.runtime.linking import foreign
from unity.runtime.linking.foreign_library import LibraryRecord
from unity.script import parse, print_module
from unity.transform.schedule import Schedule

_NOTED: list[float] = []


def _note(x: float) -> float:
    _NOTED.append(x)
    return x * 2 + len(_NOTED) * 100


_IN_C = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(_note)


class _Noting:
    """A library of one function, ``note``: it keeps what it is called with, and how often."""

    def address(self, function: str) -> int:
        assert function == "note"
        return ctypes.cast(_IN_C, ctypes.c_void_p).value or 0

    def record(self) -> LibraryRecord:
        raise AssertionError

    def serial_object(self) -> bytes:
        return b""


foreign.provide("noting", _Noting())

BODIES = {
    "in a block": """
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.call_extern("noting.note", x[vi], dtype="float32")
    """,
    "in lanes": """
        for i in T.vectorized(8):
            y[i] = T.call_extern("noting.note", x[i], dtype="float32")
    """,
    "the same for all lanes": """
        for i in T.vectorized(8):
            y[i] = T.call_extern("noting.note", x[3], dtype="float32")
    """,
    "in some lanes": """
        for i in T.vectorized(8):
            if i < 5:
                y[i] = T.call_extern("noting.note", x[i], dtype="float32")
            else:
                y[i] = 0.0
    """,
    "in lanes past an end": """
        t = T.alloc((8,), "float32", scope="local")
        for i in T.vectorized(8):
            with T.block("sum"):
                vi = T.axis.spatial(6, i)
                T.where(i < 6)
                t[vi] = T.call_extern("noting.note", x[vi], dtype="float32")
        for i in T.vectorized(8):
            with T.block("copy"):
                vi = T.axis.spatial(6, i)
                T.where(i < 6)
                y[vi] = t[vi]
        y[6] = 0.0
        y[7] = 0.0
    """,
    "within a formula": """
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.call_extern("noting.note", x[vi], dtype="float32") * 2.0 + x[vi]
    """,
    "twice within a formula": """
        for i in range(8):
            y[i] = T.call_extern("noting.note", x[i], dtype="float32") - T.call_extern(
                "noting.note", x[i], dtype="float32"
            )
    """,
    "of a call": """
        for i in range(8):
            y[i] = T.call_extern(
                "noting.note", T.call_extern("noting.note", x[i], dtype="float32"), dtype="float32"
            )
    """,
    "in a sum": """
        for i, k in T.grid(8, 4):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    y[vi] = 0.0
                y[vi] += T.call_extern("noting.note", x[vk], dtype="float32")
    """,
    "what a formula reads": """
        t = T.alloc((8,), "float32")
        for i in range(8):
            with T.block("p"):
                vi = T.axis.spatial(8, i)
                t[vi] = T.call_extern("noting.note", x[vi], dtype="float32")
        for i in range(8):
            with T.block("q"):
                vi = T.axis.spatial(8, i)
                y[vi] = t[vi] + t[7 - vi]
    """,
    "under a condition": """
        for i in range(8):
            if T.call_extern("noting.note", x[i], dtype="float32") > 300.0:
                y[i] = 1.0
            else:
                y[i] = 0.0
    """,
    "not needed": """
        for i in range(8):
            v = T.call_extern("noting.note", x[i], dtype="float32")
            y[i] = 1.0
    """,
}
X = np.arange(8, dtype=np.float32)


def _module() -> IRModule:
    """A kernel of each body, and a function that calls it."""
    parts: list[str] = []
    for k, body in enumerate(BODIES.values()):
        parts += [
            "@script.prim_func",
            f"def k{k}(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:",
            indent(dedent(body), "    "),
            "@script.function",
            f"def m{k}(x: f32[Tensor, 8]) -> f32[Tensor, 8]:",
            f"    y = R.call_tir(k{k}, (x,), out=f32[Tensor, 8])",
            "    return y",
        ]
    return parse("\n".join(parts))


def _run(run: Callable[[Array], object]) -> tuple[list[float], Array]:
    """What the function is called with, and the result."""
    _NOTED.clear()
    result = run(X)
    assert isinstance(result, np.ndarray)
    return [*_NOTED], result


def _interpreted(func: PrimFunc) -> tuple[list[float], Array]:
    shape = [int(n.value) for n in func.buffers[0].shape if isinstance(n, Imm)]
    y = np.zeros(shape, np.float32)
    return _run(lambda x: run_prim_func(func, [x.reshape(shape), y])[-1])


def test_a_c_function_is_called_once_each_time_and_in_order() -> None:
    module = _module()
    assert print_module(parse(print_module(module))) == print_module(module)
    exe = unity.compile(module)
    for k, name in enumerate(BODIES):
        calls, want = _interpreted(module.prim_funcs()[f"k{k}"])
        made, got = _run(exe[f"m{k}"])
        assert made == calls, name
        np.testing.assert_array_equal(got, want, name)


STEPS: dict[str, Callable[[Schedule], object]] = {
    "split": lambda s: s.split(s.get_loops("b")[0], [None, 3]),
    "vectorize": lambda s: s.vectorize(s.get_loops("b")[1]),
    "parallel": lambda s: s.parallel(s.get_loops("b")[0]),
    "bind": lambda s: s.bind(s.get_loops("b")[0], "threadIdx.x"),
    "unroll": lambda s: s.unroll(s.get_loops("b")[1]),
    "reorder": lambda s: s.reorder(*reversed(s.get_loops("b"))),
    "tile": lambda s: s.tile(s.get_loops("b")[0], s.get_loops("b")[1], 2, 2),
    "fuse": lambda s: s.fuse(*s.get_loops("b")),
    "loop_partition": lambda s: s.loop_partition(s.get_loops("b")[0], [2]),
    "peel": lambda s: s.peel(s.get_loops("b")[0], 1, 1),
    "fuse_siblings": lambda s: s.fuse_siblings(s.get_loops("b")[0], s.get_loops("q")[0]),
    "compute_inline": lambda s: s.compute_inline("b"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("q"),
    "compute_at": lambda s: s.compute_at("b", s.get_loops("q")[0]),
    "reverse_compute_at": lambda s: s.reverse_compute_at("q", s.get_loops("b")[0]),
    "cache_read": lambda s: s.cache_read("b", 0, "local"),
    "cache_write": lambda s: s.cache_write("b", 0, "local"),
    "reindex": lambda s: s.reindex("b", "write", 0),
    "blockize": lambda s: s.blockize(s.get_loops("b")[1]),
    "transform_layout": lambda s: s.transform_layout("b", 0, lambda i, j: (j, i)),
    "transform_block_layout": lambda s: s.transform_block_layout("b", lambda i, j: (j, i)),
    "pad_einsum": lambda s: s.pad_einsum("b", [3, 3]),
}
CHAIN = """
@script.prim_func
def main(x: f32[Buffer, 4, 2], y: f32[Buffer, 4, 2]) -> None:
    t = T.alloc((4, 2), "float32")
    for i, j in T.grid(4, 2):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = T.call_extern("noting.note", x[vi, vj], dtype="float32")
    for i, j in T.grid(4, 2):
        with T.block("q"):
            vi, vj = T.axis.remap("SS", i, j)
            y[vi, vj] = t[vi, vj] + t[3 - vi, 1 - vj]
"""
REFUSED = (
    *("vectorize", "parallel", "bind", "reorder", "tile", "compute_inline", "compute_at"),
    *("cache_write", "blockize", "transform_block_layout", "pad_einsum", "reverse_compute_inline"),
    *("reverse_compute_at", "reindex", "fuse_siblings"),
)


@pytest.mark.parametrize("step", STEPS)
def test_steps_leave_calls_as_they_are_or_are_refused(step: str) -> None:
    func = parse(CHAIN).prim_funcs()["main"]
    sch = Schedule(func)
    if step in REFUSED:
        with pytest.raises(UnityError):
            STEPS[step](sch)
        return
    STEPS[step](sch)
    (calls, want), (made, got) = _interpreted(func), _interpreted(sch.func)
    assert made == calls
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'y[0] = T.select(x[0] > 0.0, T.call_extern("noting.note", x[0], dtype="float32"), 0.0)',
            "'noting.note' is called in a branch of a choice",
        ),
        (
            'while T.call_extern("noting.note", x[0], dtype="float32") > 0.0:\n        y[0] = 1.0',
            "f: calls 'noting.note' within an expression",
        ),
        (
            'y[T.ramp(0, 1, 8)] = T.call_extern("noting.note", x[T.ramp(0, 1, 8)], '
            'dtype="float32x8")',
            "argument 0 is float32x8",
        ),
        (
            'T.call_extern("noting.f", T.address_of(x[0]) + 4)',
            "f: takes an address within an expression",
        ),
        ("v = T.address_of(x[0])\n    y[0] = 1.0", "f: takes an address within an expression"),
    ],
)
def test_calls_that_would_not_be_made_as_written_are_refused(body: str, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        parse(
            f"@script.prim_func\ndef f(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:\n    {body}\n"
        )
