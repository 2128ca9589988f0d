"""What the interpreter makes of kernels: values in the exact dtype, and mistakes found."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.prim_func import arrays_for, prim_func
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.attrs import Attrs
from unity.ir.dtype import BFLOAT16, BOOL, FLOAT32, INT8, INT32, INT64, DType
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
    Buffer,
    For,
    PrimFunc,
    PrimWhile,
    Range,
    Seq,
    Stmt,
    Store,
)

N = SizeVar("n")


def _scalar(value: PrimExpr, *inputs: Buffer) -> PrimFunc:
    """A kernel that stores one value."""
    out = Buffer("out", (), value.dtype)
    return PrimFunc((*inputs, out), Store(out, (), value))


def _value(value: PrimExpr) -> object:
    (result,) = run_prim_func(_scalar(value), [])
    return result[()]


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("add", 127, 1, -128),
        ("mul", 64, 4, 0),
        ("sub", -128, 1, 127),
        ("floordiv", -7, 2, -4),
        ("floormod", -7, 2, 1),
        ("truncdiv", -7, 2, -3),
        ("truncmod", -7, 2, -1),
        ("floordiv", -128, -1, -128),
        ("shl", 127, 1, -2),
        ("shr", -8, 1, -4),
        ("xor", -1, 1, -2),
    ],
)
def test_integers_wrap_in_their_dtype(op: BinaryOp, a: int, b: int, expected: int) -> None:
    assert _value(Binary(op, imm(a, INT8), imm(b, INT8))) == expected


def test_floats_round_in_their_dtype() -> None:
    tiny = Imm(2.0**-24, FLOAT32)
    assert _value(Imm(1.0, FLOAT32) + tiny) == np.float32(1)
    third = Imm(1.0, BFLOAT16) / Imm(3.0, BFLOAT16)
    assert _value(third) == BFLOAT16.numpy.type(1 / 3)


@pytest.mark.parametrize("op", ["min", "max"])
def test_min_and_max_give_nan_when_either_is(op: BinaryOp) -> None:
    nan, one = Imm(float("nan"), FLOAT32), Imm(1.0, FLOAT32)
    assert np.isnan(np.asarray(_value(Binary(op, nan, one))))
    assert np.isnan(np.asarray(_value(Binary(op, one, nan))))


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (-1.9, FLOAT32, INT32, -1),
        (300, INT32, INT8, 44),
        (-1, INT8, DType("uint16"), 65535),
        (2.5, FLOAT32, BOOL, True),
        (2**53 + 1, INT64, FLOAT32, np.float32(2**53)),
    ],
)
def test_casts_follow_numpy(value: float, source: DType, target: DType, expected: object) -> None:
    assert _value(Cast(target, imm(value, source))) == expected


def test_an_index_out_of_bounds_names_buffer_shape_and_index() -> None:
    a, b = Buffer("a", (imm(3),), FLOAT32), Buffer("b", (imm(3),), FLOAT32)
    i = PrimVar("i")
    shifted = For(i, imm(0), imm(3), Store(b, (i,), Load(a, (i - 1,))))
    with pytest.raises(UnityError, match=r"buffer 'a' of shape \(3,\) is indexed by \[-1\]"):
        run_prim_func(PrimFunc((a, b), shifted), [np.zeros(3, np.float32)])
    beyond = For(i, imm(0), imm(4), Store(b, (i,), Imm(0.0, FLOAT32)))
    with pytest.raises(UnityError, match=r"buffer 'b' of shape \(3,\) is indexed by \[3\]"):
        run_prim_func(PrimFunc((a, b), beyond), [np.zeros(3, np.float32)])


def test_a_symbol_with_two_values_names_it_both_buffers_and_both_values() -> None:
    a, b = Buffer("a", (N,), FLOAT32), Buffer("b", (imm(2), N), FLOAT32)
    with pytest.raises(UnityError, match=r"buffer 'b', dim 1, is n, which is 3 .*'a'.*got 4"):
        run_prim_func(
            PrimFunc((a, b), Seq(())), [np.zeros(3, np.float32), np.zeros((2, 4), np.float32)]
        )


def test_a_compound_extent_binds_its_one_unknown() -> None:
    a, out = Buffer("a", (N * 2 + 1,), FLOAT32), Buffer("out", (), INT64)
    func = PrimFunc((a, out), Store(out, (), N))
    assert run_prim_func(func, [np.zeros(7, np.float32)])[0] == 3
    with pytest.raises(UnityError, match="does not determine"):
        run_prim_func(func, [np.zeros(8, np.float32)])


def test_fresh_memory_is_poisoned() -> None:
    out = Buffer("out", (), FLOAT32)
    temp = Buffer("temp", (imm(1),), FLOAT32)
    func = PrimFunc((out,), Allocate(temp, Store(out, (), Load(temp, (imm(0),)))))
    assert np.isnan(run_prim_func(func, [])[0])


def test_an_init_runs_where_every_reduce_axis_begins_and_a_predicate_skips() -> None:
    a, out = Buffer("a", (imm(5),), INT32), Buffer("out", (), INT32)
    outer, inner, axis = PrimVar("o"), PrimVar("i"), PrimVar("k")
    position = outer * 2 + inner
    block = Block(
        "sum",
        (BlockAxis(axis, "R", Range(imm(0), imm(5)), position),),
        (),
        (),
        Store(out, (), Load(out, ()) + Load(a, (axis,))),
        Store(out, (), imm(0, INT32)),
        Compare("lt", position, imm(5)),
    )
    loops = For(outer, imm(0), imm(3), For(inner, imm(0), imm(2), block))
    func = PrimFunc((a, out), loops)
    assert run_prim_func(func, [np.arange(5, dtype=np.int32)])[0] == 10


def test_an_axis_outside_its_domain_is_a_mistake_of_the_schedule() -> None:
    out, i, axis = Buffer("out", (imm(4),), INT32), PrimVar("i"), PrimVar("v")
    axes = (BlockAxis(axis, "S", Range(imm(0), imm(3)), i),)
    block = Block("b", axes, (), (), Store(out, (axis,), imm(0, INT32)))
    with pytest.raises(UnityError, match=r"block 'b': axis 'v' is 3, outside its domain \[0, 3\)"):
        run_prim_func(PrimFunc((out,), For(i, imm(0), imm(4), block)), [])


def test_vectors_load_and_store_where_the_predicate_holds() -> None:
    a, out = Buffer("a", (imm(3),), FLOAT32), Buffer("out", (imm(4),), FLOAT32)
    lanes = Ramp(imm(0), imm(1), 4)
    inside = Compare("lt", lanes, Broadcast(imm(3), 4))
    body = Seq(
        (
            Store(out, (lanes,), Broadcast(Imm(9.0, FLOAT32), 4)),
            Store(out, (lanes,), Load(a, (lanes,), inside), Compare("ne", lanes, lanes * 0 + 1)),
        )
    )
    (result,) = run_prim_func(PrimFunc((a, out), body), [np.arange(1, 4, dtype=np.float32)])
    assert result.tolist() == [1.0, 9.0, 3.0, 0.0]


def test_a_select_of_vectors_loads_nothing_in_the_lanes_it_leaves_out() -> None:
    a, out = Buffer("a", (imm(2),), INT32), Buffer("out", (imm(4),), INT32)
    lanes = Ramp(imm(0), imm(1), 4)
    inside = Compare("lt", lanes, Broadcast(imm(2), 4))
    body = Store(out, (lanes,), Select(inside, Load(a, (lanes,)), Broadcast(imm(7, INT32), 4)))
    (result,) = run_prim_func(PrimFunc((a, out), body), [np.array([1, 2], np.int32)])
    assert result.tolist() == [1, 2, 7, 7]


def test_a_while_loop_reads_its_condition_from_memory() -> None:
    count = Buffer("count", (), INT32)
    step: Stmt = Store(count, (), Load(count, ()) * imm(2, INT32))
    loop = PrimWhile(Compare("lt", Load(count, ()), imm(100, INT32)), step)
    func = PrimFunc((count,), Seq((Store(count, (), imm(1, INT32)), loop)))
    assert run_prim_func(func, [])[0] == 128


def test_a_failed_assertion_is_an_error_with_its_message() -> None:
    out = Buffer("out", (), INT32)
    func = PrimFunc((out, N), Assert(Compare("gt", N, imm(2)), "n must exceed 2"))
    run_prim_func(func, [], {N: 3})
    with pytest.raises(UnityError, match="n must exceed 2"):
        run_prim_func(func, [], {N: 2})


def test_strides_of_a_parameter_bind_symbols() -> None:
    row = SizeVar("row")
    a = Buffer("a", (imm(2), imm(2)), FLOAT32, (row, imm(1)))
    out = Buffer("out", (), INT64)
    func = PrimFunc((a, out), Store(out, (), row), Attrs(num_outputs=1))
    wide = np.zeros((2, 5), np.float32)[:, :2]
    assert run_prim_func(func, [wide])[0] == 5


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_form_of_the_loops_does_not_change_the_result(
    meaning: int, form: int, other: int
) -> None:
    sizes = {SizeVar("n"): 3, SizeVar("m"): 4}
    results = []
    for seed in (form, other):
        func = prim_func(Random(meaning), Random(seed))
        inputs = arrays_for(func, np.random.default_rng(0), sizes)
        results.append(run_prim_func(func, inputs, sizes)[0])
    np.testing.assert_array_equal(results[0], results[1])
