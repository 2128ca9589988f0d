"""RemoveUnusedParameters, RemoveUnusedOutputs, EliminateDeadCode: what nobody reads goes."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, floats, keeps_meaning, stays
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import (
    EliminateDeadCode,
    InlineFunctions,
    RemoveUnused,
    RemoveUnusedOutputs,
    RemoveUnusedParameters,
)

PROGRAM = """
n = dim("n")
m = dim("m")
@script.function(attrs={"private": True})
def inner(a: f32[Tensor, n, 4], b: f32[Tensor, n, 4]) -> tuple[f32[Tensor, n, 4], f32[Tensor, n, 4], f32[Tensor, 4]]:
    c = R.exp(a)
    d = R.negative(a)
    e = R.sum(a, axis=0)
    return c, d, e
@script.function(attrs={"private": True})
def middle(a: f32[Tensor, n, 4], b: f32[Tensor, n, 4], unread: f32[Tensor, 4]) -> tuple[f32[Tensor, n, 4], f32[Tensor, 4]]:
    t = inner(a, b)
    u = R.sqrt(t[0])
    return u, t[2]
@script.function
def main(x: f32[Tensor, m, 4], y: f32[Tensor, 4]) -> f32[Tensor, m, 4]:
    z = R.add(x, 1.0)
    p = middle(x, z, y)
    q = R.add(p[0], y)
    return q
"""  # noqa: E501


def test_parameters_that_only_calls_without_them_read_go_too() -> None:
    module = keeps_meaning(RemoveUnusedParameters(), PROGRAM, floats(1, (3, 4), (4,)))
    params = {k: [p.name for p in f.params] for k, f in module.graph_functions().items()}
    assert params == {"inner": ["a"], "middle": ["a"], "main": ["x", "y"]}


def test_results_that_only_removed_results_read_go_too() -> None:
    steps = (RemoveUnusedOutputs(), EliminateDeadCode(), RemoveUnusedOutputs(), EliminateDeadCode())
    module = keeps_meaning(steps, PROGRAM, floats(2, (3, 4), (4,)))
    results = {k: str(f.result) for k, f in module.graph_functions().items()}
    assert results == dict.fromkeys(("inner", "middle"), "float32(n, 4)") | {
        "main": "float32(m, 4)"
    }
    assert "sum" not in str(module)


def test_all_of_them_in_a_pipeline() -> None:
    x, y = floats(3, (3, 4), (4,))
    steps = (RemoveUnusedOutputs(), RemoveUnusedParameters(), EliminateDeadCode())
    pipeline = unity.pipeline().insert_before(InlineFunctions, *steps)
    exe = unity.compile(parse(PROGRAM), pipeline=pipeline)
    wanted = np.asarray(interpret(parse(PROGRAM), "main", [x, y]))
    np.testing.assert_allclose(exe(x, y), wanted, rtol=1e-5)


PUBLIC = PROGRAM.replace('(attrs={"private": True})', "")
CHECKED = """
n = dim("n")
@script.function(attrs={"private": True})
def inner(a: f32[Tensor, n, 4], b: f32[Tensor, n, 4]) -> tuple[f32[Tensor, n, 4], f32[Tensor, n, 4]]:
    c = R.exp(a)
    return c, a
k = dim("k")
m = dim("m")
@script.function
def main(x: f32[Tensor, m, 4], y: f32[Tensor, k, 4]) -> f32[Tensor, m, 4]:
    z = inner(x, y)
    return z[0]
"""  # noqa: E501
SIZE = """
n = dim("n")
@script.function(attrs={"private": True})
def inner(a: f32[Tensor, 4], b: f32[Tensor, n]) -> f32[Tensor, 4]:
    return R.multiply(a, R.astype(R.prim(n), "float32"))
m = dim("m")
@script.function
def main(x: f32[Tensor, 4], y: f32[Tensor, m]) -> f32[Tensor, 4]:
    z = inner(x, y)
    return z
"""
WHOLE = """
@script.function(attrs={"private": True})
def inner(a: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    b = R.exp(a)
    return a, b
@script.function
def main(x: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    y = inner(x)
    return y
"""


@pytest.mark.parametrize("program", [PUBLIC, CHECKED], ids=["public", "checked at run time"])
def test_what_is_needed_stays(program: str) -> None:
    stays(RemoveUnusedParameters(), program)
    stays(RemoveUnusedOutputs(), program)


def test_a_parameter_that_tells_a_size_stays() -> None:
    stays(RemoveUnusedParameters(), SIZE)


def test_a_result_that_is_read_whole_stays() -> None:
    stays(RemoveUnusedOutputs(), WHOLE)


RECURSIVE = """
@script.function(attrs={"private": True})
def down(a: f32[Tensor, 4], unread: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    if R.greater(R.sum(a), 10.0):
        b = a
    else:
        c = down(R.add(a, 1.0), a)
        b = c[0]
    d = R.exp(a)
    return b, d
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = down(x, x)
    return y[0]
"""


def test_functions_that_call_themselves() -> None:
    x = floats(4, (4,))
    module = keeps_meaning((RemoveUnusedParameters(), RemoveUnusedOutputs()), RECURSIVE, x)
    down = module.graph_functions()["down"]
    assert [p.name for p in down.params] == ["a"]
    assert str(down.result) == "float32(4,)"


def test_entries_say_which_functions_are_called_from_outside() -> None:
    program = PUBLIC + "\n@script.function\ndef other(x: f32[Tensor, 4]) -> f32[Tensor, 4]:\n"
    program += "    return R.exp(x)\n"
    assert "other" in apply(EliminateDeadCode(), program)
    module = apply(EliminateDeadCode(entries=("main",)), program)
    assert set(module) == {"inner", "middle", "main"}
    assert set(apply(EliminateDeadCode(entries=("other",)), program)) == {"other"}
    with pytest.raises(UnityError, match="the module has no 'missing'"):
        EliminateDeadCode(entries=("missing",))(parse(program), Context())


def test_what_becomes_unused_by_another_goes_too() -> None:
    """A value for a parameter that only an unused result was made of, and the function's result."""
    before = parse("""
@script.function(attrs={"private": True})
def both(a: f32[Tensor, 4], b: f32[Tensor, 4]) -> tuple[f32[Tensor, 4], f32[Tensor, 4]]:
    return R.exp(a), R.negative(b)

@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    unused = R.sin(x)
    p, q = both(x, unused)
    return p
""")
    after = RemoveUnused()(before, Context())
    functions = after.graph_functions()
    assert len(functions["both"].params) == 1
    assert "R.sin" not in print_module(after)
    assert "R.negative" not in print_module(after)
    x = np.linspace(0, 1, 4, dtype=np.float32)
    wanted = np.asarray(interpret(before, "main", [x]))
    np.testing.assert_array_equal(np.asarray(interpret(after, "main", [x])), wanted)
    assert RemoveUnused()(after, Context()) is after
