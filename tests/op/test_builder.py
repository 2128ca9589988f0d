"""Building graph functions: normal form, types, names, scalars, calls of functions, bad calls."""

from __future__ import annotations

import numpy as np
import pytest

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import dim
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.graph import (
    Call,
    Constant,
    FunctionRef,
    If,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.lattice import function_type
from unity.ir.module import IRModule
from unity.ir.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.builder import GraphBuilder, identifier
from unity.op.call import call_op
from unity.op.check import check_types
from unity.op.infer import infer_type
from unity.op.table import OPS

n, m = dim("n"), dim("m")
MATRIX = TensorType((n, 4), FLOAT32)


def check(module: IRModule) -> None:
    verify(module)
    check_types(module)


def test_nested_calls_become_bindings_with_types() -> None:
    b = GraphBuilder()
    x = b.param("x", MATRIX)
    y = b.emit(call_op("exp", call_op("add", x, 1.0)))
    f = b.finish(y)
    bindings = list(walk_bindings(f))
    assert [v.var.name for v in bindings] == ["add", "exp"]
    assert [v.var.type for v in bindings] == [MATRIX, MATRIX]
    assert [block.dataflow for block in f.body.blocks] == [True]
    assert f.result == MATRIX
    check(IRModule({"main": f}))


def test_a_number_takes_the_dtype_of_the_other_operand() -> None:
    x = Var("x", TensorType((3,), INT64))
    call = call_op("add", x, 2)
    assert isinstance(call.args[1], Constant)
    assert call.args[1].data.dtype == np.int64
    assert call.args[1].data.shape == ()
    condition = Var("c", TensorType((3,), BOOL))
    chosen = call_op("where", condition, x, 0)
    assert isinstance(chosen.args[2], Constant)
    assert chosen.args[2].data.dtype == np.int64


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.5, "1.5 is no int64"), (2**70, "does not fit int64"), ("a", "must be a tensor")],
)
def test_a_number_that_does_not_fit_is_refused(value: object, said: str) -> None:
    x = Var("x", TensorType((3,), INT64))
    with pytest.raises(UnityError, match=said):
        call_op("add", x, value)


def test_shapes_and_attributes_from_python_values() -> None:
    call = call_op("zeros", (n, 4), "float16")
    assert call.args == (ShapeValue((n, 4)),)
    assert str(call.attrs["dtype"]) == "float16"
    assert call_op("sum", Var("x", MATRIX), axis=[1]).attrs == Attrs(axis=(1,), keepdims=False)


def test_names_and_symbols_are_unique() -> None:
    b = GraphBuilder()
    x = b.param("x", TensorType((dim("nonzero"),), FLOAT32))
    first, second = b.op("exp", x), b.op("exp", x)
    assert (first.name, second.name) == ("exp", "exp_1")
    found = b.op("nonzero", x)
    assert found.type == TensorType((1, dim("nonzero_1")), INT64)
    again = b.op("nonzero", x)
    assert again.type == TensorType((1, dim("nonzero_2")), INT64)
    check(IRModule({"main": b.finish(Tuple((found, again)))}))


def test_identifiers() -> None:
    assert identifier("layer1/conv:0") == "layer1_conv_0"
    assert identifier("lambda") == "lambda_"
    assert identifier("f32") == "f32_"


def test_control_flow_and_impure_ops_leave_the_dataflow_block() -> None:
    b = GraphBuilder()
    x = b.param("x", MATRIX)
    y = b.op("exp", x)
    condition = b.op("greater", b.op("max", y), 1.0)
    then, orelse = b.child(), b.child()
    value = If(condition, then.body(then.op("negative", y)), orelse.body(orelse.op("exp", y)))
    z = b.emit(value)
    f = b.finish(b.op("add", z, y))
    assert [block.dataflow for block in f.body.blocks] == [True, False, True]
    assert f.pure
    check(IRModule({"main": f}))
    b = GraphBuilder()
    arena = b.op("memory.alloc_arena", (64,))
    view = b.op("memory.view", arena, (0,), (4,), dtype="float32")
    f = b.finish(view)
    assert f.pure  # what it does to memory of its own is no effect
    assert not any(block.dataflow for block in f.body.blocks)


def test_a_call_of_a_function_binds_its_symbols() -> None:
    callee = FuncType((TensorType((m, 4), FLOAT32),), TensorType((m + 1,), FLOAT32))
    b = GraphBuilder({"f": callee})
    x = b.param("x", TensorType((n * 2, 4), FLOAT32))
    assert b.emit(Call(FunctionRef("f"), (x,))).type == TensorType((n * 2 + 1,), FLOAT32)
    with pytest.raises(UnityError, match="axis 1: expected 4, got 3"):
        b.emit(Call(FunctionRef("f"), (b.param("y", TensorType((n, 3), FLOAT32)),)))
    with pytest.raises(UnityError, match="no function 'g'"):
        b.emit(Call(FunctionRef("g"), (x,)))


