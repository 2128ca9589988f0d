"""InlineFunctions: what is called becomes part of the caller, unless calling checks anything."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for, module
from tests.interpreter.test_pipeline import arrays
from unity.codegen.library import register_libraries
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.graph import CallLibrary
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import InlineFunctions, Normalize
from unity.transform.graph.origins import origins_of
from unity.transform.graph.resolve import Resolve, policy_of

LAYERS = parse("""
n = dim("n")
m = dim("m")
@script.function
def act(a: f32[Tensor, m, 4]) -> f32[Tensor, m, 4]:
    t = R.tanh(a)
    return t
@script.function
def layer(a: f32[Tensor, n, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, n, 4]:
    p = R.matmul(a, w)
    return act(p)
@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, 2 * n, 4]:
    both = R.concat((x, x), axis=0)
    first = layer(both, w)
    second = layer(first, w)
    return second
""")


def inlined(text: IRModule | str, most: int = 32) -> IRModule:
    before = Normalize()(parse(text) if isinstance(text, str) else text, Context())
    after = InlineFunctions(most)(before, Context())
    verify(after)
    check_types(after)
    assert InlineFunctions(most)(after, Context()) is after
    return after


def calls(after: IRModule, name: str = "main") -> int:
    made = (getattr(b.value, "callee", None) for b in walk_bindings(after.graph_functions()[name]))
    return sum(type(callee).__name__ in ("FunctionRef", "Var") for callee in made)


def test_callees_become_one_function_over_the_callers_sizes() -> None:
    expected = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, 2 * n, 4]:
    with R.dataflow():
        both = R.concat((x, x), axis=0)
        p1 = R.matmul(both, w)
        t1 = R.tanh(p1)
        p2 = R.matmul(t1, w)
        t2 = R.tanh(p2)
    return t2
""")
    after = inlined(LAYERS)
    assert list(after) == ["act", "layer", "main"]  # users may call them
    main = after.graph_functions()["main"]
    names = [b.var.name for b in walk_bindings(main)][1:]
    assert names == ["layer_p", "layer_act_t", "layer_p_1", "layer_act_t_1"]
    assert origins_of(main)["layer_act_t"] == ("act/t", "layer/act_t")
    same = expected.graph_functions()["main"]
    bare = IRModule({"main": type(main)(main.params, main.body, main.result)})
    assert first_difference(bare, IRModule({"main": same})) is None


@pytest.mark.parametrize(("key", "products"), [("layer/p", 2), ("p", 2), ("main/layer_p_1", 1)])
def test_overrides_of_a_callees_sites_speak_of_the_copies(key: str, products: int) -> None:
    register_libraries()
    after = Resolve(policy_of({key: "library:openblas"}))(inlined(LAYERS), Context())
    main = after.graph_functions()["main"]
    assert sum(isinstance(b.value, CallLibrary) for b in walk_bindings(main)) == products


CHECKED = """
n = dim("n")
k = dim("k")
m = dim("m", min=2)
@script.function
def most(a: f32[Tensor, m]) -> f32[Tensor, m]:
    return R.exp(a)
@script.function
def square(a: f32[Tensor, n, n]) -> f32[Tensor, n, n]:
    return R.exp(a)
@script.function
def itself(a: f32[Tensor, n], i: i64[Tensor, ()]) -> f32[Tensor, n]:
    if R.less(i, 1):
        y = R.exp(a)
    else:
        y = other(a, i)
    return y
@script.function
def other(a: f32[Tensor, n], i: i64[Tensor, ()]) -> f32[Tensor, n]:
    return itself(a, R.subtract(i, 1))
@script.function
def facts(x: f32[Tensor, n]):
    return most(x)
@script.function
def sizes(x: f32[Tensor, n, k]):
    return square(x)
@script.function
def again(x: f32[Tensor, n]):
    return itself(x, R.const(2))
"""


@pytest.mark.parametrize("name", ["facts", "sizes", "again", "itself", "other"])
def test_calls_that_check_something_and_recursion_are_left_alone(name: str) -> None:
    assert calls(inlined(CHECKED), name) == 1


def test_proven_facts_control_flow_and_sizes_born_within_are_inlined() -> None:
    text = """
n = dim("n")
m = dim("m", min=2, multiple_of=2)
@script.function
def most(a: f32[Tensor, m], i: i64[Tensor, ()]) -> f32[Tensor, m]:
    if R.less(i, 1):
        y = R.exp(a)
    else:
        y = R.add(a, R.astype(R.sum(R.nonzero(a)), dtype="float32"))
    return y
@script.function
def main(x: f32[Tensor, n], i: i64[Tensor, ()]):
    a = R.concat((x, x, R.const([1.0, 2.0], "float32")), axis=0)
    b = most(a, i)
    return most(b, i)
"""
    before, after = parse(text), inlined(text)
    assert calls(after) == 0
    assert calls(inlined(text, most=2)) == 2
    for i in (0, 1):
        args = [np.asarray([1, 0, 3], np.float32), np.asarray(i)]
        want, got = (interpret(m, "main", args) for m in (before, after))
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_with_calls_and_closures(seed: int) -> None:
    before = module(Random(seed))
    args = arguments_for(before, np.random.default_rng(0))
    after = inlined(before)
    for want, got in zip(
        arrays(interpret(before, "main", args)), arrays(interpret(after, "main", args)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_the_caller_is_native_and_its_callees_can_be_called() -> None:
    exe = unity.compile(LAYERS)
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 4), np.float32), rng.random((4, 4), np.float32)
    want = np.tanh(np.tanh(np.concatenate([x, x]) @ w) @ w)
    np.testing.assert_allclose(exe(x, w), want, rtol=1e-5)
    np.testing.assert_allclose(exe["layer"](x, w), np.tanh(x @ w), rtol=1e-5)
    assert exe.native()["main"] == "native"
    assert exe.explain()["main/layer_p_1"].choice.startswith("tir")
