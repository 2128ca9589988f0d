"""What a kernel that is laid out should take, by counting: the prior of the learned model.

Of each store: arithmetic by lanes, loads that registers don't save, sums that wait for each other,
bytes that pass each level of memory (not of what a leaf before left there), steps of loops. The
longest of what runs side by side counts, and some of the rest. Crude, and right about what is far
apart: a model learns the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, log2, prod

from unity.ir.arrays.aligned import LINE
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.machine.target import Target

from .leaves import Access, Leaf, leaves

_COSTLY_CYCLES = 8.0
"""Of a call of a function, for each register of lanes: a polynomial of some fourteen steps."""
_SCALAR_LOOP_CYCLES = 1.5
"""Of a step of a loop that is not unrolled."""
_FORWARDED_CYCLES, _SCATTERED_CYCLES = 5, 90
"""What a store takes until it is loaded again: of a register, of lanes that lie apart."""
_MISS_CYCLES = 8.0
"""Of a line from the second cache, several of which are under way."""
_OPERANDS = 4
"""Registers that hold what is multiplied."""
_OVERLAP = 0.25
"""The share of what runs beside the longest part that is not hidden."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a leaf takes.

    Attributes:
        parts: Cycles of arithmetic, of loads, of sums that wait, of memory, of loops' steps.
        traffic: Bytes into the first, the second and the last cache.
        touched: Bytes touched in all.
        chains: Sums that go on beside each other, lanes included.
        registers: What these lie in, where they are meant to.
        cycles: Of all threads together.
        seconds: From begin to end.
    """

    parts: tuple[float, float, float, float, float]
    traffic: tuple[float, float, float]
    touched: float
    chains: int
    registers: float
    cycles: float
    seconds: float


def estimated_seconds(func: PrimFunc, target: Target, sizes: Mapping[str, int]) -> float:
    """What a kernel should take.

    Args:
        func: The kernel, laid out.
        target: The machine.
        sizes: What unknown sizes are, by name.
    """
    return sum(costs.seconds for costs in costs_of(leaves(func, sizes), target))


def costs_of(found: Sequence[Leaf], target: Target) -> list[Costs]:
    """What each leaf of a kernel takes on a machine.

    Args:
        found: All of them, in order.
        target: The machine.
    """
    together = _Together(found)
    return [_costs(k, together, target) for k in range(len(found))]


def _costs(k: int, together: _Together, target: Target) -> Costs:
    leaf = together.leaves[k]
    machine = target.machine
    lanes = _lanes(leaf, target)
    registers = leaf.iterations / lanes
    arithmetic = registers * (
        max(1, leaf.operations) / machine.fma_per_cycle / (2 if _is_sum(leaf) else 1)
        + leaf.costly * _COSTLY_CYCLES
    )
    loads = sum(_times(a, leaf, lanes) for a in leaf.accesses if not a.local)
    loads += _spilled(leaf, lanes, target.vector_registers)
    loads /= machine.loads_per_cycle
    chains = _chains(leaf)
    chain = _waits(leaf) * _latency(leaf, target) / chains if _is_sum(leaf) else 0.0
    traffic = (
        together.traffic(k, target.l1_bytes),
        together.traffic(k, target.l2_bytes),
        together.traffic(k, target.l3_bytes),
    )
    memory = max(
        traffic[0] / machine.l2_bytes_per_cycle,
        traffic[1] / (2 * machine.memory_bytes_per_cycle),
        traffic[2] / machine.memory_bytes_per_cycle,
    )
    memory += _MISS_CYCLES * sum(_misses(a, leaf, target) for a in leaf.accesses)
    loops = _SCALAR_LOOP_CYCLES * prod(
        x.extent for x in leaf.loops if x.kind in ("serial", "parallel")
    )
    parts = (arithmetic, loads, chain, memory, loops)
    cycles = max(parts) + _OVERLAP * (sum(parts) - max(parts))
    width = leaf.extent("parallel")
    threads = min(target.threads, width)
    share = ceil(width / threads) / width if threads > 1 else 1.0
    waking = machine.wake_cycles if threads > 1 else 0.0
    touched = float(sum(a.elements(leaf.extents)[0] * _bytes(a) for a in leaf.accesses))
    seconds = (cycles * share + waking) / machine.hertz
    return Costs(parts, traffic, touched, chains, chains / lanes, cycles, seconds)


def _lanes(leaf: Leaf, target: Target) -> float:
    """How many iterations one instruction does."""
    width = next((x.extent for x in reversed(leaf.loops) if x.kind == "vectorized"), 1)
    size = max((_bytes(a) for a in leaf.accesses), default=4)
    most = max(1, target.vector_bits // (8 * size))
    return width / ceil(width / most)


def _is_sum(leaf: Leaf) -> bool:
    """Whether it adds to what it stores: some loop around moves it nowhere."""
    store = leaf.accesses[-1]
    again = any(a.buffer is store.buffer for a in leaf.accesses[:-1])
    return again and any(
        x.extent > 1 and not any(step) for x, step in zip(leaf.loops, store.steps, strict=True)
    )


def _chains(leaf: Leaf) -> int:
    """Iterations behind each other that go to different sums, counted from the inside."""
    store, found = leaf.accesses[-1], 1
    for loop, step in zip(reversed(leaf.loops), reversed(store.steps), strict=True):
        if any(step):
            found *= loop.extent
        elif loop.extent > 1 and loop.kind != "unrolled":
            break
    return found


def _latency(leaf: Leaf, target: Target) -> float:
    """Cycles until a sum can be added to again: through memory, if it does not lie in registers."""
    store = leaf.accesses[-1]
    lane = next((k for k, x in enumerate(leaf.loops) if x.kind == "vectorized"), None)
    scattered = lane is not None and store.stride(lane) > 1
    waits = _SCATTERED_CYCLES if scattered else 0 if store.local else _FORWARDED_CYCLES
    return target.machine.fma_latency + waits


def _spilled(leaf: Leaf, lanes: float, registers: int) -> float:
    """Loads and stores of sums for which there are too few registers."""
    if not (_is_sum(leaf) and leaf.accesses[-1].local):
        return 0.0
    sums = _chains(leaf) / lanes
    over = max(0.0, sums - (registers - _OPERANDS)) / sums
    return 2 * over * leaf.iterations / lanes


def _waits(leaf: Leaf) -> float:
    """Steps of its sums behind each other; lanes that are summed up are so by halves."""
    steps = float(leaf.iterations)
    for loop, step in zip(leaf.loops, leaf.accesses[-1].steps, strict=True):
        if loop.kind == "vectorized" and loop.extent > 1 and not any(step):
            steps *= ceil(log2(loop.extent)) / loop.extent
    return steps


def _times(access: Access, leaf: Leaf, lanes: float) -> float:
    """How often an access is an instruction: not where it stays in a register."""
    count, waits = leaf.iterations / lanes, True
    for loop, step in zip(reversed(leaf.loops), reversed(access.steps), strict=True):
        if loop.kind == "vectorized":
            stride = access.stride(leaf.loops.index(loop))
            if stride > 1:
                count *= min(lanes, 1 + stride)  # neighbours are loaded together and picked
            continue
        if not waits or any(step):
            waits = waits and loop.kind == "unrolled"
            continue
        if loop.kind == "unrolled" or access.stores:
            count /= loop.extent
    return count


def _misses(access: Access, leaf: Leaf, target: Target) -> float:
    """Lines that lanes load each for itself, where so many of them share a set that none stays."""
    page = target.machine.page_bytes
    for k, loop in enumerate(leaf.loops):
        step = access.stride(k) * _bytes(access)
        if loop.kind == "vectorized" and step >= LINE:
            sets = page // gcd(step, page)
            return float(leaf.iterations) if loop.extent > sets * (target.l1_bytes // page) else 0.0
    return 0.0


class _Together:
    """Carries what each leaf touches while its outer loops stand still.

    What leaves before it touched in the same iterations, as far as it all fits, lies in a cache.

    Args:
        found: The leaves, in order.
    """

    def __init__(self, found: Sequence[Leaf]) -> None:
        self.leaves = found
        self._touched = [_touched(leaf) for leaf in found]
        self._below: dict[tuple[PrimVar, ...], list[int]] = {}
        for k, leaf in enumerate(found):
            for depth in range(len(leaf.loops) + 1):
                self._below.setdefault(_vars(leaf, depth), []).append(k)

    def traffic(self, k: int, cache: int) -> float:
        """Bytes that come into a cache for a leaf: what lies in it is not fetched again."""
        leaf, touched = self.leaves[k], self._touched[k]
        depths = range(len(touched))
        first = next((d for d in depths if sum(touched[d].values()) <= cache), len(touched) - 1)
        there = self._left(k, cache)
        fetched: dict[Buffer, float] = {}
        for access in leaf.accesses:
            if access.buffer in there:
                continue
            times = prod(
                extent
                for d, (extent, step) in enumerate(
                    zip(leaf.extents[:first], access.steps, strict=False)
                )
                if any(step) or d < first - 1  # what the loop just outside does not move stays
            )
            size = touched[first][access.buffer] * times
            fetched[access.buffer] = max(size, fetched.get(access.buffer, 0.0))
        return sum(fetched.values())

    def _left(self, k: int, cache: int) -> set[Buffer]:
        """What leaves before one touched in the same iterations, as far as it all fits."""
        leaf = self.leaves[k]
        for depth in range(len(leaf.loops) + 1):
            group = self._below[_vars(leaf, depth)]
            sizes: dict[Buffer, float] = {}
            for j in group:
                for buffer, size in self._touched[j][depth].items():
                    sizes[buffer] = max(size, sizes.get(buffer, 0.0))
            if sum(sizes.values()) <= cache:
                return {a.buffer for j in group if j < k for a in self.leaves[j].accesses}
        return set()


def _vars(leaf: Leaf, depth: int) -> tuple[PrimVar, ...]:
    return tuple(x.var for x in leaf.loops[:depth])


def _touched(leaf: Leaf) -> list[dict[Buffer, float]]:
    """Bytes of each buffer that a leaf touches while the loops from each on, and none, run once."""
    found: list[dict[Buffer, float]] = [{} for _ in range(len(leaf.loops) + 1)]
    for access in dict.fromkeys(replace(a, stores=False) for a in leaf.accesses):
        for sizes, size in zip(found, _spread(access, leaf.extents), strict=True):
            sizes[access.buffer] = max(size, sizes.get(access.buffer, 0.0))
    return found


def _spread(access: Access, extents: tuple[int, ...]) -> list[float]:
    """Bytes of the lines that are touched while the loops from each on, and none, run once."""
    near, found = False, list[float]()
    for k, count in reversed([*enumerate(access.elements(extents))]):
        if k < len(extents) and extents[k] > 1:
            near = near or 0 < access.stride(k) * _bytes(access) < LINE
        found.append(float(LINE if count <= 1 else count * (_bytes(access) if near else LINE)))
    found.reverse()
    return found


def _bytes(access: Access) -> int:
    return max(1, access.buffer.dtype.bits // 8)
