"""Where the step `lay_out` finds the default rules, which are made of schedules themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from unity.ir.stmt import PrimFunc
    from unity.machine.target import Target

    from ..blocks.tree import Outcome

LayOut: TypeAlias = "Callable[[PrimFunc, str, Sequence[str], Mapping[str, int], Target], Outcome]"
_source: list[Callable[[], LayOut]] = []


def provide(source: Callable[[], LayOut]) -> None:
    """Say what gives the rules; asked when they are needed, as they are long to import."""
    _source[:] = [source]


def lay_out() -> LayOut:
    """What lays blocks out by the name of a rule."""
    (source,) = _source
    return source()
