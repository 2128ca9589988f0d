"""LiftTransformParams: two functions that do together what one did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, floats, stays
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import BindParams, LiftTransformParams

PROGRAM = """
n = dim("n")
@script.function
def main(
    x: f32[Tensor, n, 4], w: f32[Tensor, 8, 4], s: f32[Tensor, 8], b: f32[Tensor, 8]
) -> f32[Tensor, n, 8]:
    wt = R.permute_dims(w)
    ones = R.full((8,), R.const(1.0, "float32"))
    scaled = R.multiply(wt, R.add(s, ones))
    y = R.matmul(x, scaled)
    z = R.add(y, b)
    return z
"""
PROGRAMS: Mapping[str, tuple[str, int, Sequence[tuple[int, ...]]]] = {
    "a chain, and a constant of it": (PROGRAM, 1, [(3, 4), (8, 4), (8,), (8,)]),
    "a result that is a parameter's": (
        """
@script.function
def main(x: f32[Tensor, 4], w: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    v = R.exp(w)
    y = R.add(x, v)
    return y, v
""",
        1,
        [(4,), (4,)],
    ),
    "a tuple that the rest takes apart": (
        """
@script.function
def main(x: f32[Tensor, 2], w: f32[Tensor, 4]) -> f32[Tensor, 2]:
    e = R.exp(w)
    parts = R.split(e, 2)
    y = R.add(x, parts[1])
    return y
""",
        1,
        [(2,), (4,)],
    ),
    "a parameter that nothing reads": (
        """
@script.function
def main(x: f32[Tensor, 4], w: f32[Tensor, 4], v: f32[Tensor, 2]) -> f32[Tensor, 4]:
    e = R.exp(w)
    y = R.add(x, e)
    return y
""",
        1,
        [(4,), (4,), (2,)],
    ),
    "a branch": (
        """
@script.function
def main(x: f32[Tensor, 4], w: f32[Tensor, 4]) -> f32[Tensor, 4]:
    if R.greater(R.sum(w), 0.0):
        v = R.exp(w)
    else:
        v = R.negative(w)
    y = R.add(x, v)
    return y
""",
        1,
        [(4,), (4,)],
    ),
    "parameters alone": (
        """
@script.function
def main(w: f32[Tensor, 4], v: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.add(w, v)
""",
        0,
        [(4,), (4,)],
    ),
}


def run(module: IRModule, name: str, args: Sequence[Array]) -> list[Array]:
    found = interpret(module, name, args)
    parts = found if isinstance(found, tuple) else (found,)
    return [np.asarray(p) for p in parts]


@pytest.mark.parametrize("what", PROGRAMS)
def test_both_functions_give_what_one_gave(what: str) -> None:
    program, count, shapes = PROGRAMS[what]
    args = floats(5, *shapes)
    module = apply(LiftTransformParams(inputs=count), program)
    assert "main_transform_params" in module
    params = run(module, "main_transform_params", args[count:])
    got = run(module, "main", [*args[:count], *params])
    for mine, wanted in zip(got, run(parse(program), "main", args), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_the_rest_computes_nothing_of_parameters_alone() -> None:
    module = apply(LiftTransformParams(inputs=1), PROGRAM)
    main = module.graph_functions()["main"]
    assert [p.name for p in main.params] == ["x", "b", "scaled"]
    assert "permute_dims" not in str(main)
    made = module.graph_functions()["main_transform_params"]
    assert [p.name for p in made.params] == ["w", "s", "b"]
    assert "matmul" not in str(made)


def test_both_are_compiled() -> None:
    x, *given = floats(6, (3, 4), (8, 4), (8,), (8,))
    module = LiftTransformParams(inputs=1)(parse(PROGRAM), Context())
    exe = unity.compile(module)
    params = exe["main_transform_params"](*given)
    wanted = np.asarray(interpret(parse(PROGRAM), "main", [x, *given]), np.float32)
    np.testing.assert_allclose(exe(x, *params), wanted, rtol=1e-4, atol=1e-5)


def test_the_attribute_of_relax_says_what_inputs_are() -> None:
    program = PROGRAM.replace("@script.function", '@script.function(attrs={"num_input": 1})')
    module = apply(LiftTransformParams(), program)
    assert "main_transform_params" in module


def test_what_depends_on_inputs_or_sizes_stays() -> None:
    stays(
        LiftTransformParams(inputs=1),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    wide = R.broadcast_to(w, (n, 4))
    y = R.add(R.add(x, w), wide)
    return y
""",
    )


def test_what_has_an_effect_stays() -> None:
    stays(
        LiftTransformParams(inputs=1),
        """
@script.function(pure=False)
def main(x: f32[Tensor, 4], w: f32[Tensor, 4]) -> f32[Tensor, 4]:
    R.print("w {}", w)
    y = R.add(x, w)
    return y
""",
    )


def test_the_record_of_parameters_is_kept_where_it_holds() -> None:
    attrs = '(attrs={"parameters": (("w", "layer.w"), ("s", "layer.s"), ("b", "layer.b"))})'
    program = PROGRAM.replace("@script.function", f"@script.function{attrs}")
    lifted = apply(LiftTransformParams(inputs=1), program).graph_functions()["main"]
    assert lifted.attrs["parameters"] == (("b", "layer.b"),)
    step = BindParams("main", {"layer.s": np.ones(8, np.float32)})
    bound = apply(step, program).graph_functions()["main"]
    assert bound.attrs["parameters"] == (("w", "layer.w"), ("b", "layer.b"))
    assert [p.name for p in bound.params] == ["x", "w", "b"]


def test_what_is_missing_is_told() -> None:
    with pytest.raises(UnityError, match="nothing says which inputs of main are parameters"):
        LiftTransformParams()(parse(PROGRAM), Context())
    with pytest.raises(UnityError, match="main takes 4 inputs, not 7 and more"):
        LiftTransformParams(inputs=7)(parse(PROGRAM), Context())
    once = LiftTransformParams(inputs=1)(parse(PROGRAM), Context())
    again = once.with_({"main": parse(PROGRAM)["main"]})
    with pytest.raises(UnityError, match="the module has a 'main_transform_params' already"):
        LiftTransformParams(inputs=1)(again, Context())
