"""Which lanes take part in what is emitted: choices and predicates within one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unity.ir.dtype import DType

from .emitter import Emitter
from .facts.certain import Split
from .memory import any_lane, both
from .types import I64, value_type

COUNTED = (8, 16, 32, 64)
"""Lanes of masks that a shift of a number's bits makes."""


def split_lanes(em: Emitter, lanes: int, split: Split, begin: str, end: str, *, sure: bool) -> str:
    """The mask of lanes whose index, from a begin on, lies before an end, or of the others.

    Made of a number's bits: compared as vectors, indices of 64 bits take two registers, and each
    mask five instructions of the ports at which multiply-adds begin. With `sure`, differences of
    the two do not overflow.
    """
    t, whole = value_type(DType("bool", lanes)), "-1"
    minus = f"sub nsw i64 {end}, {begin}"
    count = em.pure(minus) if sure else em.intrinsic("ssub.sat", I64, end, begin)
    if split.past:
        count = em.intrinsic("sadd.sat", I64, count, "1")
    count = em.intrinsic("smin", I64, em.intrinsic("smax", I64, count, "0"), str(lanes))
    if lanes == I64.bits:  # shifted by that many there would be no number
        whole = em.pure(f"select i1 {em.pure(f'icmp eq i64 {count}, {lanes}')}, i64 0, i64 -1")
        count = em.pure(f"and i64 {count}, {lanes - 1}")
    bits = em.pure(f"shl i64 {whole}, {count}")
    if split.first:
        bits = em.pure(f"xor i64 {bits}, -1")
    if lanes < I64.bits:
        bits = em.pure(f"trunc i64 {bits} to i{lanes}")
    return em.pure(f"bitcast i{lanes} {bits} to {t.text}")


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
