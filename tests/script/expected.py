"""What specs of the parser share: IR written by hand, and two functions to call."""

from __future__ import annotations

from unity import script
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim
from unity.ir.dims import dim as symbol
from unity.ir.dtype import FLOAT32
from unity.ir.equality import first_difference
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    Expr,
    Function,
    Op,
)
from unity.ir.types import (
    TensorType,
)
from unity.ir.well_formed.verify import verify
from unity.script import Buffer, R, T, Tensor, dim, f32

n = dim("n")
m = dim("m")
N = symbol("n")


def f32_(*shape: Dim) -> TensorType:
    return TensorType(shape, FLOAT32)


SCALAR = f32_()


def op(name: str, *args: Expr, **attrs: AttrValue) -> Call:
    return Call(Op(name), args, Attrs(attrs))


def block(*bindings: Binding, dataflow: bool = False) -> BindingBlock:
    return BindingBlock(bindings, dataflow)


def body(result: Expr, *bindings: Binding) -> Body:
    return Body((block(*bindings),) if bindings else (), result)


def same(got: script.ScriptFunction[..., object], expected: Function) -> None:
    assert first_difference(got.func, expected) is None
    verify(got.module())


@script.prim_func
def scale(a: f32[Buffer, n, 4], c: f32[Buffer, n, 4]) -> None:
    for i, j in T.grid(n, 4):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0


@script.function
def helper(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    return R.nn.relu(x)
