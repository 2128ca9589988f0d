"""What leaves move through the levels of memory: bytes that come into each cache, and how.

A cache holds what is touched while outer loops stand still, as far as it fits; lines that lie a
multiple of a page apart share sets of the first two, which then hold fewer. What comes in order is
fetched ahead; where each few bytes lie in another page, it is waited for. The cycles of that were
chosen by how candidates of 17 operators rank (`tests.bench.tuning`; AMD Zen 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from unity.ir.arrays.aligned import LINE
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Buffer
from unity.machine.target import Target

from .leaves import Access, Leaf

_SCATTERED_MISS, _MISS = 8.0, 1.5
"""Cycles of a line from the second cache: of one that a lane loads for itself, of one in order;
several are under way."""
_FAR_JUMP = 12.0
"""Cycles until what lies in another page is there, from behind the second cache."""
_LAST_LEVEL = 2
"""How many times as many bytes a cycle come from the last cache as from behind it."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a leaf moves.

    Attributes:
        traffic: Bytes into the first, the second and the last cache.
        jumps: How often what comes into the second one is somewhere else.
        misses: Lines of the first cache that are fetched for each touch: too many share a set.
        cycles: What the bytes take.
        waits: Cycles that jumps and misses take.
    """

    traffic: tuple[float, float, float]
    jumps: float
    misses: float
    cycles: float
    waits: float


class Memory:
    """Carries what each leaf touches while its outer loops stand still.

    What leaves before it touched in the same iterations, as far as it all fits, lies in a cache;
    what the kernel touches in all, if it fits, was there before it began.

    Args:
        found: The leaves, in order.
        target: The machine.
    """

    def __init__(self, found: Sequence[Leaf], target: Target) -> None:
        self._leaves, self._target = found, target
        self._touched = [_touched(leaf, target) for leaf in found]
        self._below: dict[tuple[PrimVar, ...], list[int]] = {}
        for k, leaf in enumerate(found):
            for depth in range(len(leaf.loops) + 1):
                self._below.setdefault(_vars(leaf, depth), []).append(k)
        whole: dict[Buffer, float] = {}
        for touched in self._touched:
            for buffer, (size, _) in touched[0].items():
                whole[buffer] = max(size, whole.get(buffer, 0.0))
        self.bytes = sum(whole.values())

    def moved(self, k: int) -> Moved:
        """What a leaf moves."""
        leaf, target = self._leaves[k], self._target
        machine = target.machine
        first = self._fetched(k, target.l1_bytes)
        second = self._fetched(k, target.l2_bytes) if self.bytes > target.l2_bytes else {}
        last = self._fetched(k, target.l3_bytes) if self.bytes > target.l3_bytes else {}
        traffic = (sum(first.values()), sum(second.values()), sum(last.values()))
        runs = {a.buffer: _run(a, leaf, target) for a in leaf.accesses if a.buffer in second}
        jumps = sum(size / runs[b] for b, size in second.items())
        missed = [_missed(a, leaf, target) for a in dict.fromkeys(leaf.accesses)]
        cycles = max(
            traffic[0] / machine.l2_bytes_per_cycle,
            traffic[1] / (_LAST_LEVEL * machine.memory_bytes_per_cycle),
            traffic[2] / machine.memory_bytes_per_cycle,
        )
        waits = _FAR_JUMP * jumps + sum(lines * each for lines, each in missed)
        return Moved(traffic, jumps, sum(lines for lines, _ in missed), cycles, waits)

    def _fetched(self, k: int, cache: int) -> dict[Buffer, float]:
        """Bytes that come into a cache for a leaf: what lies in it is not fetched again."""
        leaf, touched = self._leaves[k], self._touched[k]
        depths = range(len(touched))
        first = next((d for d in depths if sum(s for s, _ in touched[d].values()) <= cache), None)
        crowded = cache < self._target.l3_bytes
        there = self._left(k, cache)
        fetched: dict[Buffer, float] = {}
        for access in leaf.accesses:
            if access.buffer in there:
                continue
            at = len(touched) - 1 if first is None else first
            while crowded and at < len(touched) - 1 and touched[at][access.buffer][1] > cache:
                at += 1
            size = touched[at][access.buffer][0] * _times(access, leaf, at)
            fetched[access.buffer] = max(size, fetched.get(access.buffer, 0.0))
        return fetched

    def _left(self, k: int, cache: int) -> set[Buffer]:
        """What leaves before one touched in the same iterations, as far as it all fits."""
        leaf = self._leaves[k]
        for depth in range(len(leaf.loops) + 1):
            group = self._below[_vars(leaf, depth)]
            sizes: dict[Buffer, float] = {}
            for j in group:
                for buffer, (size, _) in self._touched[j][depth].items():
                    sizes[buffer] = max(size, sizes.get(buffer, 0.0))
            if sum(sizes.values()) <= cache:
                return {a.buffer for j in group if j < k for a in self._leaves[j].accesses}
        return set()


def _times(access: Access, leaf: Leaf, depth: int) -> float:
    """How often what an access touches below some loops is fetched, lines that go on once."""
    steps = _steps(access)
    times = float(prod(leaf.extents[: max(0, depth - 1)]))
    if depth and steps[depth - 1]:  # what the loop just outside does not move stays
        inside = any(
            0 < s < LINE and x > 1 for s, x in zip(steps[depth:], leaf.extents[depth:], strict=True)
        )
        share = 1.0 if inside else min(1.0, steps[depth - 1] / LINE)
        times *= max(1.0, leaf.extents[depth - 1] * share)
    return times


def _steps(access: Access) -> list[int]:
    """Bytes between neighbours along each loop."""
    size = access.bytes
    return [stride * size for stride in access.strides()]


def _vars(leaf: Leaf, depth: int) -> tuple[PrimVar, ...]:
    return tuple(x.var for x in leaf.loops[:depth])


def _touched(leaf: Leaf, target: Target) -> list[dict[Buffer, tuple[float, float]]]:
    """Of each buffer: bytes of lines that a leaf touches, as how many they count for a cache.

    While the loops from each on, and none, run once.
    """
    found: list[dict[Buffer, tuple[float, float]]] = [{} for _ in range(len(leaf.loops) + 1)]
    for access in dict.fromkeys(replace(a, stores=False) for a in leaf.accesses):
        steps = _steps(access)
        held = _crowding(access, steps, leaf.extents, target)
        spread = _spread(access, steps, leaf.extents)
        for sizes, size, times in zip(found, spread, held, strict=True):
            each = (size, size * times)
            sizes[access.buffer] = max(each, sizes.get(access.buffer, (0.0, 0.0)))
    return found


def _spread(access: Access, steps: list[int], extents: tuple[int, ...]) -> list[float]:
    """Bytes of the lines that are touched while the loops from each on, and none, run once."""
    near, found, size = False, list[float](), access.bytes
    for k, count in reversed([*enumerate(access.elements(extents))]):
        if k < len(extents) and extents[k] > 1:
            near = near or 0 < steps[k] < LINE
        found.append(float(LINE if count <= 1 else count * (size if near else LINE)))
    found.reverse()
    return found


def _crowding(
    access: Access, steps: list[int], extents: tuple[int, ...], target: Target
) -> list[float]:
    """How often bytes of lines count for a cache, by loops likewise.

    More than once where lines lie a page apart, or some large part of one: they share few sets.
    """
    page = target.machine.page_bytes
    sets = page // LINE
    run, lines, used, found = access.bytes, 1.0, 1.0, [1.0]
    for step, extent in zip(reversed(steps), reversed(extents), strict=True):
        if extent > 1 and step:
            if step <= run + LINE:
                run += step * (extent - 1)
                lines = max(lines, run / LINE)
                used = min(float(sets), max(used, lines))
            else:
                lines *= extent
                apart = page // gcd(step, page) if step % LINE == 0 else sets
                used = min(float(sets), used * min(extent, apart))
        found.append(max(1.0, min(float(sets), lines) / used))
    found.reverse()
    return found


def _run(access: Access, leaf: Leaf, target: Target) -> float:
    """Bytes that come in order, a page at most: then it goes on somewhere else.

    A few places that are read by turns are each in order.
    """
    page = target.machine.page_bytes
    most = 2 * target.l1_bytes // page  # a stream for each way, and as many again
    run, places = access.bytes, 1
    for step, extent in zip(reversed(_steps(access)), reversed(leaf.extents), strict=True):
        if extent == 1 or not step:
            continue
        if step <= run + LINE:
            run += step * (extent - 1)
        elif places * extent <= most:
            places *= extent
        else:
            break
    return float(min(page, max(LINE, run)))


def _missed(access: Access, leaf: Leaf, target: Target) -> tuple[float, float]:
    """Touches of parts of lines, where so many share a set that none stays, and cycles of each."""
    page = target.machine.page_bytes
    ways = target.l1_bytes // page
    run, places, together, scattered = access.bytes, 1, 1, False
    for step, loop in zip(reversed(_steps(access)), reversed(leaf.loops), strict=True):
        if step < LINE:
            run += step * (loop.extent - 1)
            together *= loop.extent
            continue
        if run >= LINE:
            break
        scattered = scattered or loop.kind == "vectorized"
        places *= loop.extent
        if places > ways * (page // gcd(step, page)):
            return leaf.iterations / together, _SCATTERED_MISS if scattered else _MISS
    return 0.0, 0.0
