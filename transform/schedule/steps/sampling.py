"""Steps that leave a choice open: drawn at random, recorded as a decision."""

from __future__ import annotations

from collections.abc import Sequence

from .. import primitives as p
from ..arguments import step
from ..refs import AnyBlock, Decision, LoopRef
from ..state import State, as_ref, name_of


class SamplingSteps(State):
    """Steps that leave a choice open."""

    @step
    def sample_perfect_tile(
        self, loop: LoopRef, parts: int, limit: int = 16, *, decision: Sequence[int] | None = None
    ) -> tuple[Decision, ...]:
        """Factors of a loop's extent, the innermost at most `limit`."""
        drawn = decision
        if drawn is not None:
            p.check_perfect_tile(self.func, self._var(loop), parts, limit, drawn)
        else:
            drawn = p.sample_perfect_tile(self.func, self._var(loop), parts, limit, self._random)
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
        args = (loop, parts, place, inner_factor)
        var, drawn = self._var(loop), decision
        if drawn is not None:
            p.check_partitioned_tile(self.func, var, parts, place, inner_factor, drawn)
        else:
            drawn = p.sample_partitioned_tile(
                self.func, var, parts, place, inner_factor, self._random
            )
        return self._note("sample_partitioned_tile", args, self._decisions(drawn), list(drawn))

    @step
    def sample_categorical(
        self, candidates: Sequence[int], weights: Sequence[float], *, decision: int | None = None
    ) -> Decision:
        """One of several numbers; the decision is its index."""
        k = p.sample_categorical(candidates, weights, self._random)
        if decision is not None:
            p.check_decision("sample_categorical", decision, range(len(candidates)))
            k = decision
        (made,) = self._decisions([candidates[k]])
        return self._note_one("sample_categorical", (candidates, weights), made, k)

    @step
    def sample_compute_location(
        self, block: AnyBlock, *, decision: int | None = None
    ) -> LoopRef | None:
        """A loop that `compute_at` takes the block to, or None to leave it; -1 decides that."""
        found = p.compute_locations(self.func, name_of(block))
        k = self._random.randrange(-1, len(found))
        if decision is not None:
            p.check_decision("sample_compute_location", decision, range(-1, len(found)))
            k = decision
        args = (as_ref(block),)
        if k < 0:
            self._note("sample_compute_location", args, (), k)
            return None
        return self._note_one("sample_compute_location", args, self._ref(found[k]), k)
