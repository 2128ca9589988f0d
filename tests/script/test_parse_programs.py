"""Functions of one program: closures, recursion, names, texts and the builder."""

from __future__ import annotations

import numpy as np

from tests.script.expected import N, body, f32_, op, same
from unity import script
from unity.ir.dims import dim as symbol
from unity.ir.equality import first_difference
from unity.ir.graph import (
    Call,
    CallTir,
    Function,
    Var,
    VarBinding,
)
from unity.ir.types import (
    FuncType,
)
from unity.ir.well_formed.verify import verify
from unity.op.builder import GraphBuilder
from unity.script import Buffer, R, Tensor, dim, f32

n = dim("n")
m = dim("m")


def test_closures() -> None:
    @script.function
    def main(x: f32[Tensor, n], y: f32[Tensor, n]) -> f32[Tensor, n]:
        @script.function
        def shift(v: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.add(v, y)

        return shift(x)

    kind = f32_(N)
    x, y, v, add, out = (Var(name, kind) for name in ("x", "y", "v", "add", "out"))
    closure = Function((v,), body(add, VarBinding(add, op("add", v, y))), kind)
    shift = Var("shift", FuncType((kind,), kind))
    expected = body(out, VarBinding(shift, closure), VarBinding(out, Call(shift, (x,))))
    same(main, Function((x, y), expected, kind))


def test_recursion() -> None:
    @script.function
    def loop(c: script.boolean[Tensor, ()], x: f32[Tensor, n]) -> f32[Tensor, n]:
        return loop(c, R.exp(x)) if c else x

    assert list(loop.module()) == ["loop"]
    verify(loop.module())


def test_a_module_tells_functions_of_one_name_apart() -> None:
    def make(factor: float) -> script.ScriptPrimFunc[...]:
        @script.prim_func
        def kernel(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
            for i in range(4):
                c[i] = a[i] * factor

        return kernel

    double, triple = make(2.0), make(3.0)

    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        y = R.call_tir(double, (x,), out=f32[Tensor, 4])
        return R.call_tir(triple, (y,), out=f32[Tensor, 4])

    @script.function
    def other(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        return R.call_tir(triple, (x,), out=f32[Tensor, 4])

    module = script.module(other, main)
    assert sorted(module) == ["kernel", "kernel_1", "main", "other"]
    assert module["kernel"] is triple.func
    assert module["kernel_1"] is double.func
    called = [b.value for b in module.graph_functions()["main"].body.blocks[0].bindings]
    assert [c.callee.name for c in called if isinstance(c, CallTir)] == ["kernel_1", "kernel"]
    verify(module)


def test_texts() -> None:
    text = """
import unity
n = dim("n", min=1)
puts = script.extern("puts", R.Func([R.Object], R.Object))

@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = later(x)
    z = R.add(y, R.const("w"))
    return z

@script.function
def later(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return x
"""
    weights = np.ones(1, np.float32)
    module = script.parse(text, {"w": weights})
    assert list(module) == ["puts", "main", "later"]
    main = module["main"]
    assert isinstance(main, Function)
    assert main.params[0].type == f32_(symbol("n", min=1))
    verify(module)


def test_builder_and_script_agree() -> None:
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        with R.dataflow():
            y = R.nn.softmax(R.multiply(x, 0.5), axis=1)
        return y  # noqa: RET504

    builder = GraphBuilder()
    x = builder.param("x", f32_(N, 4))
    y = builder.op("nn.softmax", builder.op("multiply", x, 0.5), axis=1)
    assert first_difference(main.func, builder.finish(y)) is None


def test_shapes_name_max_beside_a_kernel_of_that_name() -> None:
    text = """
n = dim("n")

@script.prim_func
def max(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = x[i]

@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    s = R.match_cast(R.shape(n), R.Shape(max(512, n)))
    y = R.call_tir(max, (x,), out=f32[Tensor, n])
    return y
"""
    module = script.parse(text)
    assert first_difference(module, script.parse(script.print_module(module))) is None


def test_functions_may_be_named_as_words_of_the_language() -> None:
    module = script.parse(
        """
n = dim("n")
@script.prim_func
def Buffer(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
    for i in T.serial(n):
        with T.block("b"):
            v = T.axis.spatial(n, i)
            b[v] = a[v] + 1.0
@script.function
def f32(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.match_cast(R.exp(x), f32[Tensor, n])
    return R.call_tir(Buffer, (y,), out=f32[Tensor, n])
@script.function
def R(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.negative(f32(x))
@script.function
def Tensor(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R(x)
"""
    )
    assert set(module) == {"Buffer", "f32", "R", "Tensor"}
    assert first_difference(script.parse(script.print_module(module)), module) is None
