"""Index arithmetic against z3, which decides it for all values of unbounded symbols at once."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, assert_never

import pytest

from unity.arith import Analyzer
from unity.arith.iter_map import detect
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Imm,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)

z3: Any = pytest.importorskip("z3")

X, Y, N = PrimVar("i"), PrimVar("j"), SizeVar("n")
PROVED_OF_VALID = 0.85
"""Of the random conditions that hold, how many `prove` finds: a fall is a loss for schedules."""
CASES = 600

Names = Mapping[PrimVar | SizeVar, Any]


def spelled(e: PrimExpr, names: Names) -> Any:
    """The expression in z3's terms; divisors are positive, where z3's division is the floor."""
    match e:
        case PrimVar() | SizeVar():
            return names[e]
        case Imm(bool() as truth):
            return z3.BoolVal(truth)
        case Imm(number):
            return z3.IntVal(int(number))
        case Not(a):
            return z3.Not(spelled(a, names))
        case Select(condition, a, b):
            return z3.If(*(spelled(x, names) for x in (condition, a, b)))
        case Binary(op, a, b):
            return _binary(op, spelled(a, names), spelled(b, names))
        case Compare(op, a, b):
            return _compare(op, spelled(a, names), spelled(b, names))
        case _:
            raise AssertionError(f"not made here: {e}")


def _binary(op: BinaryOp, a: Any, b: Any) -> Any:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return a / b
        case "floormod":
            return a % b
        case "min":
            return z3.If(a < b, a, b)
        case "max":
            return z3.If(a > b, a, b)
        case "and":
            return z3.And(a, b)
        case "or":
            return z3.Or(a, b)
        case _:
            raise AssertionError(f"not made here: {op}")


def _compare(op: CompareOp, a: Any, b: Any) -> Any:
    match op:
        case "eq":
            return a == b
        case "ne":
            return a != b
        case "lt":
            return a < b
        case "le":
            return a <= b
        case "gt":
            return a > b
        case "ge":
            return a >= b
        case _:
            assert_never(op)


def always(claim: Any, facts: Any) -> bool | None:
    """Whether a claim follows from facts; None where z3 finds no answer in time."""
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(facts, z3.Not(claim))
    answer = str(solver.check())
    return None if answer == "unknown" else answer == "unsat"


def linear(random: Random, variables: list[PrimVar | SizeVar]) -> PrimExpr:
    """A sum of variables by constants, perhaps divided by one."""
    total: PrimExpr = imm(random.randint(-6, 6))
    for var in random.sample(variables, random.randint(1, len(variables))):
        total = Binary("add", total, Binary("mul", var, imm(random.choice([-2, -1, 1, 2, 4]))))
    return total


def index(random: Random, variables: list[PrimVar | SizeVar], depth: int = 2) -> PrimExpr:
    """An index as schedules make them: sums, splits, minima."""
    if depth == 0 or random.random() < 0.2:
        return linear(random, variables)
    a, b = (index(random, variables, depth - 1) for _ in range(2))
    match random.randrange(6):
        case 0:
            return Binary("floordiv", a, imm(random.choice([2, 3, 4, 8])))
        case 1:
            return Binary("floormod", a, imm(random.choice([2, 3, 4, 8])))
        case 2:
            return Binary("min", a, b)
        case 3:
            return Binary("max", a, b)
        case 4:
            return Binary("mul", a, imm(random.choice([-1, 2, 4])))
        case _:
            return Binary("add", a, b)


def known(random: Random) -> tuple[Analyzer, Names, Any]:
    """Ranges of i and j, n being any size, for us and for z3."""
    names: dict[PrimVar | SizeVar, Any] = {X: z3.Int("i"), Y: z3.Int("j"), N: z3.Int("n")}
    low, extent = random.randint(-3, 3), random.choice([1, 4, 7, 16])
    analyzer = Analyzer().with_extent(X, imm(low), imm(extent)).with_extent(Y, imm(0), N)
    facts = [low <= names[X], names[X] < low + extent, names[Y] >= 0, names[Y] < names[N]]
    return analyzer, names, z3.And(*facts, names[N] >= 0)


@pytest.mark.rotated(1)
def test_simplifying_keeps_every_value() -> None:
    changed = 0
    for seed in range(CASES):
        random = Random(seed)
        analyzer, names, facts = known(random)
        e = index(random, [X, Y, N])
        simple = analyzer.simplify(e)
        changed += simple != e
        same = spelled(e, names) == spelled(simple, names)
        assert always(same, facts) is not False, (seed, e, simple)
    assert changed > CASES // 2


@pytest.mark.rotated(1)
def test_what_is_proved_holds_and_most_that_holds_is_proved() -> None:
    valid = proved = 0
    comparisons: list[CompareOp] = ["lt", "le", "gt", "ge", "ne", "eq"]
    for seed in range(CASES):
        random = Random(seed)
        analyzer, names, facts = known(random)
        condition = Compare(
            random.choice(comparisons), index(random, [X, Y, N], 1), index(random, [X, Y, N], 1)
        )
        holds = always(spelled(condition, names), facts)
        found = analyzer.prove(condition)
        assert not (found and holds is False), (seed, condition)
        valid += holds is True
        proved += found and holds is True
    assert valid > 30
    assert proved >= PROVED_OF_VALID * valid, f"{proved} of {valid}"


@pytest.mark.rotated(1)
def test_bounds_hold() -> None:
    bounded = 0
    for seed in range(CASES):
        random = Random(seed)
        analyzer, names, facts = known(random)
        e = index(random, [X, Y, N])
        low, high = analyzer.bounds(e)
        z = spelled(e, names)
        bounded += low is not None or high is not None
        if low is not None:
            assert always(z >= low, facts) is not False, (seed, e, low)
        if high is not None:
            assert always(z <= high, facts) is not False, (seed, e, high)
    assert bounded > CASES // 4


@pytest.mark.parametrize("seed", range(150))
def test_an_injective_map_has_no_two_points_with_one_image(seed: int) -> None:
    random = Random(seed)
    four = random.choice([2, 3, 4, 8])
    wide: PrimExpr = N if random.random() < 0.5 else N * four
    extents: dict[PrimVar, PrimExpr] = {X: wide, Y: imm(four)}
    flat = X * random.choice([four, four, 1, 2]) + Y * random.choice([1, 1, 2])
    divisor = random.choice([four, 2, 6])
    choices: list[list[PrimExpr]] = [
        [flat],
        [flat // divisor, flat % divisor],
        [Y, X],
        [X // four, Y],
    ]
    values = random.choice(choices)
    m = detect(values, extents)
    if m is None or not m.is_injective():
        return
    n = z3.Int("n")
    first: Names = {X: z3.Int("i0"), Y: z3.Int("j0"), N: n}
    other: Names = {X: z3.Int("i1"), Y: z3.Int("j1"), N: n}
    facts = [n >= 0]
    for at in (first, other):
        for var, extent in extents.items():
            facts += [at[var] >= 0, at[var] < spelled(extent, at)]
    alike = z3.And(*(spelled(v, first) == spelled(v, other) for v in values))
    same = z3.And(first[X] == other[X], first[Y] == other[Y])
    assert always(z3.Implies(alike, same), z3.And(*facts)) is not False
