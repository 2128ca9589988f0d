"""If, while, scan and loops unrolled while parsing."""

from __future__ import annotations

import numpy as np

from tests.script.expected import N, body, f32_, op, same
from unity import script
from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.graph import (
    Call,
    Constant,
    Function,
    If,
    Op,
    PrimValue,
    Scan,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.types import (
    PrimType,
    TensorType,
    TupleType,
)
from unity.ir.well_formed.verify import verify
from unity.script import R, Tensor, dim, f32

n = dim("n")
m = dim("m")


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

    kind, count, number = f32_(N), PrimType(INT64), TensorType((), INT64)
    x, y0, y, t, y1, last = (Var(v, kind) for v in ("x", "y0", "y", "t", "y1", "last"))
    i, i1, less = Var("i", count), Var("i1", count), Var("less", TensorType((), BOOL))
    held, held1, add = Var("held", number), Var("held1", number), Var("add", number)
    goes_on, of_int = Var("goes_on", PrimType(BOOL)), Attrs({"dtype": INT64})
    pair_type = TupleType((kind, count))
    pair, whole = Var("pair", TupleType((count, kind))), Var("w", TupleType((count, kind)))
    last_i = Var("li", count)
    zero = PrimValue(0, INT64)
    one, three = (Constant(np.asarray(v, np.int64)) for v in (1, 3))
    loop = While(
        (i, y),
        (zero, y0),
        body(
            goes_on,
            VarBinding(held, Call(Op("scalar_tensor"), (i,), of_int)),
            VarBinding(less, op("less", held, three)),
            VarBinding(goes_on, op("item", less)),
        ),
        body(
            pair,
            VarBinding(t, op("exp", y)),
            VarBinding(held1, Call(Op("scalar_tensor"), (i,), of_int)),
            VarBinding(add, op("add", held1, one)),
            VarBinding(i1, op("item", add)),
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
