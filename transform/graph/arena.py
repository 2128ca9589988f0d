"""Where in one arena each piece of storage goes: greedy packing, sizes symbolic or not.

Sizes that are multiples of the same symbolic factor (``512 * n``, ``64 * n``) compare like
numbers, so each factor has a region of the arena that is packed by the multiples alone. The arena's
size is a formula, and so is every offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity.ir.dims import Dim, as_dim, dim_text, product

ALIGNMENT = 64
"""Every offset is a multiple of this many bytes, a cache line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Storage wanted: the dims times the element's bytes, while positions start .. end."""

    dims: tuple[Dim, ...]
    item: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Packing:
    """The arena's size in bytes and the offset of each piece."""

    size: Dim
    offsets: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece as the packer sees it: a number of bytes and a stretch of time."""

    size: int
    start: int
    end: int

    def meets(self, other: _Span) -> bool:
        """Whether both are in use at once."""
        return self.start <= other.end and other.start <= self.end


def pack(pieces: Sequence[Piece]) -> Packing:
    """Offsets such that pieces in use at one time do not overlap, whatever the symbols' values.

    >>> from unity.ir.dims import dim
    >>> n = dim("n")
    >>> pack([Piece((n, 16), 4, 0, 1), Piece((n, 32), 4, 1, 2), Piece((n, 16), 4, 2, 3)])
    Packing(size=192*n, offsets=(128*n, 0, 128*n))
    """
    classes: dict[tuple[str, ...], list[int]] = {}
    factors: dict[tuple[str, ...], Dim] = {}
    for i, piece in enumerate(pieces):
        symbolic = sorted((dim_text(d), d) for d in piece.dims if not isinstance(d, int))
        key = tuple(text for text, _ in symbolic)
        classes.setdefault(key, []).append(i)
        factors[key] = product(d for _, d in symbolic)
    offsets: list[Dim] = [0] * len(pieces)
    total: Dim = 0
    for key, members in classes.items():
        size, places = _best([_span(pieces[i]) for i in members])
        for i, place in zip(members, places, strict=True):
            offsets[i] = as_dim(total + place * factors[key])
        total = as_dim(total + size * factors[key])
    return Packing(total, tuple(offsets))


def _span(piece: Piece) -> _Span:
    count = piece.item
    for d in piece.dims:
        if isinstance(d, int):
            count *= d
    return _Span(-(-count // ALIGNMENT) * ALIGNMENT, piece.start, piece.end)


_ORDERS: tuple[Callable[[_Span], tuple[int, ...]], ...] = (
    lambda s: (-s.size, s.start),
    lambda s: (-s.size * (s.end - s.start + 1), s.start),
    lambda s: (s.start, -s.size),
    lambda s: (s.start - s.end, -s.size),
    lambda s: (s.end, -s.size),
)


def _best(spans: Sequence[_Span]) -> tuple[int, list[int]]:
    """The smallest of several greedy packings; the first that needs no more than is ever in use."""
    least = _most_in_use(spans)
    best: tuple[int, list[int]] | None = None
    for order in _ORDERS:
        found = _greedy(spans, sorted(range(len(spans)), key=lambda i: order(spans[i])))
        if best is None or found[0] < best[0]:
            best = found
        if best[0] == least:
            break
    assert best is not None
    return best


def _most_in_use(spans: Sequence[_Span]) -> int:
    events = sorted(
        event for s in spans for event in ((s.start, 1, s.size), (s.end + 1, 0, -s.size))
    )
    most = now = 0
    for _, _, change in events:
        now += change
        most = max(most, now)
    return most


def _greedy(spans: Sequence[_Span], order: Sequence[int]) -> tuple[int, list[int]]:
    """Each in turn goes into the smallest gap that holds it, else on top of its neighbours."""
    places = [0] * len(spans)
    placed: list[tuple[int, int]] = []  # (offset, index), in order of offset
    top = 0
    for i in order:
        span, free, best, room = spans[i], 0, None, None
        for offset, other in placed:
            if not spans[other].meets(span):
                continue
            gap = offset - free
            if gap >= span.size and (room is None or gap < room):
                best, room = free, gap
            free = max(free, offset + spans[other].size)
        places[i] = free if best is None else best
        top = max(top, places[i] + span.size)
        placed.append((places[i], i))
        placed.sort()
    return top, places
