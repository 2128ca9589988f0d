"""Random points of the spaces that tuning searches, laid out and interpreted.

A point is drawn as searches draw it: sampled, changed by a decision, crossed with another. What is
refused is refused by an error of ours, which is right; anything else is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
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


@dataclass(frozen=True, slots=True)
class Sample:
    """A point of a space of a family's kernel.

    Attributes:
        family: Its index among `FAMILIES`.
        space: Its index among `spaces`.
        point: None where a draw failed.
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
        ProgramSpace(func, target, multi_level_tiles),
        ProgramSpace(func, target, rows_together),
    )


def sample(seed: int) -> Sample:
    """The point of a seed, after up to three others."""
    random = Random(seed)
    family, space = random.randrange(len(FAMILIES)), random.choice((0, 0, 1, 2))
    known: list[Point] = []
    for _ in range(random.randint(1, 4)):
        point = drawn(spaces(family)[space], known, random)
        known += [] if point is None else [point]
    return Sample(family, space, known[-1] if known else None)


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
