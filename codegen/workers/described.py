"""Targets as plain data, for children and records."""

from __future__ import annotations

import json
from dataclasses import asdict

from unity.machine.target import Target
from unity.runtime.records import decode


def described(target: Target) -> str:
    """A target as JSON."""
    return json.dumps(asdict(target))


def target_from(text: str) -> Target:
    """The target that `described` told of.

    >>> target = Target("cpu", "", "generic", ())
    >>> target_from(described(target)) == target
    True
    """
    return decode(Target, text)
