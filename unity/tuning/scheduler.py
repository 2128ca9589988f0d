"""Which kernel is tuned next: the one whose next trials should save the most time of the whole.

After Ansor: what a kernel's last trials saved, and what it could save if it went on getting better
as it did from its beginning, each by how often the program calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .search import Search

_WINDOW = 24
"""Trials that count as the last ones."""
_TRUST = 0.3
"""How much the last trials count beside the hope."""
_PATIENCE = 96
"""Trials without a gain after which a kernel is left alone."""
_GAIN = 0.005
_SMALL = 0.01
"""A kernel that takes a smaller share of all is no sooner begun than others are gone on with."""


def next_search(searches: Sequence[Search]) -> Search | None:
    """The search to go on with; None where no kernel is worth another trial."""
    least = _SMALL * sum(s.seconds for s in searches)
    new = [s for s in searches if not s.proposed and not s.exhausted]
    fresh = [s for s in new if s.seconds >= least or not s.default_seconds]
    if fresh:
        return max(fresh, key=lambda s: s.seconds)
    open_ = [s for s in searches if not s.exhausted and not is_tired(s)]
    return max(open_, key=gain, default=None)


def gain(search: Search) -> float:
    """Seconds of the whole program that a trial more should save."""
    now, count = search.best_ratio, max(1, search.trials)
    before = search.history[-_WINDOW - 1] if len(search.history) > _WINDOW else 1.0
    lately = (before - now) / min(count, _WINDOW)
    hope = now / count
    whole = (search.default_seconds or 0.0) * search.task.count
    return whole * (_TRUST * lately + (1 - _TRUST) * hope)


def is_tired(search: Search) -> bool:
    """Whether a kernel's last trials gained next to nothing, also behind the default."""
    if search.trials < _PATIENCE:
        return False
    gained = search.measured[-_PATIENCE] - search.measured[-1]
    return not gained >= _GAIN  # also where nothing runs at all: infinite times
