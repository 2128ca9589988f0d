"""Rows picked of a transposed tensor: transposed first where more are picked than it has."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, IfThen, PrimFunc, Stmt
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import FuseOps, FuseTir, LegalizeOps
from unity.transform.rules.default import default_rules, default_schedule


def picking(pixels: str, points: str) -> IRModule:
    """What a map of 24 channels holds at some of its pixels."""
    return parse(f"""
n = dim("n")
p = dim("p")
@script.function
def main(x: f32[Tensor, 24, {pixels}], at: i64[Tensor, {points}]) -> f32[Tensor, {points}, 24]:
    with R.dataflow():
        rows = R.permute_dims(x, axes=(1, 0))
        picked = R.take(rows, at, axis=0)
        y = R.multiply(picked, 2.0)
    return y
""")


def fused(module: IRModule) -> PrimFunc:
    for step in (LegalizeOps(), FuseOps(), FuseTir()):
        module = step(module, Context())
    verify(module)
    (kernel,) = (f for name, f in module.prim_funcs().items() if name.startswith("fused"))
    return kernel


def kept(s: Stmt) -> int:
    return sum(isinstance(x, Allocate) for x in walk_stmt(s))


@pytest.mark.parametrize(("points", "count"), [(3, 0), (39, 0), (50, 1), (400, 1)])
def test_sizes_tell_whether_it_is_worth_it(points: int, count: int) -> None:
    assert kept(fused(picking("40", str(points))).body) == count


@pytest.mark.parametrize(("pixels", "points"), [("n", "p"), ("40", "p"), ("n", "300")])
def test_of_unknown_sizes_there_are_two_versions(pixels: str, points: str) -> None:
    body = fused(picking(pixels, points)).body
    assert isinstance(body, Allocate)
    assert isinstance(body.body, IfThen)
    assert kept(body) == 1


def test_each_version_is_laid_out() -> None:
    kernel, target = fused(picking("n", "p")), Context().target
    rules = [(rule.rule, rule.blocks) for rule in default_rules(kernel, target)]
    assert [name for name, _ in rules] == ["transpose", "elementwise", "elementwise"]
    assert len({block for _, blocks in rules for block in blocks}) == 3
    steps = [step.name for step in default_schedule(kernel, target).trace]
    assert steps.count("vectorize") >= 2


@pytest.mark.parametrize(("pixels", "points"), [(40, 400), (400, 40), (40, 0), (7, 9)])
def test_both_versions_give_the_same(pixels: int, points: int) -> None:
    module, rng = picking("n", "p"), np.random.default_rng(0)
    x = rng.standard_normal((24, pixels)).astype(np.float32)
    at = rng.integers(-pixels, max(pixels, 1), points)
    expected = np.asarray(interpret(module, "main", [x, at]))
    np.testing.assert_array_equal(np.asarray(unity.compile(module, check=True)(x, at)), expected)


def test_of_nothing_zeros_are_picked() -> None:
    run = unity.compile(picking("n", "p"), check=True)
    found = run(np.empty((24, 0), np.float32), np.array([0, -1, 3]))
    np.testing.assert_array_equal(np.asarray(found), np.zeros((3, 24), np.float32))


def test_what_is_picked_along_columns_is_read_where_it_lies() -> None:
    """Elements of a row lie apart then, transposed or not."""
    module = parse("""
@script.function
def main(x: f32[Tensor, 24, 40], at: i64[Tensor, 400]) -> f32[Tensor, 40, 400]:
    with R.dataflow():
        rows = R.permute_dims(x, axes=(1, 0))
        picked = R.take(rows, at, axis=1)
    return picked
""")
    assert kept(fused(module).body) == 0
