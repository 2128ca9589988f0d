"""Stages over the same rows are done row by row, at every size, without whole tensors between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rotation import examples
from tests.transform.rules.rows.programs import SIZES, random_rows
from tests.transform.schedule.test_by_hand import AVX2, AVX512
from tests.transform.tensor.kernels import CPU, assert_same
from unity import te
from unity.ir.dims import Dim, dim
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, Intrinsic, Load, PrimExpr
from unity.ir.stmt import Allocate, Evaluate, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.transform.rules.default import default_rules, schedule

from ..kernels import lowered, unscheduled

WIDE = replace(CPU, vector_bits=512, vector_registers=32, threads=2)
NARROW = replace(CPU, vector_bits=128, threads=1)
N, M = dim("n"), dim("m")


def softmax(rows: Dim, length: Dim) -> PrimFunc:
    """Softmax of masked rows: the sum of input and mask is a temporary as well."""
    x = te.placeholder((rows, length), "float32", "x")
    mask = te.placeholder((length,), "float32", "mask")
    k, r = te.reduce_axis(length, "k"), te.reduce_axis(length, "r")
    masked = te.compute((rows, length), lambda i, j: x[i, j] + mask[j], "masked")
    peak = te.compute((rows,), lambda i: te.max(masked[i, k.var], axis=[k]), "peak")
    power = te.compute((rows, length), lambda i, j: te.exp(masked[i, j] - peak[i]), "power")
    total = te.compute((rows,), lambda i: te.sum(power[i, r.var], axis=[r]), "total")
    y = te.compute((rows, length), lambda i, j: power[i, j] / total[i], "y")
    return te.create_prim_func([x, mask, y])


def layer_norm(rows: Dim, length: Dim) -> PrimFunc:
    """Mean and variance by two passes; the mean has a unit axis, as keepdims leaves it."""
    x = te.placeholder((rows, length), "float32", "x")
    gamma = te.placeholder((length,), "float32", "gamma")
    k, r = te.reduce_axis(length, "k"), te.reduce_axis(length, "r")
    mean = te.compute((rows, 1), lambda i, o: te.sum(x[i, k.var], axis=[k]), "total")
    centred = te.compute((rows, length), lambda i, j: x[i, j] - mean[i, 0] * 0.125, "centred")

    def square(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        return centred[i, j] * centred[i, j]

    spread = te.compute((rows,), lambda i: te.sum(square(i, r.var), axis=[r]), "spread")
    scale = te.compute((rows,), lambda i: te.rsqrt(spread[i] + 1e-5), "scale")
    y = te.compute((rows, length), lambda i, j: centred[i, j] * scale[i] * gamma[j], "y")
    return te.create_prim_func([x, gamma, y])


def touched(func: PrimFunc) -> set[str]:
    """The buffers that are loaded from for nothing but the cache."""
    evaluated = [s.value for s in walk_stmt(func.body) if isinstance(s, Evaluate)]
    fetched = [x for e in evaluated if isinstance(e, Intrinsic) for x in e.args]
    return {e.buffer.name for e in fetched if isinstance(e, Load)}


def global_elements(func: PrimFunc) -> int:
    """How many temporaries are not local to a row."""
    allocated = [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    return sum(b.scope != "local" for b in allocated)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("target", [CPU, WIDE, NARROW], ids=["avx2", "avx512", "sse"])
@pytest.mark.parametrize(
    ("rows", "length"), [(6, 8), (7, 17), (5, 300), (N, 16), (9, M), (N, M)], ids=str
)
@pytest.mark.parametrize("make", [softmax, layer_norm])
def test_one_loop_over_rows(
    make: Callable[[Dim, Dim], PrimFunc], rows: Dim, length: Dim, target: Target
) -> None:
    before = make(rows, length)
    scheduled = schedule(before, target)
    verify(IRModule({"main": scheduled}))
    assert global_elements(scheduled) == 0
    outer = scheduled.body
    assert isinstance(outer, For)
    low = lowered(scheduled, target)
    for n in (0, 1, 5) if rows is N else (1,):
        for m in (0, 1, 15, 16, 70, 131) if length is M else (1,):
            assert_same(before, scheduled, {"n": n, "m": m})
            assert_same(before, low, {"n": n, "m": m})


def test_a_row_of_known_length_gets_a_buffer_where_no_output_can_hold_it() -> None:
    x = te.placeholder((64, 300), "float32", "x")
    k, r = te.reduce_axis(300, "k"), te.reduce_axis(300, "r")
    root = te.compute((64, 300), lambda i, j: te.exp(x[i, j]), "root")
    peak = te.compute((64,), lambda i: te.max(root[i, k.var], axis=[k]), "peak")
    y = te.compute((64,), lambda i: te.sum(root[i, r.var] - peak[i], axis=[r]), "y")
    before = te.create_prim_func([x, y])
    scheduled = schedule(before, WIDE)
    low = lowered(scheduled, WIDE)
    local = {s.buffer.name: s.buffer for s in walk_stmt(low.body) if isinstance(s, Allocate)}
    assert local["root"].scope == "local"
    (size,) = local["root"].shape
    assert isinstance(size, Imm)
    assert int(size.value) in range(300, 321, 4)
    assert int(size.value) % 16 == 0  # whole vectors
    assert_same(before, low, {})


@pytest.mark.parametrize("make", [softmax, layer_norm])
def test_one_pass_fetches_what_the_next_row_reads(make: Callable[[Dim, Dim], PrimFunc]) -> None:
    scheduled = schedule(make(8, 1024), WIDE)
    assert touched(scheduled) == {"x"}  # what all rows share stays where it is
    short = schedule(make(64, 16), WIDE)
    assert touched(short) == {"x"}
    assert_same(make(64, 16), short, {})


def test_a_product_is_no_chain_over_rows() -> None:
    a = te.placeholder((32, 64), "float32", "a")
    b = te.placeholder((64, 48), "float32", "b")
    k = te.reduce_axis(64, "k")
    y = te.compute((32, 48), lambda i, j: te.sum(a[i, k.var] * b[k.var, j], axis=[k]), "y")
    z = te.compute((32, 48), lambda i, j: y[i, j] * y[i, j], "z")
    before = te.create_prim_func([a, b, y, z])
    scheduled = schedule(before, WIDE)
    assert [r.rule for r in default_rules(before, WIDE)] == ["packed", "elementwise"]
    assert_same(before, scheduled, {})


@settings(max_examples=examples(12))
@example(9745, NARROW)  # a row of what is never stored held another temporary
@given(st.integers(0, 1 << 30), st.sampled_from([CPU, WIDE, NARROW]))
def test_random_chains_keep_their_values(seed: int, target: Target) -> None:
    random = Random(seed)
    before = random_rows(random)
    scheduled = schedule(before, target)
    verify(IRModule({"main": scheduled}))
    low = lowered(scheduled, target)
    sizes = {name: random.choice(values) for name, values in SIZES.items()}
    assert_same(before, scheduled, sizes)
    assert_same(before, low, sizes)


@pytest.mark.parametrize(("target", "vectors"), [(AVX2, 1), (AVX512, 2)], ids=["avx2", "avx512"])
def test_a_step_has_as_many_exponentials_as_registers_hold(target: Target, vectors: int) -> None:
    func, _ = unscheduled("nn.softmax", ((3, 20),), {"axis": 1})
    (rule,) = default_rules(func, target)
    assert (rule.rule, rule.decisions["costly_vectors"]) == ("rows", vectors)
    assert_same(func, schedule(func, target), {})
