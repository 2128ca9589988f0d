"""Storages that lie in the same memory: written over each other, or parts of a larger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.dims import Dim, product
from unity.ir.graph import Var

from .arena import ALIGNMENT, Piece
from .liveness import Storage
from .symbols import shape_of


@dataclass(slots=True, eq=False)
class Group:
    """Storages with one place in the arena.

    Attributes:
        whole: The one within which all others lie.
        places: Where each begins, in bytes from the start of `whole`.
        start: When the first is allocated.
        end: When the last was used.
    """

    whole: Storage
    places: dict[Var, int]
    start: int
    end: int

    def piece(self) -> Piece:
        """What is asked of the arena."""
        dtype = self.whole.type.dtype
        assert dtype is not None
        return Piece(shape_of(self.whole.type), dtype.bytes, self.start, self.end)


class Groups:
    """Which group each storage is in; groups are joined and never parted."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._of = {s.var: Group(s, {s.var: 0}, s.start, s.end) for s in storages}

    def __contains__(self, var: Var) -> bool:
        return var in self._of

    def of(self, storage: Storage) -> Group:
        """A storage's group."""
        return self._of[storage.var]

    def all(self) -> list[Group]:
        """The groups, in the order of their storages."""
        return list(dict.fromkeys(self._of.values()))

    def put(self, part: Storage, within: Storage, offset: int) -> None:
        """Let a storage, with all of its group, lie in another from so many bytes on."""
        inner, outer = self.of(part), self.of(within)
        first = outer.places[within.var] + offset
        for var, place in inner.places.items():
            outer.places[var] = first + place
            self._of[var] = outer
        outer.start, outer.end = min(outer.start, inner.start), max(outer.end, inner.end)

    def may_put(self, part: Storage, within: Storage, offset: int) -> bool:
        """Whether that is possible: nothing of the part's group is outside of it."""
        inner, outer = self.of(part), self.of(within)
        if inner is outer or offset % ALIGNMENT:
            return False
        return inner.places[part.var] == 0 and _bytes(inner.whole) == _bytes(part)


def _bytes(storage: Storage) -> Dim:
    dtype = storage.type.dtype
    assert dtype is not None
    return product(shape_of(storage.type)) * dtype.bytes


def put_copies(groups: Groups, copies: Sequence[tuple[Storage, Storage, int]]) -> bool:
    """Let parts lie in wholes, all of them or none; whether that was done.

    Args:
        groups: Changed where it can be done.
        copies: Part, whole and the bytes before the part, as a kernel copies them.
    """
    parts = {part.var for part, _, _ in copies}
    inner = {id(groups.of(part)) for part, _, _ in copies}
    outer = {id(groups.of(whole)) for _, whole, _ in copies}
    if not copies or len(parts) < len(copies) or len(inner) < len(copies) or inner & outer:
        return False
    if not all(groups.may_put(*copy) for copy in copies):
        return False
    for copy in copies:
        groups.put(*copy)
    return True


def placed(groups: Sequence[Group], offsets: Sequence[Dim]) -> Mapping[Var, Dim]:
    """Where each storage begins in the arena, from where each group does."""
    return {
        var: offset if place == 0 else offset + place
        for group, offset in zip(groups, offsets, strict=True)
        for var, place in group.places.items()
    }
