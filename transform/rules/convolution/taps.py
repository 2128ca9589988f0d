"""What a tile adds up: loops over taps, cut where pixels at a border see nothing of a tap.

Pixels of a tile lie at known places, so which of them a tap reads is known: taps that the same
pixels see are one loop, and a tile in the middle of a line has one loop for all of them. Where a
condition is about an axis outside the tile, the loop's bounds are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.arith import simplify
from unity.ir.prim_expr import PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, Seq, Stmt

from ...blocks.extents import number
from ...blocks.nest import Axis
from ...blocks.tree import sequence
from ...roles.padding import Edge, tap_range
from ...tactics.register_tile import Values

Place: TypeAlias = dict[PrimVar, int]
"""The values of some axes."""
Seen: TypeAlias = "frozenset[int] | tuple[Seen, ...]"
"""Which pixels see something; for each value of a tap, where that depends on it."""
Step: TypeAlias = Callable[[Values, frozenset[int]], Stmt]
"""A step of the reduction: from the taps' values and the pixels that take part."""
Ahead: TypeAlias = Callable[[Values, int], Stmt]
"""What goes before steps in a row: from the taps' values at the first of them, and their number."""


@dataclass(frozen=True, slots=True)
class Taps:
    """The reduced axes of a stage, and its edges.

    Attributes:
        axes: The reduced axes, outermost first.
        edges: Where elements are.
        inside: The axes along a tile.
        unroll: Steps of the innermost axis in a row.
    """

    axes: tuple[Axis, ...]
    edges: tuple[Edge, ...]
    inside: frozenset[PrimVar]
    unroll: int

    def seen(self, pixels: Sequence[Place]) -> Seen:
        """What tells tiles apart that need different code."""
        taps = [a for a in self.axes if self.edges_of(a, inside=True)]
        return self._seen(taps, frozenset(range(len(pixels))), pixels)

    def edges_of(self, axis: Axis, *, inside: bool) -> list[Edge]:
        """The edges of a tap whose other axis is along the tile, or is not."""
        return [e for e in self.edges if e.tap is axis.var and (e.axis in self.inside) == inside]

    def _seen(self, taps: Sequence[Axis], some: frozenset[int], pixels: Sequence[Place]) -> Seen:
        if not taps:
            return some
        edges, extent = self.edges_of(taps[0], inside=True), number(taps[0].extent)
        assert extent is not None

        def of(tap: int) -> frozenset[int]:
            return frozenset(p for p in some if all(e.holds(pixels[p][e.axis], tap) for e in edges))

        return tuple(self._seen(taps[1:], of(t), pixels) for t in range(extent))

    def loops(self, seen: Seen, at: Values, step: Step, ahead: Ahead | None = None) -> Stmt:
        """The loops over all taps.

        Args:
            seen: What the tile's pixels see.
            at: The values of the axes outside the tile.
            step: One step.
            ahead: What goes before each few steps.
        """
        return _Loops(self, at, step, ahead).over(self.axes, seen, {})


@dataclass(frozen=True, slots=True)
class _Loops:
    """Carries what all loops of a tile have in common."""

    taps: Taps
    at: Values
    step: Step
    ahead: Ahead | None

    def over(self, axes: Sequence[Axis], seen: Seen, values: Values) -> Stmt:
        """The loops over some axes, at values of those around."""
        if not axes:
            assert isinstance(seen, frozenset)
            return self.step(values, seen)
        axis = axes[0]
        if self.taps.edges_of(axis, inside=True):
            assert isinstance(seen, tuple)
            parts = [
                self._loop(axes, imm(begin), imm(count), seen[begin], values)
                for begin, count in _runs(seen)
            ]
            return sequence(parts) if parts else Seq(())
        begin, extent = tap_range(self.taps.edges_of(axis, inside=False), axis, self.at)
        return self._loop(axes, simplify(begin), simplify(extent), seen, values)

    def _loop(
        self,
        axes: Sequence[Axis],
        begin: PrimExpr,
        extent: PrimExpr,
        seen: Seen,
        values: Values,
    ) -> Stmt:
        axis, *rest = axes
        known, unroll = number(extent), self.taps.unroll
        if known == 1:
            return self.over(rest, seen, {**values, axis.var: begin})
        if rest or unroll == 1 or known is None:
            var = PrimVar(axis.var.name)
            return For(var, begin, extent, self.over(rest, seen, {**values, axis.var: var}))
        count = max(u for u in range(1, unroll + 1) if known % u == 0)
        outer, unrolled = PrimVar(axis.var.name), PrimVar(f"{axis.var.name}_step")
        first = add(begin, multiply(outer, imm(count)))
        # Marked, not written out: the passes in between see one step, not all of them.
        body = self.over(rest, seen, {**values, axis.var: add(first, unrolled)})
        steps: Stmt = For(unrolled, imm(0), imm(count), body, "unrolled")
        if self.ahead is not None:
            steps = Seq((self.ahead({**values, axis.var: first}, count), steps))
        return For(outer, imm(0), imm(known // count), steps)


def _runs(seen: tuple[Seen, ...]) -> list[tuple[int, int]]:
    """Where taps begin that the same pixels see, and how many they are; none that no pixel sees."""
    runs: list[tuple[int, int]] = []
    for tap, some in enumerate(seen):
        if not _any(some):
            continue
        if runs and sum(runs[-1]) == tap and seen[runs[-1][0]] == some:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((tap, 1))
    return runs


def _any(seen: Seen) -> bool:
    return bool(seen) if isinstance(seen, frozenset) else any(_any(s) for s in seen)
