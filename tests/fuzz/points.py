"""Random points of the spaces that tuning searches, laid out and interpreted.

A point is drawn as searches draw it: sampled, changed by a decision, crossed with another. What is
refused is refused by an error of ours, which is right; anything else is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from random import Random

from tests.transform.rules.families import FAMILIES
from tests.transform.tensor.kernels import assert_same
from tests.tuning.samples import MOST, drawn
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.transform.rules.canonical import canonical
from unity.tuning.cost.leaves import leaves
from unity.tuning.spaces import (
    Point,
    ProgramSpace,
    RuleSpace,
    Space,
    multi_level_tiles,
    rows_together,
)

from .texts import heading

CHAIN = 8
"""Points that are drawn together."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A point of a space of a family's kernel.

    Attributes:
        family: Its index among `FAMILIES`.
        space: Its index among `spaces`.
        point: None where all draws failed.
    """

    family: int
    space: int
    point: Point | None


@cache
def kernel_of(family: int) -> PrimFunc:
    """The kernel of a family."""
    return canonical(FAMILIES[family].make())


@cache
def spaces(family: int) -> tuple[Space, ...]:
    """The spaces of a family's kernel."""
    func, target = kernel_of(family), FAMILIES[family].target
    return (
        RuleSpace(func, target),
        ProgramSpace(func, target, multi_level_tiles, proven=True),
        ProgramSpace(func, target, rows_together, proven=True),
    )


def sample(seed: int) -> Sample:
    """The point of a seed: one of `CHAIN` that are drawn one after the other."""
    family, space, points = chain(seed // CHAIN)
    return Sample(family, space, points[seed % CHAIN % len(points)] if points else None)


@lru_cache(maxsize=1)
def chain(number: int) -> tuple[int, int, tuple[Point, ...]]:
    """A family and a space of it by number, and up to `CHAIN` different points of that.

    Drawing one takes longer than laying it out: seeds in order share what is drawn.
    """
    random = Random(number)
    family, space = random.randrange(len(FAMILIES)), random.choice((0, 0, 1, 2))
    known: list[Point] = []
    for _ in range(2 * CHAIN):
        point = drawn(spaces(family)[space], known, random)
        if point is not None and point not in known:
            known.append(point)
        if len(known) == CHAIN:
            break
    return family, space, tuple(known)


def check(of: Sample) -> None:
    """The kernel laid out computes what it does as it is written; a refusal is fine."""
    if of.point is None:
        return
    func, sizes = kernel_of(of.family), FAMILIES[of.family].sizes
    try:
        done = spaces(of.family)[of.space].schedule(of.point).func
    except UnityError:
        return
    if sum(x.iterations for x in leaves(done, sizes)) <= MOST:
        assert_same(func, done, sizes)


def smaller(of: Sample) -> Iterator[Sample]:
    """Points with one change less."""
    decided = None if of.point is None else of.point.decided()
    if of.point is None or not isinstance(decided, dict):
        return
    for key, value in decided.items():
        if isinstance(value, dict):
            for name in value:
                less = {**decided, key: {k: v for k, v in value.items() if k != name}}
                yield replace(of, point=Point.of(of.point.space, less))


def script(of: Sample, failure: str) -> str:
    """Python that checks the one point."""
    text = None if of.point is None else of.point.text
    space = None if of.point is None else of.point.space
    return f"""{heading("samples", failure)}
from tests.fuzz.points import Sample, check, spaces
from unity.tuning.spaces import Point

of = Sample({of.family}, {of.space}, Point({space!r}, {text!r}))
print(spaces(of.family)[of.space].schedule(of.point).func)
check(of)
"""
