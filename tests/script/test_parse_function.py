"""Graph functions as written parse to the IR one would build by hand."""

from __future__ import annotations

import numpy as np
import pytest

from unity import script
from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, dim_max, floordiv
from unity.ir.dims import dim as symbol
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.equality import first_difference
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
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
from unity.ir.verify import verify
from unity.op.builder import GraphBuilder
from unity.script import Buffer, R, T, Tensor, dim, f32, i64

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


def test_dims_in_annotations_are_our_own() -> None:
    @script.function
    def main(x: f32[Tensor, n, m]) -> f32[Tensor, (n + 1) // 2, max(n, m)]:
        return R.full(((n + 1) // 2, max(n, m)), 0.0, "float32")

    half, most = floordiv(N + 1, 2), dim_max(N, symbol("m"))
    assert main.func.result == f32_(half, most)


def test_captured_arrays_are_constants() -> None:
    weight = np.arange(4, dtype=np.float32)

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        y = R.add(x, weight)
        return y * weight

    bindings = main.func.body.blocks[0].bindings
    first, second = (b.value for b in bindings)
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.args[1] is second.args[1]
    assert isinstance(first.args[1], Constant)
    assert first.args[1].data is weight


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


def test_if_joins_what_is_used_later() -> None:
    @script.function
    def main(c: script.boolean[Tensor, ()], x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = x
        if c:
            unused = R.exp(x)
            y = R.exp(unused)
        return y

    c, x, y, unused, inner, joined = (
        Var("c", TensorType((), BOOL)),
        *(Var(name, f32_(N)) for name in ("x", "y", "u", "i", "j")),
    )
    value = If(
        c,
        body(inner, VarBinding(unused, op("exp", x)), VarBinding(inner, op("exp", unused))),
        body(y),
    )
    expected = body(joined, VarBinding(y, x), VarBinding(joined, value))
    same(main, Function((c, x), expected, f32_(N)))


def test_if_of_several_names_is_a_tuple() -> None:
    @script.function
    def main(c: script.boolean[Tensor, ()], x: f32[Tensor, n]) -> f32[Tensor, n]:
        if c:
            a = R.exp(x)
            b = R.sin(x)
        else:
            a = R.sin(x)
            b = R.exp(x)
        return a + b

    value = main.func.body.blocks[0].bindings[0].value
    assert isinstance(value, If)
    kinds = [type(b.value) for b in main.func.body.blocks[0].bindings[1:3]]
    assert kinds == [TupleGet, TupleGet]
    verify(main.module())


def test_returns_in_both_branches() -> None:
    @script.function
    def main(c: script.boolean[Tensor, ()], x: f32[Tensor, n]) -> f32[Tensor, n]:
        if c:
            return R.exp(x)
        else:  # noqa: RET505
            return x

    assert isinstance(main.func.body.blocks[0].bindings[0].value, If)
    verify(main.module())


def test_if_over_a_captured_bool_is_decided_while_parsing() -> None:
    def make(training: bool) -> script.ScriptFunction[..., Tensor]:
        @script.function
        def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.exp(x) if training else R.sin(x)

        return main

    def names(f: script.ScriptFunction[..., Tensor]) -> list[str]:
        values = [b.value for b in f.func.body.blocks[0].bindings]
        return [v.callee.name for v in values if isinstance(v, Call)]

    assert names(make(True)) == ["exp"]
    assert names(make(False)) == ["sin"]


def test_while_carries_what_it_changes() -> None:
    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        i = 0
        y = x
        while i < 3:
            t = R.exp(y)
            i = i + 1
            y = t
        return y

    kind, count = f32_(N), TensorType((), INT64)
    x, y0, y, t, y1, last = (Var(v, kind) for v in ("x", "y0", "y", "t", "y1", "last"))
    i, i1, less = Var("i", count), Var("i1", count), Var("less", TensorType((), BOOL))
    pair_type = TupleType((kind, count))
    pair, whole = Var("pair", TupleType((count, kind))), Var("w", TupleType((count, kind)))
    last_i = Var("li", count)
    zero, one, three = (Constant(np.asarray(v, np.int64)) for v in (0, 1, 3))
    loop = While(
        (i, y),
        (zero, y0),
        body(less, VarBinding(less, op("less", i, three))),
        body(
            pair,
            VarBinding(t, op("exp", y)),
            VarBinding(i1, op("add", i, one)),
            VarBinding(y1, t),
            VarBinding(pair, Tuple((i1, y1))),
        ),
    )
    expected = body(
        last,
        VarBinding(y0, x),
        VarBinding(whole, loop),
        VarBinding(last_i, TupleGet(whole, 0)),
        VarBinding(last, TupleGet(whole, 1)),
    )
    assert pair_type != pair.type
    same(main, Function((x,), expected, kind))


def test_a_state_that_grows_loses_its_size() -> None:
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, R.rank(2)]:
        y = x
        i = 0
        while i < 3:
            y = R.concat((y, x), axis=0)
            i = i + 1
        return y

    loops = [b.value for b in main.func.body.blocks[0].bindings if isinstance(b.value, While)]
    kinds = [v.type for v in loops[0].vars]
    assert TensorType(2, FLOAT32) in kinds
    verify(main.module())


def test_loops_over_nested_functions() -> None:
    @script.function
    def main(x: f32[Tensor, n, 4], s: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
        def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            total = R.add(state, row)
            return total, total

        _, rows = R.scan(step, init=(s,), inputs=(x,))
        return rows

    kinds = f32_(4)
    x, s = Var("x", f32_(N, 4)), Var("s", kinds)
    state, row, total = (Var(v, kinds) for v in ("state", "row", "total"))
    pair_type = TupleType((kinds, kinds))
    pair, both = Var("pair", pair_type), Var("scan", TupleType((kinds, f32_(N, 4))))
    last, rows = Var("last", kinds), Var("rows", f32_(N, 4))
    inner = body(
        pair, VarBinding(total, op("add", state, row)), VarBinding(pair, Tuple((total, total)))
    )
    expected = body(
        rows,
        VarBinding(both, Scan((state,), (s,), (row,), (x,), inner)),
        VarBinding(last, TupleGet(both, 0)),
        VarBinding(rows, TupleGet(both, 1)),
    )
    same(main, Function((x, s), expected, f32_(N, 4)))


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


def test_unrolled_loops_and_local_python_values() -> None:
    layers = [np.eye(4, dtype=np.float32)] * 3

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        axis = 1
        for weight in layers:
            x = R.matmul(x, weight)
        return R.nn.softmax(x, axis=axis)

    values = [b.value for b in main.func.body.blocks[0].bindings]
    names = [v.callee.name for v in values if isinstance(v, Call)]
    assert names == ["matmul"] * 3 + ["nn.softmax"]


def test_purity_is_found_out() -> None:
    @script.function
    def impure(x: f32[Tensor, n]) -> f32[Tensor, n]:
        R.memory.alloc_arena((64,))
        return x

    @script.function
    def caller(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return impure(x)

    assert not impure.func.pure
    assert not caller.func.pure


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


def test_annotations_may_be_strings_or_annotated() -> None:
    text = """
n = dim("n")
@script.function
def main(x: "f32[Tensor, n]", s: Annotated[Tensor, R.Shape(n)]) -> tuple[f32[Tensor, n], R.Object]:
    return x, s
"""
    main = script.parse(text)["main"]
    assert isinstance(main, Function)
    assert [p.type for p in main.params] == [f32_(N), ShapeType((N,))]
    assert main.result == TupleType((f32_(N), ObjectType()))


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
