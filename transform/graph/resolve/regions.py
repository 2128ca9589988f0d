"""Regions: sites that one engine takes together, as large as they can be without a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.graph import Var


@dataclass(slots=True)
class _Region:
    """Nodes of one label: as bits, and as numbers."""

    members: int
    order: list[int]


def regions(
    order: Sequence[Var], operands: Mapping[Var, Sequence[Var]], label: Mapping[Var, str]
) -> list[list[Var]]:
    """Maximal sets of connected variables of one label whose outlining makes no cycle.

    A region is convex: nothing outside lies between two of its members. Variables are joined in
    order, each to the regions of its operands where that keeps them convex.

    Args:
        order: All variables, operands before what uses them.
        operands: What each is computed from.
        label: What those that belong to a region are labelled; the others are outside.
    """
    number = {var: i for i, var in enumerate(order)}
    ancestors: list[int] = []
    for var in order:
        bits = 0
        for other in operands.get(var, ()):
            if other in number:
                bits |= ancestors[number[other]] | 1 << number[other]
        ancestors.append(bits)
    region_of: dict[int, _Region] = {}
    found: list[_Region] = []
    for var in order:
        if var not in label:
            continue
        i = number[var]
        mine = _Region(1 << i, [i])
        found.append(mine)
        region_of[i] = mine
        for other in operands.get(var, ()):
            j = number.get(other)
            if j is None or label.get(other) != label[var] or j not in region_of:
                continue
            theirs = region_of[j]
            if theirs is mine or not _convex(theirs, mine, ancestors, operands, order, number):
                continue
            theirs.members |= mine.members
            theirs.order += mine.order
            for k in mine.order:
                region_of[k] = theirs
            found.remove(mine)
            mine = theirs
    return [[order[i] for i in sorted(r.order)] for r in found]


def _convex(
    a: _Region,
    b: _Region,
    ancestors: Sequence[int],
    operands: Mapping[Var, Sequence[Var]],
    order: Sequence[Var],
    number: Mapping[Var, int],
) -> bool:
    """Whether two convex regions together are convex."""
    both = a.members | b.members
    for i in (*a.order, *b.order):
        for other in operands.get(order[i], ()):
            j = number.get(other)
            if j is not None and not both >> j & 1 and ancestors[j] & both:
                return False
    return True