def test_a_size_that_only_the_callee_knows_is_fresh() -> None:
    callee = FuncType((MATRIX,), TensorType((m,), FLOAT32))
    b = GraphBuilder({"f": callee})
    x = b.param("x", TensorType((m, 4), FLOAT32))
    assert b.emit(Call(FunctionRef("f"), (x,))).type == TensorType((dim("m_1"),), FLOAT32)


def test_types_of_the_other_expressions() -> None:
    x = Var("x", MATRIX)
    pair = Var("pair", TupleType((MATRIX, ShapeType((n,)))))
    assert infer_type(TupleGet(pair, 1), {}) == ShapeType((n,))
    assert infer_type(PrimValue(n + 1, INT64), {}) == PrimType(INT64, n + 1)
    assert infer_type(PrimValue(1.5, FLOAT32), {}) == PrimType(FLOAT32)
    for wrong, said in (
        (TupleGet(pair, 2), "has no field 2"),
        (TupleGet(x, 0), "can't take field 0 of a tensor"),
        (Op("exp"), "is no value: call it"),
        (Call(Op("nonsense"), (x,)), "no operator 'nonsense'"),
        (Call(x, (x,)), "a tensor can't be called"),
    ):
        with pytest.raises(UnityError, match=said):
            infer_type(wrong, {})


def test_branches_join_and_conditions_are_scalar_bools() -> None:
    b = GraphBuilder()
    flag = b.param("flag", TensorType((), BOOL))
    x, y = b.param("x", MATRIX), b.param("y", TensorType((m, 4), FLOAT32))
    value = If(flag, b.child().body(x), b.child().body(y))
    assert infer_type(value, {}) == TensorType(2, FLOAT32)
    with pytest.raises(UnityError, match="a condition must be a scalar bool"):
        infer_type(If(x, b.child().body(x), b.child().body(x)), {})


def test_a_loop_keeps_the_types_of_its_state() -> None:
    b = GraphBuilder()
    x = b.param("x", TensorType((), FLOAT32))
    inner = b.child()
    state = inner.new_var("state", TensorType((), FLOAT32))
    test = b.child()
    condition = test.body(test.op("less", state, 10.0))
    good = While((state,), (x,), condition, inner.body(Tuple((inner.op("add", state, 1.0),))))
    assert b.emit(good).type == TupleType((TensorType((), FLOAT32),))
    check(IRModule({"main": b.finish(x)}))
    other = b.child()
    bad = While((state,), (x,), condition, other.body(Tuple((other.op("astype", state, "int64"),))))
    with pytest.raises(UnityError, match=r"'state' has type .*becomes"):
        infer_type(bad, {})


def test_a_wrong_declared_type_is_found() -> None:
    b = GraphBuilder()
    x = b.param("x", MATRIX)
    f = b.finish(b.op("exp", x))
    wrong = Var("wrong", TensorType((n, 5), FLOAT32))
    binding = VarBinding(wrong, call_op("exp", x))
    blocks = (type(f.body.blocks[0])((binding,), True),)
    bad = type(f)((x,), type(f.body)(blocks, wrong), wrong.type)
    with pytest.raises(UnityError, match="main, binding wrong: has type"):
        check_types(IRModule({"main": bad}))
    lying = type(f)((x,), f.body, TensorType((n, 5), FLOAT32))
    with pytest.raises(UnityError, match="main, result: has type"):
        check_types(IRModule({"main": lying}))


def test_call_arguments_are_sorted_and_checked() -> None:
    x = Var("x", MATRIX)
    assert function_type(GraphBuilder().finish(ShapeValue(()))).params == ()
    assert infer_type(call_op("memory.alloc_arena", (8,)), {}) == ObjectType()
    for args, attrs, said in (
        ((x, x, x), {}, "takes 2 arguments, got 3"),
        ((x,), {}, "needs 'x2'"),
        ((x, x), {"axis": 1}, "has no parameter 'axis'"),
        ((x,), {"x1": x}, "got 'x1' twice"),
    ):
        with pytest.raises(UnityError, match=said):
            OPS["add"].bind(args, dict(attrs))
    with pytest.raises(UnityError, match=r"no operator 'nn\.exp'"):
        call_op("nn.exp", x)
