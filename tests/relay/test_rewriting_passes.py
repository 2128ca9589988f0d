"""Relay's passes that change a module: what it is then, and that it computes the same."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from unity import relay
from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.translator import translate
from unity.interpreter import interpret
from unity.relay import tvm
from unity.relay.nodes import post_order
from unity.relay.passes.rewriting import called

RNG = np.random.default_rng(0)


def _operators(mod: relay.IRModule) -> list[str]:
    """The operators that main calls, operands first."""
    found: list[str] = []
    relay.analysis.post_order_visit(
        mod["main"], lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None
    )
    return found


def _run(mod: relay.IRModule, *inputs: Any) -> Any:
    return interpret(translate(mod.syntax), "main", list(inputs))


def _inputs(mod: relay.IRModule) -> list[Any]:
    params = mod.syntax.functions["main"].params
    shapes = [getattr(p.type, "shape", ()) for p in params]
    return [np.abs(RNG.standard_normal(s)).astype(np.float32) for s in shapes]


def _check(before: relay.IRModule, name: str, *options: Any) -> relay.IRModule:
    """A module that a pass changes, which gives the numbers that it gave, and settles at once."""
    each = getattr(relay.transform, name)(*options)
    after = each(before)
    assert isinstance(after, relay.IRModule)
    assert after is not before
    inputs = _inputs(before)
    np.testing.assert_allclose(_run(after, *inputs), _run(before, *inputs), rtol=2e-5, atol=2e-5)
    read_back = relay.parse(after.astext())
    np.testing.assert_allclose(_run(read_back, *inputs), _run(after, *inputs))
    return after


def test_constants_are_folded() -> None:
    x = relay.var("x", shape=(4,))
    c = relay.const(np.arange(4, dtype=np.float32).reshape(2, 2))
    parts = relay.split(relay.reshape(relay.transpose(c), (4,)), 2)
    chosen = relay.If(relay.const(True), x + relay.concatenate([parts[1], parts[0]], 0), x)
    after = _check(relay.IRModule.from_expr(chosen), "FoldConstant")
    assert _operators(after) == ["add"]
    made = relay.IRModule.from_expr(x + relay.ones((4,), "float32"))
    assert relay.transform.FoldConstant()(made) is made  # no operands: it is smaller than its value


def test_bound_parameters_are_folded() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w)))
    weight = RNG.standard_normal((3, 4), np.float32)
    bound = relay.build_module.bind_params_by_name(func, {"w": weight, "unknown": weight})
    assert [p.name_hint for p in bound.params] == ["x"]
    after = _check(relay.IRModule.from_expr(bound), "FoldConstant")
    assert _operators(after) == ["nn.dense"]
    assert relay.build_module.bind_params_by_name(func, {}) is func
    with pytest.raises(UnityError, match="takes a function"):
        relay.build_module.bind_params_by_name(x, {})


def test_ill_typed_constants_are_told() -> None:
    wrong = relay.IRModule.from_expr(relay.const([1.0, 2.0]) + relay.const([1.0, 2.0, 3.0]))
    with pytest.raises(UnityError, match="add"):
        relay.transform.FoldConstant()(wrong)


@pytest.mark.parametrize(("axis", "center", "scale"), [(1, True, True), (-1, False, True),
                                                       (3, True, False)])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_norms_for_inference(axis: int, center: bool, scale: bool, dtype: str) -> None:
    shape = (2, 3, 4, 5)
    x = relay.var("x", shape=shape)
    vectors = [relay.var(n, shape=(shape[axis],)).astype(dtype) for n in "gbmv"]
    norm = relay.nn.batch_norm(
        relay.exp(x.astype(dtype)), *vectors, axis=axis, epsilon=1e-3, center=center, scale=scale
    )
    mod = relay.IRModule.from_expr(relay.nn.dropout(norm[0], 0.3).astype("float32"))
    before, inputs = _run(mod, *_inputs(mod)), _inputs(mod)
    before = _run(mod, *inputs)
    after = relay.transform.SimplifyInference()(mod)
    assert not {"nn.batch_norm", "nn.dropout"} & {*_operators(after)}
    close = 1e-5 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(_run(after, *inputs), before, rtol=close, atol=close)


def test_a_norm_whose_mean_is_read_stays() -> None:
    x = relay.var("x", shape=(2, 3))
    norm = relay.nn.batch_norm(x, *(relay.var(n, shape=(3,)) for n in "gbmv"))
    mod = relay.IRModule.from_expr(relay.Tuple([norm[1]]))
    assert relay.transform.SimplifyInference()(mod) is mod


def test_what_nothing_reads_is_left_out() -> None:
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  let %a = exp(%x);
  let %b = log(%a);
  let %r = ref(%x);
  ref_write(%r, negative(%x));
  let %f = fn (%y: Tensor[(2), float32]) { tanh(%y) };
  let %c = if (less(sum(%x), 0f)) { %a } else { %x };
  add(ref_read(%r), %x)
}
""")
    after = _check(mod, "DeadCodeElimination")
    assert _operators(after) == ["negative", "add"]
    assert relay.transform.DeadCodeElimination()(after) is after


def test_what_runs_for_more_than_its_value_stays() -> None:
    mod = relay.parse("""#[version = "0.0.5"]
def @forever(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @forever(%x) }
def @unused(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %x }
def @main(%x: Tensor[(2), float32]) { let %y = @forever(%x); %x }
""")
    assert relay.transform.DeadCodeElimination()(mod) is mod
    assert list(relay.transform.RemoveUnusedFunctions()(mod)) == ["forever", "main"]


