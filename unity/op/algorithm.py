"""Algorithms: ways of our own to compute an op, written at a call as its attribute `algorithm`.

A call without one is computed as the compiler sees fit; `Resolve` writes down what it chose. It
changes no result but by rounding.
"""

from __future__ import annotations

from .attribute import TEXT
from .registry import OpCall, attr

ALGORITHM = attr("algorithm", TEXT, None)
CONVOLUTIONS = ("direct", "gemm", "winograd.2", "winograd.4")
"""On channels in blocks; as a matrix product of the image as it lies; by tiles of 2 or 4."""
PRODUCTS = ("packed", "unpacked")
"""By a constant laid out in panels at compile time, or as it is."""


def check_algorithm(call: OpCall, known: tuple[str, ...]) -> None:
    """Check that a call's algorithm is one of those known.

    Raises:
        UnityError: It is another.
    """
    given = call.attrs.get("algorithm")
    if given is not None and given not in known:
        raise call.error(
            f"algorithm must be None or one of {', '.join(known)}, got {given!r}",
            hint="leave it out: the compiler chooses",
        )
