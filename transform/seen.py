"""What passes tell of kernels and calls that they were asked to look for.

Records of tuning that don't fit the machine change nothing; where the program has what they are of,
its compiler says so (`unity.tuning.records.unused`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from .passes import Context

SEEN = "seen"
"""Name of the report, as JSON: identities of kernels and calls."""


def report_seen(ctx: Context, watched: Iterable[str], there: Collection[str]) -> None:
    """Add what is watched for and there to the report.

    Args:
        ctx: Whose report.
        watched: Identities.
        there: Those of what the program has.
    """
    found = [name for name in watched if name in there]
    if found:
        ctx.reports[SEEN] = json.dumps([*seen(ctx), *found])


def seen(ctx: Context) -> list[str]:
    """What was reported.

    >>> context = Context()
    >>> report_seen(context, ("a", "b"), {"b", "c"})
    >>> seen(context)
    ['b']
    """
    found: list[str] = json.loads(ctx.reports.get(SEEN, "[]"))
    return found
