"""Where in one arena each piece of storage goes: greedy packing, sizes symbolic or not.

Sizes that are multiples of the same symbolic factor (``512 * n``, ``64 * n``) compare like
numbers, so each factor has a region of the arena that is packed by the multiples alone. The arena's
size is a formula, and so is every offset. Where factors are many, as in a network that halves its
images again and again, regions hold much that is not in use: pieces are stacked then, whatever
their factors (`_stacked`).

Every offset is aligned, whatever the symbols' values. If all multiples are rounded up to whole
cache lines, offsets are plain products; where that would cost much (``16 * n`` bytes would take
``64 * n``), the multiples stay exact and offsets are rounded instead: a few cache lines more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import gcd

from unity.ir.arrays.aligned import LINE
from unity.ir.dims import (
    Dim,
    as_dim,
    ceildiv,
    dim_max,
    dim_text,
    divisor,
    evaluate,
    product,
    symbols_of,
)
from unity.ir.symbols.representative import of_symbol, representative

ALIGNMENT = LINE
"""Every offset is a multiple of this many bytes, a cache line."""

ROUNDING = 1 / 16
"""Offsets are plain products as long as that costs no more than this part of the memory."""

GAIN = 1 / 16
"""Offsets are maxima where that saves at least this part of the memory for sizes that are typical,
and costs no more than this where one of them is `FAR` times as large."""

FAR = 16
"""What is so many times what is typical is large."""

LONGEST = 64
"""Maxima in the formula of an offset, at most: each is computed when a function starts."""


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
    """A piece as the packer sees it: a number of bytes and an interval of time."""

    size: int
    start: int
    end: int

    def meets(self, other: _Span) -> bool:
        """Whether both are in use at once."""
        return self.start <= other.end and other.start <= self.end


@dataclass(slots=True)
class _Timeline:
    """What is in use when: those that meet a piece are found without a look at all others."""

    spans: Sequence[_Span]
    at: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    all: list[int] = field(default_factory=list[int])

    def add(self, index: int) -> None:
        """Put in one of the spans."""
        span = self.spans[index]
        self.all.append(index)
        for step in range(span.start, span.end + 1):
            self.at.setdefault(step, []).append(index)

    def meeting(self, span: _Span) -> Collection[int]:
        """Those put in that are in use at once with one."""
        if span.end - span.start >= len(self.all):
            return [i for i in self.all if self.spans[i].meets(span)]
        steps = range(span.start, span.end + 1)
        return {i for step in steps for i in self.at.get(step, ())}


def pack(pieces: Sequence[Piece]) -> Packing:
    """Offsets such that pieces in use at one time do not overlap, whatever the symbols' values.

    >>> from unity.ir.dims import dim
    >>> n = dim("n")
    >>> pack([Piece((n, 16), 4, 0, 1), Piece((n, 32), 4, 1, 2), Piece((n, 16), 4, 2, 3)])
    Packing(size=192*n, offsets=(128*n, 0, 128*n))
    """
    return _in_regions(pieces, [_factors(p) for p in pieces])


def pack_tightly(pieces: Sequence[Piece]) -> Packing:
    """As `pack` does, or across factors where that takes less memory for sizes that are typical.

    Offsets are formulas with maxima then, which take their time to make: this is for the plan that
    is chosen.

    >>> from unity.ir.dims import dim
    >>> n, m = dim("n"), dim("m")
    >>> pieces = [Piece((n, 16), 4, 0, 1), Piece((n, 16), 4, 1, 2), Piece((m, 16), 4, 2, 3)]
    >>> [dim_text(pack(pieces).size), dim_text(pack_tightly(pieces).size)]
    ['m * 64 + n * 128', 'n * 64 + max(m * 64, n * 64)']
    """
    keys = [_factors(p) for p in pieces]
    regions = _in_regions(pieces, keys)
    return regions if len(set(keys)) < 2 else _stacked(pieces, keys, regions.size) or regions


def _factors(piece: Piece) -> tuple[str, ...]:
    """What is symbolic of a piece's size: others with the same compare like numbers."""
    return tuple(sorted(dim_text(d) for d in piece.dims if not isinstance(d, int)))


def _in_regions(pieces: Sequence[Piece], keys: Sequence[tuple[str, ...]]) -> Packing:
    """Each class of sizes in a region of its own."""
    classes: dict[tuple[str, ...], list[int]] = {}
    for i, key in enumerate(keys):
        classes.setdefault(key, []).append(i)
    offsets: list[Dim] = [0] * len(pieces)
    total: Dim = 0
    for members in classes.values():
        factor = product(d for d in pieces[members[0]].dims if not isinstance(d, int))
        region = _region([pieces[i] for i in members], factor)
        for i, offset in zip(members, region.offsets, strict=True):
            offsets[i] = as_dim(total + offset)
        total = as_dim(total + region.size)
    return Packing(total, tuple(offsets))


