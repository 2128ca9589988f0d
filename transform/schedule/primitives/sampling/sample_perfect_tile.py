"""sample_perfect_tile: factors of a loop's extent, drawn at random and recorded as a decision."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.extents import divisors, number
from ....blocks.tree import illegal, loop_path

MOST_PARTS = 64


def sample_perfect_tile(
    func: PrimFunc, var: PrimVar, parts: int, limit: int, random: Random
) -> tuple[int, ...]:
    """Factors of a loop's extent, the last of them at most `limit`.

    Args:
        func: The prim func.
        var: A loop of a constant extent.
        parts: How many factors.
        limit: Of the innermost.
        random: Where from.

    Raises:
        UnityError: The extent is no constant or 0, or there is no part.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"], seed=0)
    >>> loop = sch.get_loops("copy")[0]
    >>> factors = sch.sample_perfect_tile(loop, 3, limit=16)
    >>> len(sch.split(loop, factors)), factors[0] * factors[1] * factors[2]
    (3, 64)
    """
    extent = extent_to_part("sample_perfect_tile", func, var, parts)
    if limit < 1:
        raise illegal("sample_perfect_tile, argument 3 'limit'", f"must be positive, got {limit}")
    return drawn_factors(extent, parts, limit, random)


def extent_to_part(step: str, func: PrimFunc, var: PrimVar, parts: int) -> int:
    """The constant extent of a loop that becomes a number of parts.

    Raises:
        UnityError: It is none, or 0, or there are no parts.
    """
    extent = number(loop_path(func, var)[1].extent)
    if extent is None:
        raise illegal(f"{step}, argument 1 'loop'", "its extent is no constant")
    if extent < 1:
        raise illegal(f"{step}, argument 1 'loop'", "it is empty: 0 has no factors")
    if not 0 < parts <= MOST_PARTS:
        why = f"must be from 1 to {MOST_PARTS}, got {parts}"
        raise illegal(f"{step}, argument 2 'parts'", why)
    return extent


def drawn_factors(total: int, parts: int, limit: int, random: Random) -> tuple[int, ...]:
    """Factors of a number, the last of them at most `limit`."""
    factors: list[int] = []
    left = total
    for k in range(parts - 1):
        most = limit if k == 0 else left
        factors.insert(0, random.choice([d for d in divisors(left) if d <= most]))
        left //= factors[0]
    return (left, *factors)


def check_perfect_tile(
    func: PrimFunc, var: PrimVar, parts: int, limit: int, decision: Sequence[int]
) -> None:
    """Whether a decision is one that `sample_perfect_tile` may draw.

    Raises:
        UnityError: It is none.
    """
    extent = number(loop_path(func, var)[1].extent)
    fits = len(decision) == parts and all(f > 0 for f in decision) and prod(decision) == extent
    if not fits or (parts > 1 and decision[-1] > limit):
        raise illegal(
            "sample_perfect_tile, argument 'decision'",
            f"it is {parts} factors of {extent}, the last at most {limit}, got {list(decision)}",
        )
