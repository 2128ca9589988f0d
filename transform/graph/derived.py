"""Constants made from other constants: weights scaled, rounded, laid out anew."""

from __future__ import annotations

from unity.ir.arrays.mapped import evict
from unity.ir.dtype import Array
from unity.ir.graph import Constant


def derived(c: Constant, data: Array, what: str) -> Constant:
    """What was made of a constant, named after it; if that is mapped, its memory is let go.

    >>> import numpy as np
    >>> derived(Constant(np.ones(4), "weight"), np.ones((2, 2)), "packed").name
    'weight_packed'
    """
    evict(c.data)
    return Constant(data, None if c.name is None else f"{c.name}_{what}", c.span)
