"""Integer intervals with open ends: what is known of a value without its variables."""

from __future__ import annotations

from typing import TypeAlias

Interval: TypeAlias = tuple[int | None, int | None]
"""Inclusive bounds; None is no limit."""
ANYTHING: Interval = (None, None)


def add(a: Interval, b: Interval) -> Interval:
    """The sums."""
    return (
        None if a[0] is None or b[0] is None else a[0] + b[0],
        None if a[1] is None or b[1] is None else a[1] + b[1],
    )


def scale(a: Interval, factor: int) -> Interval:
    """The multiples."""
    low = None if a[0] is None else a[0] * factor
    high = None if a[1] is None else a[1] * factor
    return (low, high) if factor >= 0 else (high, low)


def multiply(a: Interval, b: Interval) -> Interval:
    """The products."""
    (al, ah), (bl, bh) = a, b
    if al is not None and al >= 0 and bl is not None and bl >= 0:
        return al * bl, (None if ah is None or bh is None else ah * bh)
    if al is None or ah is None or bl is None or bh is None:
        if al is not None and al == ah:
            return scale(b, al)
        if bl is not None and bl == bh:
            return scale(a, bl)
        return ANYTHING
    corners = (al * bl, al * bh, ah * bl, ah * bh)
    return min(corners), max(corners)


def floordiv(a: Interval, b: Interval) -> Interval:
    """The quotients by a positive divisor (zero is never divided by)."""
    low, high = a
    small, large = b
    if small is None or small < 0:
        return ANYTHING
    small = max(small, 1)
    large = None if large is None else max(large, small)
    if low is not None:
        low = low // small if low < 0 else (0 if large is None else low // large)
    if high is not None:
        high = high // small if high >= 0 else (-1 if large is None else high // large)
    return low, high


def floormod(a: Interval, b: Interval) -> Interval:
    """The rests by a positive divisor."""
    low, high = a
    small, large = b
    if small is None or small < 0:
        return ANYTHING
    top = None if large is None else max(large, 1) - 1
    if low is not None and low >= 0 and high is not None:
        if high < max(small, 1):
            return low, high
        top = high if top is None else min(top, high)
    return 0, top


def minimum(a: Interval, b: Interval) -> Interval:
    """The smaller ones of two."""
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    highs = [h for h in (a[1], b[1]) if h is not None]
    return low, min(highs, default=None)


def maximum(a: Interval, b: Interval) -> Interval:
    """The larger ones of two."""
    lows = [x for x in (a[0], b[0]) if x is not None]
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max(lows, default=None), high


def union(a: Interval, b: Interval) -> Interval:
    """What holds both."""
    return (
        None if a[0] is None or b[0] is None else min(a[0], b[0]),
        None if a[1] is None or b[1] is None else max(a[1], b[1]),
    )
