"""The verifier names the function and the binding at fault."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.ir.dims import dim
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    CallTir,
    Expr,
    Function,
    FunctionRef,
    Op,
    ShapeValue,
    Var,
    VarBinding,
)
from unity.ir.module import Definition, IRModule
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, BlockAxis, Buffer, For, PrimFunc, Range, Seq, Store
from unity.ir.types import TensorType
from unity.ir.well_formed.verify import verify

N, M = dim("n"), dim("m")
T = TensorType((N,), FLOAT32)


def function(value: Expr, x: Var, result_type: TensorType = T, bound: TensorType = T) -> Function:
    y = Var("y", bound)
    return Function((x,), Body((BindingBlock((VarBinding(y, value),)),), y), result_type)


def bad(**functions: Definition) -> str:
    with pytest.raises(UnityError) as caught:
        verify(IRModule(functions))
    return caught.value.message


X = Var("x", T)
EXP = Call(Op("exp"), (X,))
SIZE = imm(8)
A = Buffer("a", (SIZE,), FLOAT32)
I = PrimVar("i")  # noqa: E741


def loop(index: PrimExpr, value: PrimExpr) -> PrimFunc:
    return PrimFunc((A,), For(I, imm(0), SIZE, Store(A, (index,), value)))


def test_a_good_module_passes() -> None:
    verify(IRModule({"main": function(EXP, X), "k": loop(I, imm(1.0, FLOAT32))}))


def test_scope_of_variables() -> None:
    stranger = Call(Op("exp"), (Var("z", T),))
    assert bad(main=function(stranger, X)) == (
        "main, binding y: an operand is z, which is not in scope"
    )


def test_normal_form() -> None:
    nested = Call(Op("exp"), (EXP,))
    assert "an operand is a Call: bind it first" in bad(main=function(nested, X))


def test_a_variable_is_bound_once() -> None:
    block = BindingBlock((VarBinding(X, EXP),))
    assert bad(main=Function((X,), Body((block,), X), T)).endswith("x is bound twice")


def test_symbols_are_bound_before_use() -> None:
    value = Call(Op("reshape"), (X, ShapeValue((M,))))
    assert bad(main=function(value, X)) == "main, binding y: m is bound nowhere"
    assert "result type mentions m" in bad(
        main=function(EXP, X, result_type=TensorType((M,), FLOAT32))
    )


def test_references_exist() -> None:
    call = CallTir(FunctionRef("k"), (X,), (T,))
    assert "an operand is k, which the module lacks" in bad(main=function(call, X))
    assert "call_tir of f, which is no prim func" in bad(
        main=function(CallTir(FunctionRef("f"), (X,), (T,)), X), f=function(EXP, Var("x", T))
    )
    one_buffer = loop(I, imm(1.0, FLOAT32))
    assert "k takes 1 buffers, got 1 inputs and 1 outputs" in bad(
        main=function(call, X), k=one_buffer
    )


def test_the_result_is_what_was_declared() -> None:
    assert "declared as" in bad(main=function(EXP, X, result_type=TensorType((N,), INT64)))


def test_prim_funcs() -> None:
    one = imm(1.0, FLOAT32)
    assert bad(k=loop(PrimVar("j"), one)) == "k: the variable j is not in scope"
    assert bad(k=loop(I, imm(1))) == "k: stores int64 into a, which holds float32"
    assert bad(k=loop(I, Load(A, (I, I)))) == "k: a is indexed with 2 indices, its rank is 1"
    assert "add of float32 and int64" in bad(k=loop(I, Load(A, (I,)) + I))
    other = Buffer("b", (SIZE,), FLOAT32)
    assert "the buffer b is not in scope" in bad(k=loop(I, Load(other, (I,))))
    strange = PrimFunc((), Allocate(Buffer("t", (imm(4),), FLOAT32, scope="banana"), Seq(())))
    assert bad(k=strange) == (
        "k: the buffer t has the scope 'banana': it is one of global, shared, local, amx.tile, "
        "or a backend's own, with a dot"
    )


def test_a_block_with_an_init_reduces() -> None:
    v = PrimVar("v")
    axis = BlockAxis(v, "S", Range(imm(0), SIZE), I)
    store = Store(A, (v,), imm(0.0, FLOAT32))
    block = Block("b", (axis,), (), (), store, init=store)
    assert bad(k=PrimFunc((A,), For(I, imm(0), SIZE, block))) == (
        "k, block b: has an init but no reduce axis"
    )
