"""Which rule takes which stages of a kernel: groups of stages first, then each by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.ir.stmt import Buffer, Stmt
from unity.machine.target import Target

from ..blocks.access import all_axes
from ..blocks.nest import Nest
from .contraction.packed import PACKED_READ
from .contraction.split_reduction import SPLIT_REDUCTION, Whole
from .fallback import AS_WRITTEN, FALLBACK
from .groups import GROUPS
from .no_points import NO_POINTS, is_empty
from .rule import Found, first, first_of
from .stages import Part, Stages
from .table import found_for


@dataclass(frozen=True, slots=True)
class Taken:
    """Some parts of a kernel in a row, and the rule that takes them.

    Attributes:
        parts: What it takes.
        found: The rule, with its decisions.
    """

    parts: tuple[Part, ...]
    found: Found

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.found.rule

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names."""
        return tuple(name for part in self.parts for name in part.names)


Decide: TypeAlias = Callable[[Taken], Mapping[str, int]]
"""Which decisions of a rule are to be others."""
Without: TypeAlias = Mapping[str, Collection[str]]
"""Rules, by name, that are not to take a block."""


def cover(
    parts: Sequence[Part],
    temporaries: set[Buffer],
    target: Target,
    without: Without,
) -> list[Taken]:
    """The rules that lay a kernel out by their own decisions, in the order of its stages.

    Args:
        parts: What `parts_of` makes of the stages.
        temporaries: The kernel's.
        target: The machine.
        without: Rules that are not asked about some stages, by the name of a block.
    """
    return _without_points(parts, target) or _by_rule(parts, temporaries, target, without)


def with_decisions(taken: Sequence[Taken], decide: Decide | None) -> Sequence[Taken]:
    """The same rules with other decisions; their own stand if nothing changes them.

    Raises:
        UnityError: A changed decision is none of the rule's, or not legal.
    """
    if decide is None:
        return taken
    return [
        replace(t, found=t.found.with_(changes)) if (changes := decide(t)) else t for t in taken
    ]


def _without_points(parts: Sequence[Part], target: Target) -> list[Taken]:
    """The stages of a kernel where one runs over nothing, each by itself; none where none does.

    What rules count in, tiles and rows and strides, has no meaning there.
    """
    if not any(isinstance(p.stage, Nest) and is_empty(all_axes(p.stage)) for p in parts):
        return []
    return [Taken((part,), alone(part.stage, target)) for part in parts]


def _by_rule(
    parts: Sequence[Part], temporaries: set[Buffer], target: Target, without: Without
) -> list[Taken]:
    """Rules for groups of stages first, every other stage by itself."""
    stages = [p.stage for p in parts]
    result: list[Taken] = []
    at = 0
    while at < len(stages):
        passed: list[str] = []
        barred = {rule for name in parts[at].names for rule in without.get(name, ())}
        groups = [rule for rule in GROUPS if rule.name not in barred]
        found = first(groups, Stages(stages, at, temporaries), target, passed)
        found = found or alone(stages[at], target, barred)
        found = replace(found, passed=(*passed, *found.passed)) if passed else found
        result.append(Taken(tuple(parts[at : at + found.count]), found))
        at += found.count
    return result


def alone(stage: Nest | Stmt, target: Target, barred: Collection[str] = ()) -> Found:
    """A stage by itself, its sums in pieces where threads would be idle.

    Args:
        stage: The stage.
        target: The machine.
        barred: Rules that are not asked, by name.
    """
    if not isinstance(stage, Nest):
        return first_of((FALLBACK, AS_WRITTEN), stage, target)
    if is_empty(all_axes(stage)):
        return first_of((NO_POINTS, AS_WRITTEN), stage, target)
    whole, passed = found_for(stage, target, barred), list[str]()
    parting = [rule for rule in (SPLIT_REDUCTION,) if rule.name not in barred]
    found = first(parting, Whole(stage, whole), target, passed)
    return found or (replace(whole, passed=(*whole.passed, *passed)) if passed else whole)


def product_read_in_tile(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> bool:
    """Whether the stages behind a product read its result point by point, in its tile."""
    return PACKED_READ.match(Stages(stages, at, temporaries), target) is not None