def test_equal_calls_become_one() -> None:
    x = relay.var("x", shape=(2, 3))
    sums = [relay.sum(relay.exp(x), axis=a) for a in (0, 0, 1)]
    first, second = (relay.split(x, 3, axis=1)[1] for _ in range(2))
    total = relay.sum(sums[0] + sums[1]) + relay.sum(sums[2]) + relay.sum(first + second)
    after = _check(relay.IRModule.from_expr(total), "EliminateCommonSubexpr")
    names = _operators(after)
    assert (names.count("exp"), names.count("split")) == (1, 1)
    assert names.count("sum") == 2 + 3  # along 0, along 1; and of all that


def _network() -> relay.IRModule:
    x = relay.var("x", shape=(1, 4, 8, 8))
    y = relay.nn.conv2d(x, relay.var("w", shape=(4, 4, 3, 3)), padding=(1, 1), kernel_size=(3, 3))
    y = relay.nn.bias_add(y, relay.var("b", shape=(4,)))
    norm = relay.nn.batch_norm(y, *(relay.var(n, shape=(4,)) for n in "ghmv"))
    y = relay.nn.relu(norm[0]) * relay.var("s", shape=(4, 1, 1))
    y = relay.nn.pad(y, ((0, 0), (0, 0), (1, 0), (0, 1)))
    z = relay.nn.conv2d(y, relay.var("d", shape=(4, 1, 3, 3)), groups=4, kernel_size=(3, 3))
    z = relay.nn.max_pool2d(relay.concatenate([z, z], 1) + relay.const(1.0), (2, 2), (2, 2))
    return relay.IRModule.from_expr(relay.sum(z, axis=[1]))


def test_layouts_are_carried_through_a_network() -> None:
    before = _network()
    after = _check(before, "ConvertLayout", {"nn.conv2d": ["NHWC", "default"]})
    turned = [
        (n.attributes["src_layout"], n.attributes["dst_layout"])
        for n in post_order(after["main"].node)
        if isinstance(n, syntax.Call) and called(n) == "layout_transform"
    ]
    # The input, both weights, what is multiplied by; and back before the sum.
    assert sorted(turned) == sorted(
        [("NCHW", "NHWC"), ("OIHW", "HWIO"), ("NCHW", "NHWC"), ("OIHW", "HWIO"), ("NHWC", "NCHW")]
    )
    # What is in the layout already stays.
    assert relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(before) is before
    assert relay.transform.ConvertLayout({"nn.conv2d": ["default", "default"]})(before) is before
    named = relay.transform.ConvertLayout(desired_layouts={"nn.max_pool2d": ["NHWC"]})(before)
    np.testing.assert_allclose(_run(named, *_inputs(before)).shape, (1, 3, 3))
    assert 'layout="NHWC"' in named.astext()


def test_layouts_that_there_are_not() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8))
    mod = relay.IRModule.from_expr(relay.nn.conv2d(x, relay.var("w", shape=(4, 4, 1, 1))))
    for desired, words in (
        ({"nn.dense": ["NC", "default"]}, "converts no nn.dense"),
        ({"nn.conv2d": ["NCHW8c", "default"]}, "blocks of channels are chosen when compiling"),
        ({"nn.conv2d": ["NDHWC", "default"]}, "can't be in NDHWC"),
        ({"nn.conv2d": []}, "takes layouts by operator"),
        (None, "takes layouts by operator"),
    ):
        with pytest.raises(UnityError, match=words):
            relay.transform.ConvertLayout(desired)(mod)


def test_a_sequence_of_passes() -> None:
    mod = _network()
    params = {
        p.name: np.abs(RNG.standard_normal(getattr(p.type, "shape", ()), np.float32))
        for p in mod.syntax.functions["main"].params
        if p.name != "x"
    }
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    seq = relay.transform.Sequential(
        [
            relay.transform.InferType(),
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.EliminateCommonSubexpr(),
            relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
            relay.transform.FoldConstant(),
        ]
    )
    after = seq(mod)
    names = _operators(after)
    assert "nn.batch_norm" not in names
    assert names.count("layout_transform") == 2  # of the input, and back: those of weights are done
    x = RNG.standard_normal((1, 4, 8, 8), np.float32)
    np.testing.assert_allclose(_run(after, x), _run(mod, x), rtol=2e-4, atol=2e-4)


def test_long_chains() -> None:
    y = x = relay.var("x", shape=(2,))
    for _ in range(5000):
        y = relay.exp(y)
    mod = relay.IRModule.from_expr(y)
    for name in ("FoldConstant", "DeadCodeElimination", "EliminateCommonSubexpr"):
        assert getattr(relay.transform, name)()(mod) is mod
    lets = "".join(f"let %v{i} = exp(%x);" for i in range(3000))
    mod = relay.parse(
        f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{ {lets} %x }}\n'
    )
    assert _operators(relay.transform.DeadCodeElimination()(mod)) == []
    assert x.name_hint == "x"


def test_modules_of_ours_are_left_to_the_compiler(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `from_onnx` gives them."""
    monkeypatch.setattr("unity.relay.transform._TOLD", set())
    x = relay.var("x", shape=(8, 64))
    weight = relay.const(np.random.default_rng(0).standard_normal((64, 64), np.float32))
    ours = translate(relay.IRModule.from_expr(relay.nn.dense(x, weight)).syntax)
    passes = [
        relay.transform.FoldConstant(),
        relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
    ]
    with caplog.at_level(logging.WARNING, "unity"):
        assert tvm.transform.Sequential(passes)(ours) is ours
    assert "ConvertLayout leaves the module as it is" in caplog.text
    narrow = relay.build(relay.transform.ToMixedPrecision()(ours)).executable
    assert "float16" in narrow.ir() or "f16" in narrow.ir()
    assert "f16" not in relay.build(ours).executable.ir()
    with pytest.raises(UnityError, match="FoldConstant takes a module, got int"):
        relay.transform.FoldConstant()(3)
