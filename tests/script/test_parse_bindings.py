"""Bindings, calls and values of graph functions parse to the IR one would build by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.script.expected import SCALAR, N, block, body, f32_, helper, op, same, scale
from unity import script
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import dim as symbol
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import (
    Body,
    Call,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Function,
    FunctionRef,
    MatchCast,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)
from unity.script import R, Tensor, dim, f32, i64

n = dim("n")
m = dim("m")


def test_nested_calls_are_bound_one_by_one() -> None:
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        return R.nn.relu(R.add(x, 1.0))

    x, total, relu = (Var(v, f32_(N, 4)) for v in ("x", "add", "relu"))
    one = Constant(np.asarray(1.0, np.float32))
    expected = body(
        relu,
        VarBinding(total, op("add", x, one)),
        VarBinding(relu, op("nn.relu", total)),
    )
    same(main, Function((x,), expected, f32_(N, 4)))


def test_calls_across_layers() -> None:
    def double(a: object, out: object) -> None:
        raise NotImplementedError

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        y = R.call_tir(scale, (x,), out=f32[Tensor, n, 4])
        z = helper(y)
        v = R.call_library("vsExp", (z,), out=f32[Tensor, n, 4], attrs={"unit": 1})
        return R.call_python(double, v, out=f32[Tensor, n, 4])

    x, y, z, v, w = (Var(name, f32_(N, 4)) for name in "xyzvw")
    out = (f32_(N, 4),)
    expected = body(
        w,
        VarBinding(y, CallTir(FunctionRef("scale"), (x,), out)),
        VarBinding(z, Call(FunctionRef("helper"), (y,))),
        VarBinding(v, CallLibrary("vsExp", (z,), out, Attrs(unit=1))),
        VarBinding(w, CallPython(double, (v,), out)),
    )
    same(main, Function((x,), expected, f32_(N, 4)))
    assert list(main.module()) == ["scale", "helper", "main"]


def test_dataflow_blocks_are_as_written() -> None:
    @script.function(attrs={"source": "test"})
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        a = R.exp(x)
        with R.dataflow():
            b = R.exp(a)
            c = R.exp(b)
        with R.dataflow():
            d = R.exp(c)
        return d  # noqa: RET504

    x, a, b, c, d = (Var(name, f32_(N)) for name in "xabcd")
    blocks = (
        block(VarBinding(a, op("exp", x))),
        block(VarBinding(b, op("exp", a)), VarBinding(c, op("exp", b)), dataflow=True),
        block(VarBinding(d, op("exp", c)), dataflow=True),
    )
    same(main, Function((x,), Body(blocks, d), f32_(N), attrs=Attrs(source="test")))


def test_tuples() -> None:
    @script.function
    def main(x: f32[Tensor, n], y: f32[Tensor, 3]) -> tuple[f32[Tensor, n], f32[Tensor, 3]]:
        t = (x, y)
        a, _ = t
        return a, t[-1]

    x, y = Var("x", f32_(N)), Var("y", f32_(3))
    pair = TupleType((f32_(N), f32_(3)))
    t, a, b, last, result = (
        Var("t", pair), Var("a", f32_(N)), Var("b", f32_(3)), Var("t_1", f32_(3)), Var("r", pair),
    )  # fmt: skip
    expected = body(
        result,
        VarBinding(t, Tuple((x, y))),
        VarBinding(a, TupleGet(t, 0)),
        VarBinding(b, TupleGet(t, 1)),
        VarBinding(last, TupleGet(t, 1)),
        VarBinding(result, Tuple((a, last))),
    )
    same(main, Function((x, y), expected, pair))


def test_values_of_every_kind() -> None:
    def types() -> list[Type]:
        func = FuncType((SCALAR,), SCALAR)
        return [
            ShapeType((N, 4)), ShapeType(2), ShapeType(None), PrimType(INT64),
            PrimType(INT64, N), ObjectType(), TensorType(2, FLOAT32), TensorType(None, None), func,
        ]  # fmt: skip

    text = """
n = dim("n")
@script.function
def main(a: R.Shape(n, 4), b: R.Shape(R.rank(2)), c: R.Shape(...), d: R.Prim("int64"),
         e: R.Prim("int64", n), f: R.Object, g: f32[Tensor, R.rank(2)], h: R.any_dtype[Tensor, ...],
         i: R.Func([f32[Tensor, ()]], f32[Tensor, ()])) -> R.Object:
    s = R.shape(n + 1, 2)
    p = R.prim(n * 2)
    q = R.prim(1.5, "float64")
    r = R.const([[1, 2]], "int64")
    return (s, p, q, r)
"""
    module = script.parse(text)
    main = module["main"]
    assert isinstance(main, Function)
    assert [p.type for p in main.params] == types()
    values = [b.value for b in main.body.blocks[0].bindings if isinstance(b, VarBinding)]
    assert values[0] == ShapeValue((N + 1, 2))
    assert values[1] == PrimValue(N * 2, INT64)
    assert isinstance(values[2], PrimValue)
    assert values[2].dtype.name == "float64"
    assert isinstance(values[3], Constant)
    np.testing.assert_array_equal(values[3].data, np.array([[1, 2]]))


def test_operators() -> None:
    @script.function
    def main(x: f32[Tensor, n], y: f32[Tensor, n]) -> f32[Tensor, n]:
        z = x
        z += 2 * y
        return -z / (x - 1)

    x, y, z, twice, total, minus, less, result = (
        Var(name, f32_(N)) for name in ("x", "y", "z", "a", "b", "c", "d", "e")
    )
    two, one = (Constant(np.asarray(v, np.float32)) for v in (2, 1))
    expected = body(
        result,
        VarBinding(z, x),
        VarBinding(twice, op("multiply", two, y)),
        VarBinding(total, op("add", z, twice)),
        VarBinding(minus, op("negative", total)),
        VarBinding(less, op("subtract", x, one)),
        VarBinding(result, op("divide", minus, less)),
    )
    same(main, Function((x, y), expected, f32_(N)))


def test_match_cast_to_another_dtype_is_refused() -> None:
    with pytest.raises(UnityError):

        @script.function
        def main(x: f32[Tensor, n]) -> i64[Tensor, n]:
            return R.nn.relu(x)


def test_match_cast_binding() -> None:
    k = dim("k")

    @script.function
    def main(x: f32[Tensor, R.rank(2)]) -> f32[Tensor, R.rank(2)]:
        y = R.match_cast(x, f32[Tensor, k, 4])
        return R.reshape(y, (4, k))

    x, y = Var("x", TensorType(2, FLOAT32)), Var("y", f32_(symbol("k"), 4))
    out = Var("out", f32_(4, symbol("k")))
    expected = body(
        out,
        MatchCast(y, x, f32_(symbol("k"), 4)),
        VarBinding(out, op("reshape", y, ShapeValue((4, symbol("k"))))),
    )
    same(main, Function((x,), expected, TensorType(2, FLOAT32)))
