"""How many steps of a sum's innermost loop stand in a row.

The loop's own arithmetic then costs a fraction, and loads of the next step overlap with the
multiplications of this one.
"""

from __future__ import annotations

from ..blocks.access import known_of, place, step
from ..blocks.extents import number
from ..blocks.nest import Axis, Reduction

UNROLL = 4
"""Steps in a row."""
WINDOW = 7
"""Steps of a short loop, as those of windows are, that all stand in a row, at most."""
SHORT = 16
"""Steps below which a longer one is left as it is."""


def steps_in_row(reduction: Reduction, axes: tuple[Axis, ...]) -> int:
    """How many steps of the innermost reduced axis to put in a row; all of the shortest windows.

    One where two steps read the same element for different places of the tile, as neighbouring
    taps of a window do: it would be kept in a register, of which there are none left.
    """
    last = reduction.axes[-1]
    extent = number(last.extent)
    known = known_of((*axes, *reduction.axes))
    for load in reduction.loads():
        index = place(load, known)
        along = step(index, last.var)
        for axis in axes:
            across = step(index, axis.var)
            if along and across and _meet(abs(along), abs(across)):
                return 1
    if extent is None:
        return UNROLL
    if extent < SHORT:
        return extent if extent <= WINDOW else 1
    return next((u for u in (4, 5, 3) if extent % u == 0), UNROLL)


def _meet(along: int, across: int) -> bool:
    """Whether two steps in a row read one element for different rows."""
    return any(across * r == along * u for u in range(1, UNROLL) for r in range(1, 8))