def _stacked(
    pieces: Sequence[Piece], keys: Sequence[tuple[str, ...]], regions: Dim
) -> Packing | None:
    """Pieces above each other as they lie where sizes are typical.

    Each begins where the last ends of those that lie below it and are in use at once with it: a
    maximum, so that no two overlap whatever sizes are.

    Returns:
        None where formulas grow long, or hardly less than `regions` is gained.
    """
    sizes = [_aligned(product(p.dims) * p.item) for p in pieces]
    spans = [_Span(representative(s), p.start, p.end) for s, p in zip(sizes, pieces, strict=True)]
    least, places = _best(spans)
    if least >= representative(regions) * (1 - GAIN):
        return None
    multiples = [_span(p, 1).size for p in pieces]
    offsets: list[Dim] = [0] * len(pieces)
    lengths = [0] * len(pieces)  # how many maxima the formula of an offset holds
    placed, below, tops = _Timeline(spans), dict[int, set[int]](), set[int]()

    def above(those: Collection[int]) -> tuple[Dim, int]:
        """The end of the last of some pieces, and how many maxima its formula holds."""
        last: dict[tuple[Dim, tuple[str, ...]], int] = {}
        for j in sorted(those, key=lambda j: multiples[j]):
            last[offsets[j], keys[j]] = j  # of a class the largest, where they begin at one place
        ends: list[Dim] = [0, *(offsets[j] + sizes[j] for j in last.values())]
        length = sum(lengths[j] for j in last.values()) + max(0, len(last) - 1)
        return reduce(dim_max, ends), length

    for i in sorted(range(len(pieces)), key=lambda i: (places[i], i)):
        met = set(placed.meeting(spans[i]))
        direct = {j for j in met if not any(j in below[k] for k in met)}
        offsets[i], lengths[i] = above(direct)
        if lengths[i] > LONGEST:
            return None
        below[i] = met
        tops = tops - met | {i}
        placed.add(i)
    size, length = above(tops)
    if length > LONGEST or not _stays_within(size, regions):
        return None
    return Packing(size, tuple(offsets))


def _stays_within(size: Dim, regions: Dim) -> bool:
    """Whether a size is hardly larger than that of regions, if at all, where a symbol is large."""
    typical = {s: of_symbol(s) for s in symbols_of(size, regions)}
    for symbol, value in typical.items():
        facts = symbol.facts
        large = FAR * max(value, 1) if facts.max is None else min(FAR * max(value, 1), facts.max)
        values = {**typical, symbol: large // facts.multiple_of * facts.multiple_of}
        if evaluate(size, values) > evaluate(regions, values) * (1 + GAIN):
            return False
    return True


def _region(pieces: Sequence[Piece], factor: Dim) -> Packing:
    """The packing of pieces whose sizes are multiples of one factor."""
    unit = ALIGNMENT // gcd(ALIGNMENT, divisor(factor))  # multiples of it are aligned
    size, places = _best([_span(p, unit) for p in pieces])
    plain = Packing(size * factor, tuple(place * factor for place in places))
    if unit == 1 or isinstance(factor, int):
        return plain
    exact = [_span(p, 1) for p in pieces]
    least, tight = _best(exact)
    return plain if size <= least * (1 + ROUNDING) else _rounded(exact, least, tight, factor, unit)


def _rounded(
    spans: Sequence[_Span], top: int, places: Sequence[int], factor: Dim, unit: int
) -> Packing:
    """Offsets rounded up; each rounding moves what lies above by less than a cache line."""
    lines = [0] * len(spans)  # by how many whole lines a piece moves up for those below
    placed = _Timeline(spans)
    for i in sorted(range(len(spans)), key=lambda i: places[i]):
        below = (lines[j] + (places[j] % unit != 0) for j in placed.meeting(spans[i]))
        lines[i] = max(below, default=0)
        placed.add(i)
    most = max(moved + (place % unit != 0) for moved, place in zip(lines, places, strict=True))
    offsets = (
        _aligned(place * factor) + moved * ALIGNMENT
        for place, moved in zip(places, lines, strict=True)
    )
    return Packing(_aligned(top * factor) + most * ALIGNMENT, tuple(offsets))


def _aligned(size: Dim) -> Dim:
    return size if divisor(size) % ALIGNMENT == 0 else ceildiv(size, ALIGNMENT) * ALIGNMENT


def _span(piece: Piece, unit: int) -> _Span:
    """The bytes of a piece per unit of its factor, rounded up to multiples of `unit`."""
    count = piece.item
    for d in piece.dims:
        if isinstance(d, int):
            count *= d
    return _Span(-(-count // unit) * unit, piece.start, piece.end)


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
    placed = _Timeline(spans)
    top = 0
    for i in order:
        span, free, best, room = spans[i], 0, None, None
        for offset, other in sorted((places[j], j) for j in placed.meeting(span)):
            gap = offset - free
            if gap >= span.size and (room is None or gap < room):
                best, room = free, gap
            free = max(free, offset + spans[other].size)
        places[i] = free if best is None else best
        top = max(top, places[i] + span.size)
        placed.add(i)
    return top, places
