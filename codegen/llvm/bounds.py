"""What a checked access must satisfy, less what is already known there."""

from __future__ import annotations

from typing import assert_never

from unity.ir.dtype import INT64

from .emitter import Emitter, int_text, steps_text
from .memory import At, Place, Run, Scattered, Strided, all_lanes
from .types import Ty, value_type


def new_conditions(
    em: Emitter, place: Place, lanes: int, size: str, mask: str | None = None
) -> list[str]:
    """Bits to be required before an access of a buffer with `size` elements.

    Consecutive elements of which no lane is off are inside if both ends are; each end is remembered
    as required from here on.
    """
    if mask is not None or isinstance(place, Strided | Scattered):
        return [_lanes_inside(em, place, value_type(INT64.with_lanes(lanes)), size, mask)]
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


def _lanes_inside(em: Emitter, place: Place, t: Ty, size: str, mask: str | None) -> str:
    """Whether every lane that is on is inside."""
    match place:
        case At(index):
            t = value_type(INT64)
            where = index
        case Run(index, backwards):
            steps = steps_text(t, -1 if backwards else 1)
            where = em.pure(f"add {t.text} {em.splat(index, t)}, {steps}")
        case Strided(index, stride):
            where = em.pure(f"add {t.text} {em.splat(index, t)}, {steps_text(t, stride)}")
        case Scattered(indices, base):
            where = em.pure(f"add {t.text} {em.splat(base, t)}, {indices}")
        case _:
            assert_never(place)
    inside = em.pure(f"icmp ult {t.text} {where}, {em.splat(size, t)}")
    if mask is not None:
        off = em.pure(f"xor {t.mask.text} {mask}, {int_text(1, t.mask)}")
        inside = em.pure(f"or {t.mask.text} {inside}, {off}")
    return all_lanes(em, inside, t.mask)
