"""Sharing and removing: EliminateCommonSubexpr and EliminateDeadCode."""

from __future__ import annotations

from dataclasses import replace

from tests.transform.cases import apply, becomes, stays
from unity.ir.attrs import Attrs
from unity.ir.graph import CallPython, Var, VarBinding
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import EliminateCommonSubexpr, EliminateDeadCode


def test_equal_calls_are_shared() -> None:
    becomes(
        EliminateCommonSubexpr(),
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.add(R.exp(x), 1.0)
        b = R.add(R.exp(x), 1.0)
        y = R.multiply(a, b)
    return y
""",
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.add(R.exp(x), 1.0)
        y = R.multiply(a, a)
    return y
""",
    )


def test_different_attributes_and_constants_are_not() -> None:
    stays(
        EliminateCommonSubexpr(),
        """
@script.function
def main(x: f32[Tensor, 4, 4]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.sum(x, 0)
        b = R.sum(x, 1)
        c = R.add(a, 1.0)
        d = R.add(a, 2.0)
        y = R.add(R.add(b, c), d)
    return y
""",
    )


def test_a_branch_shares_with_what_surrounds_it_not_with_the_other_branch() -> None:
    becomes(
        EliminateCommonSubexpr(),
        """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    a = R.exp(x)
    if flag:
        b = R.negative(R.exp(x))
    else:
        b = R.negative(x)
    return R.add(R.negative(x), b)
""",
        """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    a = R.exp(x)
    if flag:
        b = R.negative(a)
    else:
        b = R.negative(x)
    return R.add(R.negative(x), b)
""",
    )


def test_data_dependent_sizes_are_their_own() -> None:
    stays(
        EliminateCommonSubexpr(),
        """
i = dim("i")
j = dim("j")
@script.function
def main(x: f32[Tensor, 4]) -> R.Tuple(i64[Tensor, 1, i], i64[Tensor, 1, j]):
    with R.dataflow():
        a: i64[Tensor, 1, i] = R.nonzero(x)
        b: i64[Tensor, 1, j] = R.nonzero(x)
        y = (a, b)
    return y
""",
    )


def test_what_nobody_reads_goes() -> None:
    becomes(
        EliminateDeadCode(),
        """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.exp(x)
        b = R.negative(a)
        c = R.add(b, b)
    if flag:
        d = R.negative(a)
        e = R.exp(x)
    else:
        e = a
    return e
""",
        """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.exp(x)
    if flag:
        e = R.exp(x)
    else:
        e = a
    return e
""",
    )


def test_run_time_checks_stay() -> None:
    stays(
        EliminateDeadCode(),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.match_cast(x, f32[Tensor, 4])
    return x
""",
    )


def test_effects_stay() -> None:
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.exp(x)
    return x
"""
    )
    main = module.graph_functions()["main"]
    old = main.body.blocks[0].bindings[0].var
    call = CallPython(print, (main.params[0],), (old.type,))
    seen = EliminateDeadCode()(module, Context())
    assert not seen.graph_functions()["main"].body.blocks
    noisy = with_first(module, old, call)
    assert EliminateDeadCode()(noisy, Context()) is noisy


def with_first(module: IRModule, var: Var, value: CallPython) -> IRModule:
    main = module.graph_functions()["main"]
    block = replace(main.body.blocks[0], bindings=(VarBinding(var, value),))
    return module.with_({"main": replace(main, body=replace(main.body, blocks=(block,)))})


def test_private_functions_go_when_nobody_calls_them() -> None:
    text = """
@script.function
def helper(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.exp(x)

@script.function(attrs={"private": True})
def used(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.exp(x)

@script.function(attrs={"private": True})
def unused(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return used(x)

@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return used(x)
"""
    got = apply(EliminateDeadCode(), text)
    assert set(got) == {"helper", "used", "main"}
    assert got.graph_functions()["used"].attrs == Attrs(private=True)
