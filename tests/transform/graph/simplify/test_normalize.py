"""Normalize: what the parser and importers give becomes the one form that passes expect."""

from __future__ import annotations

from tests.transform.cases import apply, becomes
from unity.ir.dims import dim
from unity.ir.dtype import FLOAT32
from unity.ir.equality import first_difference
from unity.ir.graph import BindingBlock, Body, Call, Function, Op, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.types import ObjectType, TensorType
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import Normalize

N = dim("n")


def test_copies_and_fields_of_known_tuples_give_way() -> None:
    becomes(
        Normalize(),
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    a = x
    pair = (a, R.exp(a))
    b = pair[1]
    c = b
    return R.add(c, pair[0])
""",
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    with R.dataflow():
        e = R.exp(x)
        pair = (x, e)
        y = R.add(e, x)
    return y
""",
    )


def test_a_cast_that_is_known_to_hold_disappears() -> None:
    becomes(
        Normalize(),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    y = R.match_cast(x, f32[Tensor, n, 4])
    return R.exp(y)
""",
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    with R.dataflow():
        y = R.exp(x)
    return y
""",
    )


def test_a_cast_that_binds_a_symbol_stays() -> None:
    module = apply(
        Normalize(),
        """
n = dim("n")
k = dim("k")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, k]:
    y = R.match_cast(x, f32[Tensor, k])
    return R.exp(y)
""",
    )
    (block,) = module.graph_functions()["main"].body.blocks
    assert len(block.bindings) == 2


def test_nested_expressions_are_bound_and_typed() -> None:
    x = Var("x", TensorType((N, 4), FLOAT32))
    nested = Call(Op("exp"), (Call(Op("nn.relu"), (x,)),))
    y = Var("y", ObjectType())
    body = Body((BindingBlock((VarBinding(y, nested),)),), y)
    built = IRModule({"main": Function((x,), body, ObjectType())})
    expected = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    with R.dataflow():
        y = R.exp(R.nn.relu(x))
    return y
"""
    got = apply([], Normalize()(built, Context()))
    assert first_difference(got, parse(expected)) is None


def test_control_flow_stands_outside_of_dataflow() -> None:
    module = apply(
        Normalize(),
        """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    a = R.exp(x)
    b = R.negative(a)
    if flag:
        c = R.add(a, b)
    else:
        c = a
    return R.exp(c)
""",
    )
    blocks = module.graph_functions()["main"].body.blocks
    assert [b.dataflow for b in blocks] == [True, False, True]


def test_refined_types_reach_their_users() -> None:
    x = Var("x", TensorType((N, 4), FLOAT32))
    a = Var("a", TensorType(2, FLOAT32))
    b = Var("b", TensorType(2, FLOAT32))
    body = Body(
        (
            BindingBlock(
                (
                    VarBinding(a, Call(Op("exp"), (x,))),
                    VarBinding(b, Call(Op("nn.relu"), (a,))),
                )
            ),
        ),
        b,
    )
    got = Normalize()(IRModule({"main": Function((x,), body, TensorType(2, FLOAT32))}), Context())
    main = got.graph_functions()["main"]
    assert main.result == TensorType((N, 4), FLOAT32)
    assert [v.var.type for v in main.body.blocks[0].bindings] == [main.result, main.result]
