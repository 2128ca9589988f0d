"""Iteration maps, regions and their algebra against brute force."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from random import Random

import pytest

from unity.arith import Analyzer
from unity.arith.iter_map import detect, inverse
from unity.arith.region import covers, disjoint, extremes, hull, intersection
from unity.ir.dims import Facts
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Range
from unity.ir.visit import substitute_prim

A, B, C = (PrimVar(name) for name in "abc")


def value(e: PrimExpr, at: Mapping[PrimVar, int]) -> int:
    found = Analyzer().simplify(substitute_prim(e, {v: imm(x) for v, x in at.items()}))
    assert isinstance(found, Imm)
    return int(found.value)


def random_index(random: Random, loops: Mapping[PrimVar, int]) -> PrimExpr:
    """A sum of loops, strided and split, or a split of a fused pair."""
    total: PrimExpr = imm(random.choice([0, 0, 3]))
    for var in random.sample(list(loops), random.randint(1, len(loops))):
        term: PrimExpr = var
        match random.randrange(4):
            case 0:
                term = Binary("floordiv", term, imm(random.randint(1, 4)))
            case 1:
                term = Binary("floormod", term, imm(random.randint(1, 4)))
            case _:
                pass
        total = total + term * random.choice([1, 1, 2, 3, 4, 6])
    if random.random() < 0.3:
        total = Binary(random.choice(["floordiv", "floormod"]), total, imm(random.randint(1, 6)))
    return total


@pytest.mark.parametrize("seed", range(200))
def test_injective_and_bijective(seed: int) -> None:
    random = Random(seed)
    loops = {v: random.randint(1, 6) for v in random.sample([A, B, C], random.randint(1, 3))}
    values = [random_index(random, loops) for _ in range(random.randint(1, 3))]
    m = detect(values, {v: imm(n) for v, n in loops.items()})
    if m is None:
        return
    points = [dict(zip(loops, p, strict=True)) for p in product(*map(range, loops.values()))]
    images = [tuple(value(e, p) for e in values) for p in points]
    if m.is_injective():
        assert len(set(images)) == len(images)
        back = inverse(m, [imm(0) for _ in values])
        if back is not None:
            for point, image in zip(points, images, strict=True):
                found = inverse(m, [imm(x) for x in image])
                assert found is not None
                assert {v: value(e, {}) for v, e in found.items()} == point
    if m.is_bijective():
        box = 1
        for column in zip(*images, strict=True):
            box *= max(column) - min(column) + 1
        assert box == len(set(images)) == len(images)


@pytest.mark.parametrize("seed", range(60))
def test_digits_of_a_fused_loop_that_is_split_anywhere(seed: int) -> None:
    """Some are digits of the outer part alone, some of both: all tell the loops, some don't."""
    random = Random(seed)
    radix = [random.choice([1, 2, 3, 4, 6]) for _ in range(random.randint(2, 4))]
    total = prod(radix)
    by = random.choice([n for n in range(1, total + 1) if total % n == 0])
    loops = {A: total // by, B: by}
    digits: list[PrimExpr] = []
    below = 1
    for extent in radix:
        digits.append(Binary("floormod", Binary("floordiv", A * by + B, imm(below)), imm(extent)))
        below *= extent
    m = detect(digits, {v: imm(n) for v, n in loops.items()})
    assert m is not None
    assert m.is_bijective()
    some = random.sample(digits, random.randint(1, len(digits)))
    fewer = detect(some, {v: imm(n) for v, n in loops.items()})
    assert fewer is not None
    points = [dict(zip(loops, p, strict=True)) for p in product(*map(range, loops.values()))]
    images = {tuple(value(e, p) for e in some) for p in points}
    assert fewer.is_injective() is (len(images) == total)


def test_digits_of_a_fused_loop_of_unknown_size() -> None:
    n = SizeVar("n")
    joined = A * 8 + B
    digits = [joined // 36, joined // 6 % 6, joined % 6]
    m = detect(digits, {A: n * 9, B: imm(8)})
    assert m is not None
    assert m.is_bijective()


def test_what_schedules_make_is_found() -> None:
    n = SizeVar("n")
    rest: list[tuple[list[PrimExpr], dict[PrimVar, PrimExpr]]] = [
        ([A * 4 + B], {A: (n + 3) // 4, B: imm(4)}),
        ([A // n, A % n], {A: n * 6}),
        ([A * 8 + B * 2 + C], {A: n, B: imm(4), C: imm(2)}),
        ([(A * 6 + B) // 4, (A * 6 + B) % 4], {A: imm(4), B: imm(6)}),
    ]
    for values, loops in rest:
        m = detect(values, loops)
        assert m is not None
        assert m.is_bijective()


def test_sums_of_sizes_are_extents_like_others() -> None:
    p, t = SizeVar("p", Facts(0, None, 1)), SizeVar("t", Facts(0, None, 1))
    i, j = PrimVar("i"), PrimVar("j")
    m = detect([i * (p + t) + j], {i: imm(12), j: p + t})
    assert m is not None
    assert m.is_bijective()
    v = PrimVar("v")
    assert inverse(m, [v]) == {i: v // (p + t), j: v % (p + t)}
    shorter = detect([i * p + j], {i: imm(12), j: p + t})
    assert shorter is not None
    assert not shorter.is_injective()


def test_parts_of_a_loop_over_blocks_of_one_of_two_sizes() -> None:
    b, n = SizeVar("b", Facts(0, None, 1)), SizeVar("n", Facts(0, None, 1))
    blocks, i = n // 32, PrimVar("i")
    m = detect([i // (blocks * 4), i // blocks % 4, i % blocks], {i: b * blocks * 4})
    assert m is not None
    assert m.is_injective()


def test_a_loop_that_runs_once_is_told_by_nothing() -> None:
    n = SizeVar("n", Facts(0, None, 1))
    once, twice = (n % 8 + 7) // 8, (n % 10 + 7) // 8
    for extent, told in ((once, True), (twice, False)):  # where it runs: once; once or twice
        m = detect([B], {A: extent, B: imm(4)})
        assert m is not None
        assert m.is_bijective() is told


def test_where_a_loop_runs_a_sum_of_sizes_is_positive() -> None:
    p, t = SizeVar("p", Facts(0, None, 1)), SizeVar("t", Facts(0, None, 1))
    for extent in (p + t, (p + t + 5) // 6):
        known = Analyzer().with_extent(A, imm(0), extent)
        assert known.prove(Compare("lt", imm(0), p + t))
        assert not known.prove(Compare("lt", imm(0), t))
        assert not known.prove(Compare("lt", imm(1), p + t))
    known = Analyzer().with_extent(A, imm(0), (p + t + 6) // 6)
    assert not known.prove(Compare("lt", imm(0), p + t))


def test_factors_of_what_is_positive() -> None:
    b, n = SizeVar("b", Facts(0, None, 1)), SizeVar("n", Facts(0, None, 1))
    blocks = n // 32
    known = Analyzer().with_positive(b * blocks)
    assert known.prove(Compare("ge", blocks, imm(1)))
    assert not known.prove(Compare("ge", blocks, imm(2)))
    below = (n - 40) // 32, (b - 40) // 32  # both may be negative where their product is not
    known = Analyzer().with_positive(below[0] * below[1])
    assert not any(known.prove(Compare("ge", x, imm(1))) for x in below)
    known = Analyzer().with_positive(imm(-1) * below[0] * blocks)
    assert not known.prove(Compare("ge", below[0], imm(1)))


def test_what_overlaps_is_not_injective() -> None:
    m = detect([A * 4 + B], {A: imm(3), B: imm(6)})
    assert m is not None
    assert not m.is_injective()


@pytest.mark.parametrize("seed", range(150))
def test_extremes_hold_every_value(seed: int) -> None:
    random = Random(seed)
    loops = {v: random.randint(1, 6) for v in (A, B, C)}
    e = random_index(random, loops)
    inner = {v: Range(imm(0), imm(loops[v])) for v in (B, C)}
    found = extremes(e, inner, Analyzer().with_extent(A, imm(0), imm(loops[A])))
    if found is None:
        return
    for i in range(loops[A]):
        low, high = (value(x, {A: i}) for x in found)
        for j, k in product(range(loops[B]), range(loops[C])):
            assert low <= value(e, {A: i, B: j, C: k}) <= high


@pytest.mark.parametrize("seed", range(100))
def test_ranges(seed: int) -> None:
    random, known = Random(seed), Analyzer()
    a, b = (Range(imm(random.randint(0, 8)), imm(random.randint(1, 6))) for _ in range(2))

    def members(r: Range) -> set[int]:
        first, count = value(r.begin, {}), value(r.extent, {})
        return set(range(first, first + count))

    assert members(intersection(a, b, known)) == members(a) & members(b)
    both = members(a) | members(b)
    assert members(hull(a, b, known)) == set(range(min(both), max(both) + 1))
    assert covers([a], [b], known) == (members(b) <= members(a))
    assert disjoint([a], [b], known) == (not members(a) & members(b))


def test_digits_of_unknown_sizes_are_told() -> None:
    h, w = SizeVar("h"), SizeVar("w")
    loops: dict[PrimVar, PrimExpr] = {A: imm(3), B: h, C: w}
    whole = detect([A * h * w + B * w + C], loops)
    assert whole is not None
    assert whole.is_bijective()
    other = detect([A * h * w + B * (w + 1) + C], loops)
    assert other is not None
    assert not other.is_bijective()
