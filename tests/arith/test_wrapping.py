"""Data wraps: simplified, an expression over values from memory is what it was for any of them.

The oracle is the interpreter's own evaluation, in which int64 wraps as in compiled code.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from unity.arith import Analyzer, simplify
from unity.interpreter.expr import Slots, compile_expr
from unity.interpreter.scalar import hold
from unity.ir.dtype import BOOL, INT64, DType, dtype
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer

X, N, V = PrimVar("i"), SizeVar("n"), PrimVar("v")
KINDS = [dtype(name) for name in ("int64", "int32", "int8", "uint8", "uint64")]
BUFFERS = [Buffer(f"of_{kind.name}", (imm(2),), kind) for kind in KINDS]
MOST = (1 << 63) - 1
EXTREMES = (-MOST - 1, -MOST, -2, -1, 0, 1, 2, 3, MOST // 2, MOST // 2 + 1, MOST - 1, MOST)
ARITHMETIC: tuple[BinaryOp, ...] = ("add", "add", "sub", "sub", "mul", "min", "max")
DIVISION: tuple[BinaryOp, ...] = ("floordiv", "floormod", "truncdiv", "truncmod")
COMPARE: tuple[CompareOp, ...] = ("eq", "ne", "lt", "le", "gt", "ge")


def load(kind: DType, at: int) -> PrimExpr:
    return Load(BUFFERS[KINDS.index(kind)], (imm(at),))


def integer(rng: Random, of: DType, depth: int) -> PrimExpr:
    """Arithmetic on data, indices, and both; indices are int64."""
    if depth == 0 or rng.random() < 0.1:
        leaves = [load(of, 0), load(of, 1), imm(rng.randint(0, 4), of)]
        if of == INT64:
            leaves += [X, N, V, imm(rng.choice(EXTREMES)), imm(rng.randint(-5, 5))]
        return rng.choice(leaves)

    def inner() -> PrimExpr:
        return integer(rng, of, depth - 1)

    kind = rng.random()
    if kind < 0.1:
        return Select(condition(rng, of, depth - 1), inner(), inner())
    if kind < 0.2:
        return Cast(of, integer(rng, rng.choice(KINDS), depth - 1))
    if kind < 0.3:
        low = Binary("max", inner(), imm(0, of))
        return Binary("min", low, N if of == INT64 else imm(7, of))
    if kind < 0.45:
        by = N + 1 if of == INT64 and rng.random() < 0.3 else imm(rng.randint(1, 5), of)
        return Binary(rng.choice(DIVISION), inner(), by)
    return Binary(rng.choice(ARITHMETIC), inner(), inner())


def condition(rng: Random, of: DType, depth: int) -> PrimExpr:
    if rng.random() < 0.1:
        return Not(condition(rng, of, depth))
    return Compare(rng.choice(COMPARE), integer(rng, of, depth), integer(rng, of, depth))


def values(rng: Random) -> list[object]:
    """A frame: data of extreme values, indices small as indices are."""
    arrays = [
        np.array([rng.choice(EXTREMES) for _ in range(2)], np.int64).astype(kind.name)
        for kind in KINDS
    ]
    i, n = rng.randint(0, 7), rng.randint(0, 3)
    v = arrays[0][0] + np.int64(1)
    return [None, *arrays, hold(i, INT64), hold(n, INT64), hold(int(v), INT64)]


@pytest.mark.rotated(2)
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("part", range(4))
def test_simplified_is_what_it_was_for_extreme_data(part: int) -> None:
    rng, slots = Random(part), Slots()
    for buffer in BUFFERS:
        slots.define(buffer)
    for name in (X, N, V):
        slots.define(name)
    known = Analyzer().with_range(X, 0, 7).with_value(V, load(INT64, 0) + 1)
    for _ in range(700):
        of = rng.choice((INT64, INT64, INT64, *KINDS))
        made = rng.choice((integer, condition))
        before = made(rng, of, rng.randint(1, 4))
        after = known.simplify(before)
        runs = [compile_expr(e, slots) for e in (before, after)]
        for _ in range(12):
            frame = values(rng)
            expected, got = (run(frame) for run in runs)
            assert expected == got, f"{before}\n{after}\n{frame}"


A, B = load(INT64, 0), load(INT64, 1)
K, U = Cast(INT64, load(dtype("int32"), 0)), Cast(INT64, load(dtype("uint8"), 0))


@pytest.mark.parametrize(
    "e",
    [
        Compare("le", A, imm(MOST)),
        Compare("gt", A, 0 - B),
        Compare("lt", A + 1, B),
        Compare("lt", A - B, imm(0)),
        Compare("lt", A * 2, B * 2),
        Compare("eq", A * 2, B * 2),
        Compare("lt", A, A + 1),
        Compare("le", A, Binary("max", A + 1, A)),
        Compare("lt", A + X, N),
        Compare("lt", K * K * 4, imm(4)),
        Compare("lt", K * (1 << 33), imm(0)),
        Compare("lt", K * K * U * 2, U * 2),
    ],
    ids=str,
)
def test_comparisons_of_data_stay(e: PrimExpr) -> None:
    assert isinstance(simplify(e), Compare)


def test_what_the_ring_or_the_values_decide_is_decided() -> None:
    row = Binary("max", Binary("min", A, N - 1), imm(0))
    true = Imm(True, BOOL)
    decided = [
        Compare("eq", A + B, B + A),
        Compare("le", A - A, imm(0)),
        Compare("lt", Binary("min", A, imm(5)), imm(10)),
        Compare("lt", A % 8, imm(8)),
        Compare("ge", row * 4 + 3, imm(0)),
        Compare("lt", K * 768 + X, K * 768 + X + 1),
        Compare("lt", K * U, K * U + 1),
        Compare("ge", U * U * 4, imm(0)),
    ]
    assert [simplify(e) for e in decided] == [true] * len(decided)
    assert Analyzer().with_range(N, 1, None).prove(Compare("lt", row, N))
    assert Analyzer().with_range(N, 1, None).prove(Compare("lt", row * 4 + 3, N * 4))


@pytest.mark.filterwarnings("ignore:overflow")
def test_products_of_narrow_data_are_data() -> None:
    rng, slots, p = Random(0), Slots(), PrimVar("p")
    for buffer in BUFFERS:
        slots.define(buffer)
    for name in (X, N, V, p):
        slots.define(name)
    leaves = [Cast(INT64, load(kind, at)) for kind in KINDS if kind != INT64 for at in (0, 1)]
    bound = leaves[0] * leaves[1]
    known = Analyzer().with_range(X, 0, 7).with_value(p, bound)
    for _ in range(300):
        pick = [*leaves, p, X, N, imm(rng.choice((1, 2, 3, 4, 1 << 31, 1 << 33, -(1 << 32))))]
        a, b = ((rng.choice(pick) * rng.choice(pick)) * rng.choice(pick) for _ in "ab")
        before = Compare(rng.choice(COMPARE), a, rng.choice((b, b + 1, a + 1, imm(0), imm(4))))
        runs = [compile_expr(e, slots) for e in (before, known.simplify(before))]
        value = compile_expr(bound, slots)
        for _ in range(8):
            frame = values(rng)
            frame.append(value(frame))
            expected, got = (run(frame) for run in runs)
            assert expected == got, f"{before}\n{known.simplify(before)}\n{frame}"
