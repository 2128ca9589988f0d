"""Sums over rows of memory: chunks of every width, rows that fill no block, unknown sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.transform.rules.kernels import lowered, unscheduled
from tests.transform.tensor.kernels import assert_same
from unity import te
from unity.codegen.llvm import host_target
from unity.ir.dims import Dim, dim
from unity.ir.stmt import For, IfThen, Store
from unity.ir.visit import prim_loads, walk_stmt
from unity.script import parse
from unity.script.printer import text
from unity.transform.rules.contraction.streamed import NARROW_BYTES
from unity.transform.rules.default import schedule
from unity.transform.schedule import default_rules, default_schedule

HOST = host_target(2)
TARGETS = {
    bits: replace(HOST, vector_bits=bits, vector_registers=16 if bits < 512 else 32)
    for bits in (128, 256, 512)
    if bits <= HOST.vector_bits
}
KNOWN = [(1, 300), (7, 4100), (8, 257), (9, 4096), (21, 130), (300, 515)]
UNKNOWN = [(0, 300), (1, 1), (5, 0), (8, 16), (17, 9000), (64, 4099)]
Values: TypeAlias = npt.NDArray[np.float64]
BODIES: dict[str, tuple[str, Callable[[Values, Values], Values]]] = {
    "product": ("R.matmul(x, w)", lambda x, w: x @ w),
    "with an epilogue": (
        "R.nn.relu(R.add(R.matmul(x, w), R.const(0.5, 'float32')))",
        lambda x, w: np.maximum(x @ w + 0.5, 0),
    ),
    "sum": ("R.sum(w, axis=(0,), keepdims=True)", lambda _, w: w.sum(0, keepdims=True)),
    "maximum": ("R.max(R.exp(w), axis=(0,), keepdims=True)",
                lambda _, w: np.exp(w).max(0, keepdims=True)),
}  # fmt: skip


def compiled(body: str, k: object, n: object, bits: int) -> unity.Executable:
    source = f"""
k = dim("k")
n = dim("n")

@script.function
def main(x: f32[Tensor, 1, {k}], w: f32[Tensor, {k}, {n}]) -> f32[Tensor, 1, {n}]:
    return {BODIES[body][0]}
"""
    return unity.compile(parse(source), target=TARGETS[bits], threads=2)


def check(exe: unity.Executable, body: str, k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, k)).astype(np.float32)
    w = rng.standard_normal((k, n)).astype(np.float32)
    want = BODIES[body][1](x.astype(np.float64), w.astype(np.float64))
    np.testing.assert_allclose(exe(x, w), want, rtol=1e-4, atol=1e-4)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_known_sizes(body: str, bits: int) -> None:
    for k, n in KNOWN:
        check(compiled(body, k, n, bits), body, k, n)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_any_size(body: str, bits: int) -> None:
    exe = compiled(body, "k", "n", bits)
    for k, n in UNKNOWN:
        if k or body != "maximum":
            check(exe, body, k, n)


def test_sums_over_leading_and_middle_axes() -> None:
    x = np.random.default_rng(0).standard_normal((3, 11, 5, 333)).astype(np.float32)
    source = """
@script.function
def main(x: f32[Tensor, 3, 11, 5, 333]) -> f32[Tensor, 11, 333]:
    return R.sum(x, axis=(0, 2))
"""
    for target in TARGETS.values():
        got = unity.compile(parse(source), target=target)(x)
        np.testing.assert_allclose(got, x.sum((0, 2)), rtol=1e-4, atol=1e-4)


def test_rows_lie_outside_columns_and_threads_share_these() -> None:
    x, w = te.placeholder((64,), "float32", "x"), te.placeholder((64, 4096), "float32", "w")
    k = te.reduce_axis(64, "k")
    func = te.create_prim_func(
        [x, w, te.compute((4096,), lambda j: te.sum(x[k] * w[k, j], [k]), "y")]
    )
    wide = replace(HOST, vector_bits=512, vector_registers=32, threads=2)
    loops = [s for s in walk_stmt(schedule(func, wide).body) if isinstance(s, For)]
    first, *others = [(s.var.name, s.kind) for s in loops]
    assert first == ("j_0", "parallel")
    assert ("k_0", "serial") in others
    rows = next(s for s in loops if s.var.name == "k_0")
    inside = [s.var.name for s in walk_stmt(rows.body) if isinstance(s, For)]
    assert inside.index("j_1") < inside.index("k_1")


def test_the_first_rows_begin_the_sums_and_others_are_read_once_for_a_strip() -> None:
    x, w = te.placeholder((64,), "float32", "x"), te.placeholder((64, 4096), "float32", "w")
    k = te.reduce_axis(64, "k")
    func = te.create_prim_func(
        [x, w, te.compute((4096,), lambda j: te.sum(x[k] * w[k, j], [k]), "y")]
    )
    loops = [s for s in walk_stmt(lowered(schedule(func, HOST), HOST).body) if isinstance(s, For)]
    first, rest = [s for s in loops if s.var.name.startswith("j_1")]
    stores = [
        [s for s in walk_stmt(loop) if isinstance(s, Store) and s.buffer.name.endswith("_local")]
        for loop in (first, rest)
    ]
    zero, loaded = (each[0].value for each in stores)
    assert not prim_loads(zero)
    assert [load.buffer.name for load in prim_loads(loaded)] == ["y_sums"]
    read = {x.buffer.name for each in stores for s in each for x in prim_loads(s.value)}
    assert read == {"y_sums", "y_sums_local", "x_local", "w"}


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("depth", [3, 11, dim("k")])
def test_strips_are_narrow_where_columns_turn_out_to_be_few(depth: Dim) -> None:
    target = replace(HOST, vector_bits=128, vector_registers=16, threads=2)
    before = unscheduled("matmul", ((1, depth), (depth, dim("n"))), {})[0]
    (rule,) = default_rules(before, target)
    assert (rule.rule, rule.decisions["narrow"]) == ("streamed", NARROW_BYTES // (4 * 4))
    after = default_schedule(before, target, {"matmul": {"vectors": 3, "narrow": 2, "steps": 2}})
    (choice,) = [s for s in walk_stmt(after.func.body) if isinstance(s, IfThen)]
    assert text(choice.condition) == "n >= 24"
    for n in (0, 1, 9, 23, 24, 50):
        assert_same(before, after.func, {"n": n, "k": 5})
