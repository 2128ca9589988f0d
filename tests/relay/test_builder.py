"""Scripts that build Relay's programs by the names they know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unity import relay
from unity.errors import UnityError
from unity.frontend.relay.operators.refused import REFUSED
from unity.frontend.relay.schema import signature
from unity.frontend.relay.translator import translate
from unity.interpreter import interpret
from unity.relay import tvm
from unity.relay.operators import DEFAULTS, ORDERS, RENAMED, Operator

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8), np.float32)


def _image() -> Any:
    return relay.var("x", shape=(2, 3, 8, 8))


def _weight(size: int = 3) -> Any:
    return relay.var("w", relay.TensorType((4, 3, size, size)))


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: relay.nn.conv2d(_image(), _weight(), strides=2, kernel_size=3, padding=(1, 1)),
     "nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1], kernel_size=[3, 3])"),
    (lambda: relay.nn.max_pool2d(_image(), (2, 2), (2, 2)),
     "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"),
    (lambda: relay.nn.batch_matmul(*(relay.var(n, shape=(1, 2, 3)) for n in "ab")),
     "nn.batch_matmul(%a, %b, transpose_b=True)"),
    (lambda: relay.nn.pad(_image(), ((0, 0), (0, 0), (1, 1), (1, 1)), 1.5),
     "nn.pad(%x, 1.5f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"),
    (lambda: relay.take(_image(), relay.const([0, 1], "int64"), 1, mode="wrap"),
     'take(%x, meta[relay.Constant][0], axis=1, mode="wrap")'),
    (lambda: relay.strided_slice(_image(), [0, 1], [2, 3]),
     "strided_slice(%x, begin=[0, 1], end=[2, 3], strides=[1])"),
    (lambda: relay.reshape(_image(), (-1, 8)), "reshape(%x, newshape=[-1, 8])"),
    (lambda: relay.reshape(_image(), relay.const([2, 192])), "reshape(%x, newshape=[2, 192])"),
    (lambda: relay.reshape(_image(), relay.var("s", shape=(2,), dtype="int64")),
     "dyn.reshape(%x, %s)"),
    (lambda: relay.mean(_image(), axis=1, keepdims=True), "mean(%x, axis=[1], keepdims=True)"),
    (lambda: relay.cast(_image(), np.float16), 'cast(%x, dtype="float16")'),
    (lambda: relay.zeros((2, 3), "int8"), 'zeros(shape=[2, 3], dtype="int8")'),
    (lambda: relay.image.resize2d(_image(), (4, 4), method="nearest_neighbor"),
     'image.resize2d(%x, size=[4, 4], roi=[0.0f, 0.0f, 0.0f, 0.0f], method="nearest_neighbor")'),
    (lambda: relay.gather(_image(), 1, relay.var("i", shape=(2, 1, 8, 8), dtype="int64")),
     "gather(%x, %i, axis=1)"),
    (lambda: relay.qnn.op.quantize(_image(), relay.const(0.5), relay.const(3)),
     'qnn.quantize(%x, 0.5f, 3, out_dtype="int8")'),
    (lambda: relay.arange(relay.const(5.0)), 'arange(0.0f, 5.0f, 1.0f, dtype="float32")'),
    (lambda: relay.vision.get_valid_counts(relay.var("d", shape=(1, 4, 6)), 0.5)[0],
     "vision.get_valid_counts(%d, 0.5f)"),
    (lambda: relay.vision.non_max_suppression(
        relay.var("d", shape=(1, 4, 6)), *(relay.var(n, shape=(1,)) for n in "ci"),
        force_suppress=True, return_indices=False),
     "vision.non_max_suppression(%d, %c, %i, -1, 0.5f, force_suppress=True, return_indices=False)"),
    (lambda: relay.op.nn.relu(_image()), "nn.relu(%x)"),
    (lambda: (-_image()).astype("int32"), 'cast(%0, dtype="int32")'),
]  # fmt: skip


@pytest.mark.parametrize(("build", "text"), CALLS, ids=[t.partition("(")[0] for _, t in CALLS])
def test_calls_are_as_python_made_them(build: Callable[[], Any], text: str) -> None:
    calls = [line.partition(" = ")[2] for line in build().astext().splitlines()[:-1]]
    assert calls[-1] == f"{text};"


def test_every_operator_of_the_schema_is_a_function() -> None:
    for name in relay.__dir__():
        assert getattr(relay, name) is not None, name
    for name in (*ORDERS, *RENAMED, *DEFAULTS):
        row = signature(name)
        assert row is not None
        known = {*(row.arguments or ()), *(row.fields or {})}
        renamed = RENAMED.get(name, {})
        assert {renamed.get(n, n) for n in Operator(name).order} <= known, name
        assert {*renamed.values(), *DEFAULTS.get(name, {})} <= known, name
    with pytest.raises(AttributeError, match=r"no operator 'nn.conv7d'"):
        relay.nn.conv7d  # noqa: B018


def test_a_network_computes() -> None:
    x, w = _image(), _weight(1)
    gamma, beta, mean, var = (relay.var(n, shape=(4,)) for n in ("g", "b", "m", "v"))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=4))
    y = relay.nn.batch_norm(y, gamma, beta, mean, var)[0]
    left, right = relay.split(relay.nn.global_avg_pool2d(y), 2, axis=1)
    out = relay.Tuple(
        [relay.nn.dropout(left + right), relay.nn.batch_flatten(y) * relay.const(2.0)]
    )
    function = relay.Function(relay.analysis.free_vars(out), out)
    assert [p.name_hint for p in function.params if isinstance(p, relay.Var)] == list("xwgbmv")
    mod = tvm.IRModule.from_expr(function)
    weight = np.ones((4, 3, 1, 1), np.float32)
    one, zero = np.ones(4, np.float32), np.zeros(4, np.float32)
    mod["main"] = relay.Function([x, relay.var("w2", shape=(4, 3, 1, 1))], function(
        x, relay.const(weight), *map(relay.const, (one, zero, zero, one))))  # fmt: skip
    found = interpret(translate(mod.syntax), "main", [X, weight])
    assert isinstance(found, tuple)
    expected = np.maximum(X.sum(1, keepdims=True), 0).repeat(4, 1) / np.sqrt(np.float32(1 + 1e-5))
    np.testing.assert_allclose(
        np.asarray(found[0]), 2 * expected.mean((2, 3), keepdims=True)[:, :2], rtol=1e-4
    )
    np.testing.assert_allclose(np.asarray(found[1]), 2 * expected.reshape(2, -1), rtol=1e-4)
    text = relay.parse(mod.astext())
    again = interpret(translate(text.syntax), "main", [X, weight])
    assert isinstance(again, tuple)
    np.testing.assert_array_equal(np.asarray(again[0]), np.asarray(found[0]))


def test_scopes_branches_and_recursion() -> None:
    sb = relay.ScopeBuilder()
    i, acc = relay.var("i", "int32"), relay.var("acc", "float32")
    loop = relay.GlobalVar("loop")
    with sb.if_scope(relay.equal(i, relay.const(0))):
        sb.ret(acc)
    with sb.else_scope():
        half = sb.let("half", acc * relay.const(0.5))
        sb.ret(loop(i - relay.const(1), half + relay.const(1.0)))
    mod = relay.IRModule({loop: relay.Function([i, acc], sb.get(), relay.scalar_type("float32"))})
    n = relay.var("n", "int32")
    mod["main"] = relay.Function([n], loop(n, relay.const(8.0)))
    found = interpret(translate(mod.syntax), "main", [np.int32(2)])
    assert float(np.asarray(found)) == 3.5


def test_types_of_expressions() -> None:
    x = relay.var("x", shape=(relay.Any(), 3))
    assert (
        str(relay.nn.dense(x, relay.var("w", shape=(5, 3))).checked_type)
        == "Tensor[(?, 5), float32]"
    )
    assert relay.TensorType((1, relay.Any()), "int8").shape == (1, None)
    assert str(relay.var("s", "int64").type_annotation.dtype) == "int64"


def test_programs_are_taken_apart() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.nn.leaky_relu(relay.exp(x), alpha=0.5)
    seen: list[str] = []
    relay.analysis.post_order_visit(
        y, lambda e: seen.append(e.op.name) if isinstance(e, relay.Call) else None
    )
    assert seen == ["exp", "nn.leaky_relu"]
    assert y.attrs["alpha"] == 0.5
    assert y.args[0].args[0] == x
    assert relay.analysis.all_vars(relay.Let(x, y, x)) == [x]
    assert relay.Call(y.op, [x], {"alpha": 0.25}).attrs["alpha"] == 0.25


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: x + 1, "convert 1 with relay.const first"),
        (lambda x: relay.nn.conv2d(x), "nn.conv2d lacks weight"),
        (lambda x: relay.nn.relu(x, 1, 2), "nn.relu takes 1 arguments, got 3"),
        (lambda x: relay.nn.leaky_relu(x, beta=1.0), "has no attribute 'beta'"),
        (lambda x: relay.clip(x, "a", 1.0), "the attribute 'a_min' of clip is 'a'"),
        (lambda x: relay.squeeze(x, x), "squeeze: axis must be known, and is computed"),
        (lambda x: relay.memory.kill(x), f"memory.kill is refused: {REFUSED['memory.kill']}"),
        (lambda x: relay.nn.relu("x"), "an expression is needed, got str"),
        (lambda x: relay.var("y", "float32", shape=(1,)), "takes a type or a shape"),
        (lambda x: relay.TensorType((1.5,)), "1.5 is no size"),
        (lambda x: relay.const(1, "float99"), "'float99' is no dtype"),
    ],
)
def test_mistakes_are_told(build: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(UnityError, match=message):
        build(relay.var("x", shape=(2, 3)))


def test_a_mistake_names_the_line_of_the_script() -> None:
    with pytest.raises(UnityError, match=r"test_builder\.py:\d+"):
        relay.nn.relu(relay.var("x", shape=(2,)), 1, 2)


def test_modules_of_tvm_are_found_or_refused_by_name() -> None:
    assert relay.expr_functor.ExprMutator is relay.ExprMutator
    assert relay.ty.TensorType is relay.TensorType
    assert relay.expr.Call is relay.Call
    assert relay.build_module.create_executor is relay.create_executor
    with pytest.raises(UnityError, match=r"relay\.quantize is not there"):
        relay.quantize.quantize(None)
    with pytest.raises(UnityError, match=r"unity\.rewrite_rule"):
        relay.dataflow_pattern.is_op("add")


def test_what_custom_passes_ask_of_expressions() -> None:
    x, w = relay.var("x", shape=(relay.Any(), 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3), out_dtype="float32")
    assert y.op == relay.op.get("nn.conv2d") == tvm.ir.Op.get("nn.conv2d") != relay.op.get("add")
    assert (y.attrs.padding, y.attrs["groups"], y.attrs.get_int("channels")) == ((1, 1), 1, 4)
    assert (y.attrs.out_dtype, y.attrs.get_str("data_layout")) == ("float32", "NCHW")
    with pytest.raises(AttributeError, match="it has strides, padding"):
        _ = y.attrs.stride
    kind = y.checked_type
    assert isinstance(kind, relay.TensorType)
    assert not isinstance(kind, relay.TupleType)
    assert (kind.shape, kind.dtype) == ((None, 4, 8, 8), "float32")
    with pytest.raises(UnityError, match="unknown dims"):
        _ = kind.concrete_shape
    assert relay.var("z", kind).type_annotation == relay.TensorType((None, 4, 8, 8))
    pair = relay.Tuple([x, w])
    assert [f.shape[-1] for f in pair.checked_type.fields] == [8, 3]
    assert isinstance(pair.checked_type, relay.TupleType)
    first = relay.TupleGetItem(pair, 0)
    assert (first.tuple_value, first.index) == (pair, 0)
    condition = relay.var("c", shape=(), dtype="bool")
    choice = relay.If(condition, x, w)
    assert (choice.cond, choice.true_branch, choice.false_branch) == (condition, x, w)
    name = relay.var("v")
    let = relay.Let(name, y, name)
    assert (let.var, let.value, let.body) == (name, y, name)
    np.testing.assert_array_equal(relay.const([1, 2]).data.numpy(), [1, 2])
    function = relay.Function([x, w], y)
    assert str(function.checked_type).endswith("-> Tensor[(?, 4, 8, 8), float32]")


def test_programs_are_compared_whatever_names_they_have() -> None:
    def made(name: str, operator: str) -> relay.Function:
        x = relay.var(name, shape=(2, 3))
        return relay.Function([x], getattr(relay, operator)(x) + x)

    assert tvm.ir.structural_equal(made("a", "exp"), made("b", "exp"))
    assert not tvm.ir.structural_equal(made("a", "exp"), made("b", "tanh"))
    modules = [tvm.IRModule.from_expr(made("a", f)) for f in ("exp", "tanh")]
    with pytest.raises(UnityError, match="the programs differ"):
        tvm.ir.assert_structural_equal(*modules)
    with pytest.raises(UnityError, match="astext"):
        tvm.ir.save_json(modules[0])
