"""BindParams: inputs become constants, and the program gives what it gave for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, becomes, floats
from unity import nn
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import BindParams, FoldConstants

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, 2, n], w: f32[Tensor, n, 3], b: f32[Tensor, 3]) -> f32[Tensor, 2, 3]:
    y = R.add(R.matmul(x, w), b)
    return y
"""


def test_numbers_are_those_of_the_inputs() -> None:
    x, w, b = floats(1, (2, 4), (4, 3), (3,))
    bound = apply(BindParams("main", {"w": w, "b": b}), PROGRAM)
    main = bound.graph_functions()["main"]
    assert [str(p.type) for p in main.params] == ["float32(2, 4)"]
    wanted = np.asarray(interpret(parse(PROGRAM), "main", [x, w, b]))
    np.testing.assert_array_equal(np.asarray(interpret(bound, "main", [x])), wanted)


def test_it_stands_in_a_pipeline_and_constants_are_folded_behind_it() -> None:
    x, w, b = floats(2, (2, 4), (4, 3), (3,))
    pipeline = unity.pipeline().insert_before(FoldConstants, BindParams("main", {"w": w, "b": b}))
    exe = unity.compile(parse(PROGRAM), pipeline=pipeline)
    wanted = np.asarray(interpret(parse(PROGRAM), "main", [x, w, b]))
    np.testing.assert_allclose(exe(x), wanted, rtol=1e-5)


def test_nothing_to_bind_changes_nothing() -> None:
    module = parse(PROGRAM)
    assert BindParams("main", {})(module, Context()) is module


def test_dots_count_as_underscores() -> None:
    becomes(
        BindParams("main", {"layer.w": np.ones(2, np.float32)}),
        """
@script.function
def main(x: f32[Tensor, 2], layer_w: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return R.add(x, layer_w)
""",
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return R.add(x, R.const([1.0, 1.0], "float32"))
""",
    )


CALLED = """
m = dim("m", multiple_of=4)
@script.function
def inner(a: f32[Tensor, m], b: f32[Tensor, m]) -> f32[Tensor, m]:
    return R.add(a, b)
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return inner(x, x)
"""
ONE = np.ones((3, 3), np.float32)
WRONG: Mapping[str, tuple[str, str, Mapping[str, Any], str]] = {
    "function": (PROGRAM, "other", {"w": ONE}, "no graph function 'other'"),
    "input": (PROGRAM, "main", {"v": ONE}, "main has no input 'v'"),
    "rank": (PROGRAM, "main", {"b": ONE}, "b: expected float32(3,), got float32 of shape (3, 3)"),
    "dtype": (PROGRAM, "main", {"b": np.ones(3)}, "b: expected float32(3,), got float64"),
    "sizes": (
        PROGRAM,
        "main",
        {"x": np.ones((2, 4), np.float32), "w": ONE},
        "n is 4 elsewhere but 3 here",
    ),
    "called": (CALLED, "inner", {"b": np.ones(4, np.float32)}, "main calls inner"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused(what: str) -> None:
    program, function, params, said = WRONG[what]
    with pytest.raises(UnityError) as caught:
        BindParams(function, params)(parse(program), Context())
    assert said in caught.value.message


def test_declared_facts_of_sizes_hold() -> None:
    program = CALLED.partition("@script.function\ndef main")[0]
    with pytest.raises(UnityError, match="b: expected"):
        BindParams("inner", {"b": np.ones(3, np.float32)})(parse(program), Context())
    apply(BindParams("inner", {"b": np.ones(8, np.float32)}), program)


def test_attributes_that_tell_of_inputs_follow() -> None:
    told = 'attrs={"input_names": ("x:0", "w:0", "b:0"), "num_input": 2, "output_names": ("y",)}'
    program = PROGRAM.replace("@script.function", f"@script.function({told})")
    x, w = floats(3, (2, 4), (4, 3))
    once = apply(BindParams("main", {"w:0": w}), program).graph_functions()["main"]
    assert dict(once.attrs) == {
        "input_names": ("x:0", "b:0"), "num_input": 1, "output_names": ("y",)
    }  # fmt: skip
    same = {"x": x, "x:0": x}
    with pytest.raises(UnityError, match="'x:0' and 'x' are the same input of main"):
        BindParams("main", same)(parse(program), Context())


def test_it_is_what_nn_bind_does() -> None:
    w, b = floats(4, (4, 3), (3,))
    step = BindParams("main", {"w": w, "b": b})
    bound = nn.bind(parse(PROGRAM), {"w": nn.Parameter((4, 3), data=w), "b": b})
    assert unity.structural_equal(bound, step(parse(PROGRAM), Context()))
    with pytest.raises(UnityError, match="main calls inner"):
        nn.bind(parse(CALLED), {"b": b}, function="inner")
