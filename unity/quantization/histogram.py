"""How often a tensor's values are where, and the range for 8 bits that loses least of that.

The range is found by the divergence of what was observed from what 256 levels keep of it (Migacz,
8-bit inference with TensorRT, 2017): few values far out cost less than coarse steps for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import Array

BINS = 1 << 13
"""On each side of 0."""
LEVELS = 256
"""What 8 bits hold."""
_RATIO = 2 ** (1 / 16)
"""Of ranges that are tried, one to the next."""
_SMOOTH = 1e-4
"""What bins without values count as, of a value."""
_Counts = npt.NDArray[np.float64]


@dataclass(slots=True)
class Histogram:
    """Counts in bins on both sides of 0, which grow wider as values beyond them come.

    Zeros are not counted: each range tells them exactly, and after a ReLU they are half of all.

    Attributes:
        count: How many values were looked at.
        low: The least of them, or 0.
        high: The largest, or 0.
        width: Of a bin; 0 as long as all values were 0.
        counts: ``[2 * BINS]``, from the left.
    """

    count: int = 0
    low: float = 0.0
    high: float = 0.0
    width: float = 0.0
    counts: _Counts = field(default_factory=lambda: np.zeros(2 * BINS))

    def add(self, values: Array, *, counts: bool = True) -> None:
        """Look at values; with `counts`, count them."""
        if not values.size:
            return
        self.count += values.size
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        most = max(-self.low, self.high)
        if not most or not counts:
            return
        if not self.width:
            self.width = most / BINS
        while self.width * BINS < most:
            self.widen()
        some = values[values != 0].astype(np.float64)
        at = np.floor(some / self.width).astype(np.int64) + BINS
        np.clip(at, 0, 2 * BINS - 1, out=at)
        self.counts += np.bincount(at, minlength=2 * BINS)

    def widen(self) -> None:
        """Make bins twice as wide."""
        pairs = self.counts.reshape(-1, 2).sum(1)
        self.counts = np.zeros(2 * BINS)
        self.counts[BINS // 2 : BINS // 2 + BINS] = pairs
        self.width *= 2

    def range_by_entropy(self) -> tuple[float, float]:
        """The range, within what was observed, whose levels tell most of the values."""
        if not self.width:
            return self.low, self.high
        first = BINS + int(np.floor(self.low / self.width))
        last = BINS + int(np.ceil(self.high / self.width))
        first, last = max(first, 0), min(last, 2 * BINS)
        best, found = np.inf, (self.low, self.high)
        tried = np.arange(np.log(BINS * 2 / LEVELS) / np.log(_RATIO) + 1)
        for side in np.rint(LEVELS // 2 * _RATIO**tried).astype(int).tolist():
            begin, end = max(BINS - side, first), min(BINS + side, last)
            if end - begin < LEVELS:
                continue
            loss = _divergence(self.counts, begin, end)
            if loss < best:
                best = loss
                limit = side * self.width
                found = max(self.low, -limit), min(self.high, limit)
        return found


def _divergence(counts: _Counts, begin: int, end: int) -> float:
    """How far the counts are from what levels over the bins from `begin` to `end` keep of them."""
    inner = counts[begin:end]
    observed = inner.copy()
    observed[0] += counts[:begin].sum()
    observed[-1] += counts[end:].sum()
    starts = np.linspace(0, end - begin, LEVELS, endpoint=False).astype(np.int64)
    held = inner > 0
    sums, filled = np.add.reduceat(inner, starts), np.add.reduceat(held.astype(np.float64), starts)
    means = np.divide(sums, filled, out=np.zeros_like(sums), where=filled > 0)
    lengths = np.diff(np.append(starts, end - begin))
    kept = np.where(held, np.repeat(means, lengths), 0.0)
    p, q = (np.where(x > 0, x, _SMOOTH) for x in (observed, kept))
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())
