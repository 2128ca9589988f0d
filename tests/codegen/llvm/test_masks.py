"""Masks of lanes before an end, which machines with registers of masks make of a number."""

from __future__ import annotations

import re
from typing import get_args

import numpy as np
import pytest

from tests.codegen.llvm.levels import with_masks
from tests.codegen.llvm.run_kernel import HOST, build
from tests.codegen.llvm.test_spills import TARGETS, assembly_of, innermost
from unity.codegen.llvm import build as building
from unity.ir.dtype import BOOL, INT64
from unity.ir.prim_expr import (
    Broadcast,
    Compare,
    CompareOp,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer, Let, PrimFunc, Store
from unity.script import parse

ENDS = np.iinfo(np.int64)
GREAT = (ENDS.min, ENDS.min + 1, ENDS.max - 200, ENDS.max)
COMPARED = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("op", get_args(CompareOp))
def test_every_order_of_any_numbers(
    op: CompareOp, lanes: int, turned: bool, loaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "abilities", with_masks)
    given, out = Buffer("given", (imm(2),), INT64), Buffer("out", (imm(lanes),), INT64)
    begin: PrimExpr = Load(given, (imm(0),)) if loaded else SizeVar("begin")
    end: PrimExpr = Load(given, (imm(1),)) if loaded else SizeVar("end")
    index, limit = Ramp(begin, imm(1), lanes), Broadcast(end, lanes)
    mask = PrimVar("mask", BOOL.with_lanes(lanes))
    value = Select(mask, Broadcast(imm(1), lanes), Broadcast(imm(0), lanes))
    test = Compare(op, limit, index) if turned else Compare(op, index, limit)
    store = Store(out, (Ramp(imm(0), imm(1), lanes),), value)
    sizes = () if loaded else (Buffer("sizes", (begin, end), INT64),)
    kernel = build({"main": PrimFunc((given, out, *sizes), Let(mask, test, store))}, HOST)["main"]
    rng = np.random.default_rng(lanes)
    pairs = [(b, b + e) for b in rng.integers(0, 99, 8).tolist() for e in (-1, 0, 1, 5, lanes, 99)]
    pairs += [(b, int(e)) for b in (0, 7, 1 << 40) for e in GREAT] if loaded else []
    for b, e in pairs:
        if not loaded and e < 0:
            continue
        lit = np.full(lanes, 7)
        more = [] if loaded else [np.empty(0, np.int64)]
        names = {} if loaded else {"begin": b, "end": e}
        assert kernel([np.array([b, e]), lit, *more], names) == 0
        indices = b + np.arange(lanes)
        want = COMPARED[op](e, indices) if turned else COMPARED[op](indices, e)
        np.testing.assert_array_equal(lit, want)


@pytest.mark.parametrize("value", ["R.matmul(x, y)", "R.nn.softmax(y, axis=1)"])
def test_no_loop_compares_indices(value: str) -> None:
    text = f"""
n = dim("n")

@script.function
def main(x: f32[Tensor, 1, 64, 64], y: f32[Tensor, 1, 64, n]) -> f32[Tensor, ...]:
    z = {value}
    return z
"""
    loops = innermost(assembly_of(parse(text), TARGETS["avx512"]))
    assert any(re.search(r"\{%k", line) for body in loops for line in body), "no masks at all"
    assert not [line for body in loops for line in body if re.search("kunpck|vpcmp.*q\t", line)]
