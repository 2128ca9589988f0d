"""sample_partitioned_tile: factors of a loop's extent in two parts, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.extents import divisors
from ....blocks.tree import illegal
from .sample_perfect_tile import drawn_factors, extent_to_part


def sample_partitioned_tile(
    func: PrimFunc, var: PrimVar, parts: int, place: int, inner_factor: int, random: Random
) -> tuple[int, ...]:
    """Factors of a loop's extent, of which those from a place on make whole tiles.

    Where the inner loops go to an instruction or a thread's registers, what they cover together has
    to be a multiple of its size; how the factors share that is left open.

    Args:
        func: The prim func.
        var: A loop of a constant extent.
        parts: How many factors.
        place: The number of the first factor of the inner part.
        inner_factor: What the product of the inner part is a multiple of.
        random: Where from.

    Raises:
        UnityError: The extent is no constant or 0, no multiple of `inner_factor`, or there is no
            such part.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 96], c: f32[Buffer, 96]) -> None:
    ...     for i in range(96):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(96, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"], seed=0)
    >>> loop = sch.get_loops("copy")[0]
    >>> factors = sch.sample_partitioned_tile(loop, 4, place=2, inner_factor=8)
    >>> len(sch.split(loop, factors)), factors[2] * factors[3] % 8
    (4, 0)
    """
    extent = _checked(func, var, parts, place, inner_factor)
    if place == 0:
        return drawn_factors(extent, parts, extent, random)
    inner = inner_factor * random.choice(divisors(extent // inner_factor))
    outer = extent // inner
    return (
        *drawn_factors(outer, place, outer, random),
        *drawn_factors(inner, parts - place, inner, random),
    )


def check_partitioned_tile(
    func: PrimFunc,
    var: PrimVar,
    parts: int,
    place: int,
    inner_factor: int,
    decision: Sequence[int],
) -> None:
    """Whether a decision is one that `sample_partitioned_tile` may draw.

    Raises:
        UnityError: It is none.
    """
    extent = _checked(func, var, parts, place, inner_factor)
    fits = len(decision) == parts and all(f > 0 for f in decision) and prod(decision) == extent
    if not fits or prod(decision[place:]) % inner_factor:
        raise illegal(
            "sample_partitioned_tile, argument 'decision'",
            f"it is {parts} factors of {extent}, those from number {place} on a multiple of "
            f"{inner_factor} together, got {list(decision)}",
        )


def _checked(func: PrimFunc, var: PrimVar, parts: int, place: int, inner_factor: int) -> int:
    name = "sample_partitioned_tile"
    extent = extent_to_part(name, func, var, parts)
    if not 0 <= place < parts:
        why = f"it is the number of a part, from 0 to {parts - 1}, got {place}"
        raise illegal(f"{name}, argument 3 'place'", why)
    if inner_factor < 1 or extent % inner_factor:
        why = f"it must divide {extent}, got {inner_factor}"
        raise illegal(f"{name}, argument 4 'inner_factor'", why)
    return extent
