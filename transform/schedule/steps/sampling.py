"""Steps that leave a choice open: drawn at random, recorded as a decision.

What they draw may be given ahead (`Schedule(decisions=...)`), which is how a search runs a program
of steps again with one choice changed; what it says by `decision=` comes before that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from unity.errors import UnityError

from .. import primitives as p
from ..arguments import step
from ..refs import AnyBlock, Decision, LoopRef
from ..state import State, as_ref, name_of
from ..trace import Json


class SamplingSteps(State):
    """Steps that leave a choice open."""

    @step
    def sample_perfect_tile(
        self, loop: LoopRef, parts: int, limit: int = 16, *, decision: Sequence[int] | None = None
    ) -> tuple[Decision, ...]:
        """Factors of a loop's extent, the innermost at most `limit`."""
        var = self._var(loop)
        check = partial(p.check_perfect_tile, self.func, var, parts, limit)
        drawn = self._factors(decision, check)
        if drawn is None:
            drawn = p.sample_perfect_tile(self.func, var, parts, limit, self._random)
        made = self._decisions(drawn)
        return self._note("sample_perfect_tile", (loop, parts, limit), made, list(drawn))

    @step
    def sample_partitioned_tile(
        self,
        loop: LoopRef,
        parts: int,
        place: int = 0,
        inner_factor: int = 1,
        *,
        decision: Sequence[int] | None = None,
    ) -> tuple[Decision, ...]:
        """Factors of a loop's extent, those from a place on a multiple of a number together."""
        args, var = (loop, parts, place, inner_factor), self._var(loop)
        given = (parts, place, inner_factor)
        drawn = self._factors(decision, partial(p.check_partitioned_tile, self.func, var, *given))
        if drawn is None:
            drawn = p.sample_partitioned_tile(self.func, var, *given, self._random)
        return self._note("sample_partitioned_tile", args, self._decisions(drawn), list(drawn))

    @step
    def sample_categorical(
        self, candidates: Sequence[int], weights: Sequence[float], *, decision: int | None = None
    ) -> Decision:
        """One of several numbers; the decision is its index."""
        k = p.sample_categorical(candidates, weights, self._random)
        k = self._index("sample_categorical", decision, range(len(candidates)), k)
        (made,) = self._decisions([candidates[k]])
        return self._note_one("sample_categorical", (candidates, weights), made, k)

    @step
    def sample_compute_location(
        self, block: AnyBlock, *, decision: int | None = None
    ) -> LoopRef | None:
        """A loop that `compute_at` takes the block to, or None to leave it; -1 decides that."""
        found = p.compute_locations(self.func, name_of(block))
        places = range(-1, len(found))
        k = self._random.randrange(-1, len(found))
        k = self._index("sample_compute_location", decision, places, k)
        args = (as_ref(block),)
        if k < 0:
            self._note("sample_compute_location", args, (), k)
            return None
        return self._note_one("sample_compute_location", args, self._ref(found[k]), k)

    def _factors(
        self, decision: Sequence[int] | None, check: Callable[[Sequence[int]], None]
    ) -> Sequence[int] | None:
        """What is decided of factors; None where they are drawn."""
        if decision is not None:
            check(decision)
            return decision
        given = self._next(lambda v: _passes(check, v))
        return None if given is None else _numbers(given)

    def _index(self, name: str, decision: int | None, legal: range, drawn: int) -> int:
        """What is decided of an index, or else was drawn."""
        if decision is not None:
            p.check_decision(name, decision, legal)
            return decision
        given = self._next(lambda v: isinstance(v, int) and v in legal)
        return given if isinstance(given, int) else drawn


def _numbers(value: Json) -> Sequence[int] | None:
    """A list of numbers; None where it is something else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    found = [v for v in value if isinstance(v, int)]
    return found if len(found) == len(value) else None


def _passes(check: Callable[[Sequence[int]], None], value: Json) -> bool:
    numbers = _numbers(value)
    if numbers is None:
        return False
    try:
        check(numbers)
    except UnityError:
        return False
    return True
