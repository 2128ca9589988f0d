"""Stages that run over nothing: what rules count in, tiles, rows, strides, has no meaning there."""

from __future__ import annotations

from collections.abc import Sequence

from unity.machine.target import Target

from ..blocks.access import all_axes
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest
from ..schedule.schedule import Schedule
from .rule import Nothing, by_steps


def is_empty(axes: Sequence[Axis]) -> bool:
    """Whether there is no point at all."""
    return any(number(a.extent) == 0 for a in axes)


def _match(nest: Nest, _target: Target) -> Nest | None:
    """A stage with results, of nothing."""
    return nest if is_empty(all_axes(nest)) and not is_empty(nest.axes) else None


def _first_values(sch: Schedule, nest: Nest, _how: Nothing, _result: str) -> None:
    """A reduction gives its first value where there is nothing to reduce."""
    sch.decompose_reduction(nest.name, sch.get_loops(nest.name)[len(nest.axes)])


NO_POINTS = by_steps(
    "no_points",
    _match,
    decide=lambda *_: Nothing(),
    legal=lambda *_: {},
    nest=lambda nest: nest,
    steps=_first_values,
)
