"""Which lanes take part in what is emitted: choices and predicates within one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unity.ir.dtype import DType

from .emitter import Emitter
from .memory import any_lane, both
from .types import value_type


class Masks:
    """The mask of what is emitted at the moment; None where all lanes take part.

    Attributes:
        em: Where instructions go.
    """

    __slots__ = ("_mask", "_mask_lanes", "em")

    def __init__(self, em: Emitter) -> None:
        self.em = em
        self._mask: str | None = None
        self._mask_lanes = 1

    @contextmanager
    def masked(self, mask: str | None, lanes: int) -> Iterator[None]:
        """Evaluate what follows for the lanes of a mask only."""
        outer = (self._mask, self._mask_lanes)
        if mask is not None:
            self._narrow_mask(mask, lanes)
        yield
        self._mask, self._mask_lanes = outer

    def _narrow_mask(self, mask: str, lanes: int) -> None:
        """Add a condition to the mask."""
        if self._mask is None:
            self._mask, self._mask_lanes = mask, lanes
            return
        most = max(lanes, self._mask_lanes)
        t = value_type(DType("bool", most))
        a = mask if lanes == most else self.em.splat(mask, t)
        b = self._mask if self._mask_lanes == most else self.em.splat(self._mask, t)
        self._mask, self._mask_lanes = both(self.em, a, b, t), most

    def mask_of(self, lanes: int) -> str | None:
        """The current mask for an access of so many lanes."""
        if self._mask is None or lanes == self._mask_lanes:
            return self._mask
        one = any_lane(self.em, self._mask, value_type(DType("bool", self._mask_lanes)))
        return self.em.splat(one, value_type(DType("bool", lanes)))
