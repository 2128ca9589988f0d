"""Which rule takes which stages of a kernel: groups of stages first, then each by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from unity.ir.stmt import Buffer, Seq, Stmt
from unity.machine.target import Target

from ..blocks.access import all_axes
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, nest_of
from ..blocks.tree import blocks_below
from ..tactics.epilogue import fused
from .contraction.panels import PANELS_READ
from .contraction.plain import plain
from .contraction.split_reduction import SPLIT_REDUCTION, Whole
from .fallback import fallback
from .groups import GROUPS
from .rule import AnyRule, Found, at_once
from .stages import Stages, read_by
from .table import found_for

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Part:
    """A stage, with what is done in its write-back.

    Attributes:
        stage: The stage, or a statement that is none.
        behind: The names of the stages that it does in its write-back.
    """

    stage: Nest | Stmt
    behind: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names; of what is no stage, those of its blocks."""
        if isinstance(self.stage, Nest):
            return (self.stage.name, *self.behind)
        return tuple(b.name for b in blocks_below(self.stage))


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


FALLBACK = at_once("fallback", fallback)


def _no_points(stage: Nest, target: Target) -> Stmt:
    """A stage without points goes, and one that reduces nothing gives its first value."""
    bare = None if is_empty(stage.axes) else plain(stage, target)
    return Seq(()) if bare is None else bare


NO_POINTS = at_once("no_points", _no_points)

Decide: TypeAlias = Callable[[Taken], Mapping[str, int]]
"""Which decisions of a rule are to be others."""


def parts_of(stages: Sequence[Stmt], temporaries: set[Buffer]) -> list[Part]:
    """The stages, each reduction with the elementwise one behind it that alone reads its result."""
    nests = [nest_of(s) or s for s in stages]
    readers = Counter(b for stage in nests for b in read_by(stage))
    result: list[Part] = []
    for nest in nests:
        last = result[-1] if result else None
        if last is not None and isinstance(last.stage, Nest) and isinstance(nest, Nest):
            private = last.stage.output in temporaries and readers[last.stage.output] == 1
            joined = fused(last.stage, nest) if private else None
            if joined is not None:
                result[-1] = Part(joined, (*last.behind, nest.name))
                continue
        result.append(Part(nest))
    return result


def cover(
    parts: Sequence[Part],
    temporaries: set[Buffer],
    target: Target,
    decide: Decide | None = None,
) -> list[Taken]:
    """The rules that lay a kernel out, in the order of its stages.

    Args:
        parts: What `parts_of` makes of the stages.
        temporaries: The kernel's.
        target: The machine.
        decide: Changes decisions; the rules' own stand if there is none.

    Raises:
        UnityError: A changed decision is none of the rule's, or not legal.
    """
    taken = _without_points(parts, target) or _by_rule(parts, temporaries, target)
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


def is_empty(axes: Sequence[Axis]) -> bool:
    """Whether there is no point at all."""
    return any(number(a.extent) == 0 for a in axes)


def _by_rule(parts: Sequence[Part], temporaries: set[Buffer], target: Target) -> list[Taken]:
    """Rules for groups of stages first, every other stage by itself."""
    stages = [p.stage for p in parts]
    result: list[Taken] = []
    at = 0
    while at < len(stages):
        here = Stages(stages, at, temporaries)
        found = next(filter(None, (rule.on(here, target) for rule in GROUPS)), None)
        found = found or alone(stages[at], target)
        result.append(Taken(tuple(parts[at : at + found.count]), found))
        at += found.count
    return result


def alone(stage: Nest | Stmt, target: Target) -> Found:
    """A stage by itself, its sums in pieces where threads would be idle."""
    if not isinstance(stage, Nest):
        return _found(FALLBACK, stage, target)
    if is_empty(all_axes(stage)):
        return _found(NO_POINTS, stage, target)
    whole = found_for(stage, target)
    return SPLIT_REDUCTION.on(Whole(stage, whole), target) or whole


def _found(rule: AnyRule[S], stages: S, target: Target) -> Found:
    found = rule.on(stages, target)
    assert found is not None
    return found


def product_read_in_tile(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> bool:
    """Whether the stages behind a product read its result point by point, in its tile."""
    return PANELS_READ.on(Stages(stages, at, temporaries), target) is not None
