"""Kernels whose outputs lie in their inputs: values stay values, copied only where others read."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import te
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.runtime.bytecode import CallKernel
from unity.script import Tensor, dim, f32, parse, print_module

n = dim("n")
X = np.arange(12, dtype=np.float32).reshape(4, 3)
KERNELS = """
n = dim("n")

@script.prim_func
def grow(x: f32[Buffer, n, 3]) -> None:
    for i, j in T.grid(n, 3):
        with T.block("grow"):
            vi, vj = T.axis.remap("SS", i, j)
            x[vi, vj] = x[vi, vj] + 1.0

@script.prim_func
def both(x: f32[Buffer, n, 3], y: f32[Buffer, n, 3], s: f32[Buffer, n]) -> None:
    for i in range(n):
        s[i] = x[i, 0] + y[i, 0]
    for i, j in T.grid(n, 3):
        x[i, j] = x[i, j] * y[i, j]

"""
GROW = "R.call_tir(grow, ({},), out=f32[Tensor, n, 3], inplace=(0,))"


def program(body: str, params: str = "x: f32[Tensor, n, 3]") -> IRModule:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    module = parse(f"{KERNELS}@script.function\ndef main({params}):\n{lines}\n")
    assert unity.structural_equal(module, parse(print_module(module)))
    return module


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"y = {GROW.format('x')}\nreturn y, x", (X + 1, X)),
        (f"y = x * 2.0\nz = {GROW.format('y')}\nreturn y, z", (X * 2, X * 2 + 1)),
        (f"y = x * 2.0\nz = {GROW.format('y')}\nw = {GROW.format('z')}\nreturn w", X * 2 + 2),
        (
            f"y = x * 2.0\nv = R.reshape(y, (n * 3,))\nz = {GROW.format('y')}\nreturn v, z",
            (X.reshape(12) * 2, X * 2 + 1),
        ),
        (f"for i in range(n):\n    x = {GROW.format('x')}\nreturn x", X + 4),
        (
            "y = x * 2.0\ns = x\nfor i in range(n):\n"
            f"    z = {GROW.format('y')}\n    s = s + z\nreturn s",
            X + 4 * (X * 2 + 1),
        ),
        (
            f"y = x * 2.0\nif n > 2:\n    z = {GROW.format('y')}\nelse:\n    z = y\nreturn z",
            X * 2 + 1,
        ),
        (
            "y = x + 1.0\na, s = R.call_tir(both, (x, y), out=(f32[Tensor, n, 3], f32[Tensor, n]),"
            " inplace=(0, -1))\nreturn a, s, x",
            (X * (X + 1), 2 * X[:, 0] + 1, X),
        ),
    ],
)
def test_others_see_what_an_input_held(body: str, wanted: object) -> None:
    module, x = program(body), X.copy()
    exe = unity.compile(module)
    assert exe.native() == {"main": "native"}
    for run in (exe, lambda *args: interpret(module, "main", args)):
        found = run(x)
        for got, want in zip(
            *(v if isinstance(v, tuple) else (v,) for v in (found, wanted)), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_array_equal(x, X)


def test_what_nothing_else_reads_is_not_copied() -> None:
    exe = unity.compile(program(f"y = x * 2.0\nz = {GROW.format('y')}\nreturn z"))
    (code,) = exe.program.functions
    assert sum(isinstance(i, CallKernel) for i in code.code) == 2
    assert [(r.op, r.choice) for r in exe.explain()] == [("multiply", "tir"), ("grow", "tir")]


@pytest.mark.parametrize(
    ("call", "said", "hint"),
    [
        ("R.call_tir(grow, (x,), out=f32[Tensor, n, 4], inplace=(0,))", "expected 3, got 4", "x"),
        ("R.call_tir(grow, (x,), out=f32[Tensor, n, 3], inplace=(1,))", "which of 1 inputs", ""),
        (
            "R.call_tir(grow, (x,), out=(f32[Tensor, n, 3], f32[Tensor, n, 3]), inplace=(0, 0))",
            "outputs lie in the inputs 0, 0",
            "each in one of its own",
        ),
        (
            "R.call_tir(both, (x, x), out=f32[Tensor, n])",
            "both writes to 'x', which is an input of the call",
            "inplace=(0,)",
        ),
    ],
)
def test_what_is_none_is_refused(call: str, said: str, hint: str) -> None:
    with pytest.raises(UnityError, match=said) as caught:
        program(f"return {call}")
    assert caught.value.span is not None
    assert hint in (caught.value.hint or "")


def test_by_program() -> None:
    x = te.placeholder((n, 3), "float32", "x")
    double = te.create_prim_func([x, te.compute(x.shape, lambda i, j: x[i, j] * 2.0, "y")])
    b = unity.GraphBuilder()
    given = b.param("x", f32[Tensor, n, 3])
    made = b.emit_tir(double, [given], f32[Tensor, n, 3])
    grow = parse(KERNELS).prim_funcs()["grow"]
    grown = b.emit_tir(grow, [made], f32[Tensor, n, 3], "grow", inplace=(0,))
    np.testing.assert_array_equal(unity.compile(b.finish((made, grown)))(X)[1], X * 2 + 1)
    with pytest.raises(UnityError, match="emit_tir: grow writes to 'x'"):
        b.emit_tir(parse(KERNELS).prim_funcs()["both"], [made, made], f32[Tensor, n], "grow")
