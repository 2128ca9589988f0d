"""What measuring decided of a program, and its form in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from unity.runtime.explanation import RoadRow
from unity.runtime.records import RecordError, decode

MIXED, WITHOUT = "mixed", "mixed, no engines"
"""The roads of mixtures."""


@dataclass(frozen=True, slots=True)
class SiteDecision:
    """A resolution of all sites.

    Attributes:
        road: The road taken; of a mixture `MIXED` or `WITHOUT`.
        overrides: Which sites become what.
        roads: What was measured of the whole program.
        reasons: By site.
        measured: Seconds by site and implementation.
    """

    road: str
    overrides: tuple[tuple[str, str], ...]
    roads: tuple[RoadRow, ...]
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    measured: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )


def encoded(decision: SiteDecision) -> str:
    """A decision as JSON."""
    return json.dumps(asdict(decision))


def decoded(text: str) -> SiteDecision | None:
    """What `encoded` wrote; None if it is something else.

    >>> given = SiteDecision("tir", (("*", "tir"),), (RoadRow("tir", 1.0, taken=True),))
    >>> decoded(encoded(given)) == given, decoded("{}")
    (True, None)
    """
    try:
        return decode(SiteDecision, text)
    except RecordError:
        return None
