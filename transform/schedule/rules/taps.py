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

from ..loops import number, sequence
from ..nest import Axis
from ..padding import Edge, tap_range
from ..tile import Values

Place: TypeAlias = dict[PrimVar, int]
"""The values of some axes."""
Seen: TypeAlias = "frozenset[int] | tuple[Seen, ...]"
"""Which pixels see something; for each value of a tap, where that depends on it."""
Step: TypeAlias = Callable[[Values, frozenset[int]], Stmt]
"""A step of the reduction: from the taps' values and the pixels that take part."""


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
        taps = [a for a in self.axes if self._edges(a, inside=True)]
        return self._seen(taps, frozenset(range(len(pixels))), pixels)

    def _edges(self, axis: Axis, *, inside: bool) -> list[Edge]:
        return [e for e in self.edges if e.tap is axis.var and (e.axis in self.inside) == inside]

    def _seen(self, taps: Sequence[Axis], some: frozenset[int], pixels: Sequence[Place]) -> Seen:
        if not taps:
            return some
        edges, extent = self._edges(taps[0], inside=True), number(taps[0].extent)
        assert extent is not None

        def of(tap: int) -> frozenset[int]:
            return frozenset(p for p in some if all(e.holds(pixels[p][e.axis], tap) for e in edges))

        return tuple(self._seen(taps[1:], of(t), pixels) for t in range(extent))

    def loops(self, seen: Seen, at: Values, step: Step) -> Stmt:
        """The loops over all taps.

        Args:
            seen: What the tile's pixels see.
            at: The values of the axes outside the tile.
            step: One step.
        """
        return self._loops(self.axes, seen, at, {}, step)

    def _loops(
        self,
        axes: Sequence[Axis],
        seen: Seen,
        at: Values,
        taps: Values,
        step: Step,
    ) -> Stmt:
        if not axes:
            assert isinstance(seen, frozenset)
            return step(taps, seen)
        axis, rest = axes[0], axes[1:]
        if self._edges(axis, inside=True):
            assert isinstance(seen, tuple)
            parts = [
                self._loop(axis, rest, imm(begin), imm(count), seen[begin], at, taps, step)
                for begin, count in _runs(seen)
            ]
            return sequence(parts) if parts else Seq(())
        begin, extent = tap_range(self._edges(axis, inside=False), axis, at)
        return self._loop(axis, rest, simplify(begin), simplify(extent), seen, at, taps, step)

    def _loop(
        self,
        axis: Axis,
        rest: Sequence[Axis],
        begin: PrimExpr,
        extent: PrimExpr,
        seen: Seen,
        at: Values,
        taps: Values,
        step: Step,
    ) -> Stmt:
        known = number(extent)
        if known == 1:
            return self._loops(rest, seen, at, {**taps, axis.var: begin}, step)
        if rest or self.unroll == 1 or known is None:
            var = PrimVar(axis.var.name)
            body = self._loops(rest, seen, at, {**taps, axis.var: var}, step)
            return For(var, begin, extent, body)
        count = max(u for u in range(1, self.unroll + 1) if known % u == 0)
        outer, unrolled = PrimVar(axis.var.name), PrimVar(f"{axis.var.name}_step")
        # Marked, not written out: the passes in between see one step, not all of them.
        index = add(add(begin, multiply(outer, imm(count))), unrolled)
        body = self._loops(rest, seen, at, {**taps, axis.var: index}, step)
        inner = For(unrolled, imm(0), imm(count), body, "unrolled")
        return For(outer, imm(0), imm(known // count), inner)


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
