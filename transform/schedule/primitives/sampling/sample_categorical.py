"""sample_categorical: one of several numbers, drawn at random and recorded as a decision."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ....blocks.tree import illegal


def sample_categorical(candidates: Sequence[int], weights: Sequence[float], random: Random) -> int:
    """The index of one of several numbers, drawn with weights.

    Args:
        candidates: The numbers.
        weights: How likely each is.
        random: Where from.

    Raises:
        UnityError: There is none, or not a weight for each.

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
    >>> lanes = sch.sample_categorical([4, 8, 16], [0.2, 0.3, 0.5])
    >>> loops = sch.split(sch.get_loops("copy")[0], [None, lanes])
    >>> print(sch.trace.to_python(), end="")
    def steps(sch: Schedule) -> None:
        v0 = sch.sample_categorical([4, 8, 16], [0.2, 0.3, 0.5], decision=2)
        (l0,) = sch.get_loops("copy")
        l1, l2 = sch.split(l0, [None, v0])
    """
    if not candidates or len(candidates) != len(weights) or min(weights) < 0 or not sum(weights):
        raise illegal(
            "sample_categorical, argument 2 'weights'",
            f"there must be one for each of the candidates, got {list(weights)}",
        )
    return random.choices(range(len(candidates)), weights)[0]


def check_decision(name: str, decision: int, choices: range) -> None:
    """Whether a decision is the number of a choice.

    Raises:
        UnityError: It is none.
    """
    if decision not in choices:
        raise illegal(
            f"{name}, argument 'decision'",
            f"it lies between {choices.start} and {choices.stop - 1}, got {decision}",
        )
