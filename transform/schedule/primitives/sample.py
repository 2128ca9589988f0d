"""Sampling: what a schedule leaves open, drawn at random and recorded as decisions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from unity.errors import UnityError
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ..tree import block_path, constant, illegal, loop_path, loops_of, scope_path
from .compute_at import compute_at
from .neighbours import consumers


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
        UnityError: The extent is no constant, or there is no part.

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
    extent = constant(loop_path(func, var)[1].extent)
    if extent is None:
        raise illegal("sample_perfect_tile, argument 1 'loop'", "its extent is no constant")
    if parts < 1:
        raise illegal("sample_perfect_tile, argument 2 'parts'", f"must be positive, got {parts}")
    factors: list[int] = []
    left = extent
    for k in range(parts - 1):
        most = limit if k == 0 else left
        factors.insert(
            0, random.choice([d for d in range(1, left + 1) if left % d == 0 and d <= most])
        )
        left //= factors[0]
    return (left, *factors)


def sample_categorical(candidates: Sequence[int], weights: Sequence[float], random: Random) -> int:
    """The index of one of several numbers, drawn with weights.

    Raises:
        UnityError: There is none, or not a weight for each.
    """
    if not candidates or len(candidates) != len(weights) or min(weights) < 0 or not sum(weights):
        raise illegal(
            "sample_categorical, argument 2 'weights'",
            f"there must be one for each of the candidates, got {list(weights)}",
        )
    return random.choices(range(len(candidates)), weights)[0]


def compute_locations(func: PrimFunc, name: str) -> list[PrimVar]:
    """The loops that `compute_at` would take a block to."""
    found: list[PrimVar] = []
    for reader in consumers(func, name)[:1]:
        path, _ = block_path(func, reader.name)
        for loop in loops_of(scope_path(path)):
            try:
                compute_at(func, name, loop.var)
            except UnityError:
                continue
            found.append(loop.var)
    return found
