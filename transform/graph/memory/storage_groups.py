"""Storages that lie in the same memory: written over each other, or parts of a larger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.dims import Dim, product
from unity.ir.graph import Var

from ..symbols import shape_of
from .arena import ALIGNMENT, Piece
from .liveness import Storage

Copy = tuple[Storage, Storage, int]
"""A part, the whole that it is an interval of, and the bytes before it."""


@dataclass(slots=True, eq=False)
class Group:
    """Storages with one place in the arena.

    Attributes:
        dims: As of a tensor that takes all of the memory.
        item: Bytes of an element of it.
        places: Where each storage begins, in bytes from the start.
        start: When the first is allocated.
        end: When the last was used.
    """

    dims: tuple[Dim, ...]
    item: int
    places: dict[Var, int]
    start: int
    end: int

    def piece(self) -> Piece:
        """What is asked of the arena."""
        return Piece(self.dims, self.item, self.start, self.end)

    @property
    def size(self) -> Dim:
        """Bytes."""
        return product(self.dims) * self.item


class Groups:
    """Which group each storage is in; groups are joined and never parted."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._of = {
            s.var: Group(shape_of(s.type), _item(s), {s.var: 0}, s.start, s.end) for s in storages
        }

    def __contains__(self, var: Var) -> bool:
        return var in self._of

    def of(self, storage: Storage) -> Group:
        """A storage's group."""
        return self._of[storage.var]

    def all(self) -> list[Group]:
        """The groups, in the order of their storages."""
        return list(dict.fromkeys(self._of.values()))

    def put(self, part: Storage, within: Storage, offset: int) -> None:
        """Let a storage, with all of its group, lie in another from so many bytes on.

        What the part lies in itself may reach out of the other at one end.
        """
        inner, outer = self.of(part), self.of(within)
        if inner is outer:  # along with another part
            return
        first = outer.places[within.var] + offset - inner.places[part.var]
        low, high = _reach(inner, outer, first)
        if low or high:
            assert isinstance(outer.size, int)
            outer.dims, outer.item = (outer.size + low + high,), 1
        for var in outer.places:
            outer.places[var] += low
        for var, place in inner.places.items():
            outer.places[var] = first + low + place
            self._of[var] = outer
        outer.start, outer.end = min(outer.start, inner.start), max(outer.end, inner.end)

    def may_put(self, copies: Sequence[Copy]) -> bool:
        """Whether parts, all of one group, may lie in a whole: only they are where both groups are.

        Args:
            copies: Each part, the whole and the bytes before the part.
        """
        part, within, _ = copies[0]
        inner, outer = self.of(part), self.of(within)
        base = outer.places[within.var]
        shifts = {base + o - inner.places[p.var] for p, _, o in copies}
        if inner is outer or len(shifts) > 1 or any(o % ALIGNMENT for _, _, o in copies):
            return False
        (shift,) = shifts
        size = _bytes(part)
        if len(copies) == 1 and inner.places[part.var] == 0 and inner.size == size:
            return True
        if not isinstance(inner.size, int) or not isinstance(outer.size, int):
            return False
        covered, end = max(0, shift), min(outer.size, shift + inner.size)
        for p, _, o in sorted(copies, key=lambda c: c[2]):
            length = _bytes(p)
            if not isinstance(length, int) or base + o > covered:
                return False
            covered = max(covered, base + o + length)
        return covered >= end


def _reach(inner: Group, outer: Group, first: int) -> tuple[int, int]:
    """How many bytes a group that begins at `first` reaches out of another, at either end."""
    if not isinstance(inner.size, int) or not isinstance(outer.size, int):
        return 0, 0
    return max(0, -first), max(0, first + inner.size - outer.size)


def _item(storage: Storage) -> int:
    dtype = storage.type.dtype
    assert dtype is not None
    return dtype.bytes


def _bytes(storage: Storage) -> Dim:
    return product(shape_of(storage.type)) * _item(storage)


def put_copies(groups: Groups, copies: Sequence[Copy]) -> bool:
    """Let parts lie in wholes, all of them or none; whether that was done.

    Args:
        groups: Changed where it can be done.
        copies: As a kernel copies them.
    """
    together: dict[tuple[int, int], list[Copy]] = {}
    for copy in copies:
        key = id(groups.of(copy[0])), id(groups.of(copy[1]))
        together.setdefault(key, []).append(copy)
    inner, outer = {a for a, _ in together}, {b for _, b in together}
    if not copies or len(inner) < len(together) or inner & outer:
        return False
    if not all(map(groups.may_put, together.values())):
        return False
    for copy in copies:  # each of those that reach out does so at an end of its own
        groups.put(*copy)
    return True


def placed(groups: Sequence[Group], offsets: Sequence[Dim]) -> Mapping[Var, Dim]:
    """Where each storage begins in the arena, from where each group does."""
    return {
        var: offset if place == 0 else offset + place
        for group, offset in zip(groups, offsets, strict=True)
        for var, place in group.places.items()
    }
