"""Inlining: a chain whose links read the one before several times stays as long as the chain."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.ir.prim_expr import Cast
from unity.ir.stmt import Block
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform import Context
from unity.transform.schedule import ScheduleDefault

LINKS = {
    "truncating": ("i64", "R.mod(x, {})"),
    "flooring": ("i64", "R.floor_mod(x, {})"),
    "quotients": ("i64", "R.floor_divide(x, {})"),
    "chosen": ("f32", "R.where(R.less({0}, x), R.add({0}, x), R.multiply({0}, 0.5))"),
    "only under guards": ("f32", "R.where(R.less(x, 0.0), R.add({0}, x), R.multiply({0}, 0.5))"),
    "largest": ("f32", "R.maximum(R.minimum({0}, x), R.subtract({0}, x))"),
    "powers": ("f32", "R.power(R.abs({0}), R.sigmoid({0}))"),
}


def chain(link: str, length: int) -> IRModule:
    kind, step = LINKS[link]
    lines = [f"        v{i + 1} = {step.format(f'v{i}')}" for i in range(length)]
    body = "\n".join(lines)
    return parse(f"""
n = dim("n")
@script.function
def main(x: {kind}[Tensor, n, 16], v0: {kind}[Tensor, n, 16]) -> {kind}[Tensor, n, 16]:
    with R.dataflow():
{body}
    return v{length}
""")


def nodes(link: str, length: int) -> int:
    before = unity.pipeline().until(ScheduleDefault)
    kernels = before.run(chain(link, length), Context()).prim_funcs().values()
    exprs = (e for f in kernels for s in walk_stmt(f.body) for e in stmt_exprs(s))
    return sum(1 for e in exprs for _ in walk_prim(e))


@pytest.mark.parametrize("link", LINKS)
def test_text_grows_with_the_chain_not_by_doubling(link: str) -> None:
    assert nodes(link, 12) < 4 * nodes(link, 6) + 1500


def test_nested_moduli_compute_what_they_say() -> None:
    module = chain("truncating", 3)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-60, 60, (3, 16)) for _ in "xy")
    expected = interpret(module, "main", [x, y])
    np.testing.assert_array_equal(np.asarray(unity.compile(module)(x, y)), np.asarray(expected))


def test_indices_made_of_reals_are_made_once_for_all_rows() -> None:
    """As positions of a resized image: a kernel of its own, or a stage, makes them."""
    module = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, 300, n], p: f32[Tensor, 40]) -> f32[Tensor, 300, 40]:
    return R.take(x, R.astype(R.multiply(p, 0.5), "int64"), axis=1)
""")
    kernels = unity.pipeline().until(ScheduleDefault).run(module, Context()).prim_funcs().values()
    casts = [
        [load for e in stmt_exprs(s) for load in walk_prim(e) if isinstance(load, Cast)]
        for f in kernels
        for s in walk_stmt(f.body)
        if isinstance(s, Block) and len(s.axes) == 2
    ]
    assert casts
    assert not any(casts)
    x, p = np.arange(900, dtype=np.float32).reshape(300, 3), np.linspace(0, 5, 40, dtype=np.float32)
    np.testing.assert_array_equal(unity.compile(module)(x, p), x[:, (p * 0.5).astype(np.int64)])
