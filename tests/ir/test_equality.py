"""Structural equality ignores names of variables and spans, and says where programs differ."""

from __future__ import annotations

import numpy as np

from unity.errors import Span
from unity.ir.attrs import Attrs
from unity.ir.dims import dim
from unity.ir.dtype import FLOAT32
from unity.ir.equality import first_difference, structural_equal, structural_hash
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    Constant,
    Expr,
    Function,
    Op,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, PrimVar, imm
from unity.ir.stmt import Buffer, For, PrimFunc, Seq, Store
from unity.ir.types import TensorType

N = dim("n")
T = TensorType((N, 4), FLOAT32)


def unary(op: str, name: str = "x", span: Span | None = None, **attrs: int) -> Function:
    x, y = Var(name, T, span), Var("y", T)
    call = Call(Op(op), (x,), Attrs(attrs), span)
    return Function((x,), Body((BindingBlock((VarBinding(y, call),), True),), y), T)


def fill(value: float, name: str = "i") -> PrimFunc:
    i, c = PrimVar(name), Buffer("c", (imm(8),), FLOAT32)
    return PrimFunc((c,), For(i, imm(0), imm(8), Store(c, (i,), imm(value, FLOAT32))))


def test_names_and_spans_do_not_count() -> None:
    a, b = unary("exp"), unary("exp", "other", Span("f.py", 1, 0, 1, 3))
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert structural_equal(fill(1.0), fill(1.0, "j"))


def test_the_first_difference_is_a_path() -> None:
    a, b = IRModule({"main": unary("exp")}), IRModule({"main": unary("log")})
    path = "main.body.blocks[0].bindings[0].value.callee.name"
    assert first_difference(a, b) == f"{path}: 'exp' is not 'log'"
    assert "attrs" in str(first_difference(unary("sum", axis=1), unary("sum", axis=2)))
    assert first_difference(fill(1.0), fill(2.0)) == ".body.body.value.value: 1.0 is not 2.0"


def test_which_variable_is_meant_counts() -> None:
    def second_of_two(pick: int) -> Function:
        xs = (Var("a", T), Var("b", T))
        return Function(xs, Body((), xs[pick]), T)

    assert not structural_equal(second_of_two(0), second_of_two(1))


def test_constants_compare_by_bits() -> None:
    def of(value: float) -> Expr:
        return Constant(np.array(value, np.float32))

    assert structural_equal(of(float("nan")), of(float("nan")))
    assert not structural_equal(of(0.0), of(-0.0))
    assert not structural_equal(Imm(0.0, FLOAT32), Imm(-0.0, FLOAT32))
    assert structural_equal(Imm(float("nan"), FLOAT32), Imm(float("nan"), FLOAT32))


def test_modules_compare_by_name_not_by_order() -> None:
    f, g = unary("exp"), unary("log")
    a, b = IRModule({"f": f, "g": g}), IRModule({"g": g, "f": f})
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert "functions" in str(first_difference(a, IRModule({"f": f})))


def test_a_variable_that_two_loops_share_is_as_good_as_two() -> None:
    def twice(first: PrimVar, second: PrimVar) -> PrimFunc:
        c = Buffer("c", (imm(8),), FLOAT32)
        loops = [For(v, imm(0), imm(8), Store(c, (v,), imm(0, FLOAT32))) for v in (first, second)]
        return PrimFunc((c,), Seq(tuple(loops)))

    i, j, k = PrimVar("i"), PrimVar("j"), PrimVar("k")
    assert structural_equal(twice(i, i), twice(j, k))
    assert structural_equal(twice(j, k), twice(i, i))
    assert structural_hash(twice(i, i)) == structural_hash(twice(j, k))


def test_how_plain_bindings_are_grouped_does_not_count() -> None:
    def two(*sizes: int, dataflow: bool = False) -> Function:
        x, y, z = Var("x", T), Var("y", T), Var("z", T)
        calls = (VarBinding(y, Call(Op("exp"), (x,))), VarBinding(z, Call(Op("log"), (y,))))
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        blocks = [
            BindingBlock(calls[a : a + n], dataflow) for a, n in zip(starts, sizes, strict=True)
        ]
        return Function((x,), Body(tuple(blocks), z), T)

    assert structural_equal(two(1, 1), two(0, 2))
    assert structural_hash(two(1, 1)) == structural_hash(two(2))
    assert not structural_equal(two(1, 1, dataflow=True), two(2, dataflow=True))
    assert not structural_equal(two(2, dataflow=True), two(2))
