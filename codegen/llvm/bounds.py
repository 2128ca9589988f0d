"""What a checked access that no lane is off in must satisfy, less what is already known there."""

from __future__ import annotations

from .emitter import Emitter
from .memory import At, Run


def new_conditions(em: Emitter, place: At | Run, lanes: int, size: str) -> list[str]:
    """Bits to be required before an access; consecutive elements are inside if both ends are.

    Each is remembered as required from here on.
    """
    indices = [place.index]
    if isinstance(place, Run):
        indices.append(em.add(place.index, str(1 - lanes if place.backwards else lanes - 1), ""))
    constant = size[0] != "%"
    return [
        em.pure(f"icmp ult i64 {index}, {size}")
        for index in indices
        if not (constant and index[0] != "%" and 0 <= int(index) < int(size))
        and em.first(f"require 0 <= {index} < {size}")
    ]
