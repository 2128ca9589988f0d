"""What a kernel that is laid out should take, by counting: the prior of the learned model.

Of each store: arithmetic by lanes, loads that registers don't save, sums that wait for each other,
bytes that pass each level of memory, steps of loops. The longest of what runs side by side counts,
and some of the rest. Crude, and right about what is far apart: a model learns the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from .leaves import Access, Leaf, leaves

_LINE = 64
"""Bytes of a line of a cache."""
_COSTLY_CYCLES = 8.0
"""Of a call of a function, for each register of lanes: a polynomial of some fourteen steps."""
_SCALAR_LOOP_CYCLES = 1.5
"""Of a step of a loop that is not unrolled."""
_OVERLAP = 0.25
"""The share of what runs beside the longest part that is not hidden."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a leaf takes.

    Attributes:
        parts: Cycles of arithmetic, of loads, of sums that wait, of memory, of loops' steps.
        traffic: Bytes into the first, the second and the last cache.
        touched: Bytes touched in all.
        chains: Sums that go on beside each other.
        cycles: Of all threads together.
        seconds: From begin to end.
    """

    parts: tuple[float, float, float, float, float]
    traffic: tuple[float, float, float]
    touched: float
    chains: int
    cycles: float
    seconds: float


def estimated_seconds(func: PrimFunc, target: Target, sizes: Mapping[str, int]) -> float:
    """What a kernel should take.

    Args:
        func: The kernel, laid out.
        target: The machine.
        sizes: What unknown sizes are, by name.
    """
    return sum(costs_of(leaf, target).seconds for leaf in leaves(func, sizes))


def costs_of(leaf: Leaf, target: Target) -> Costs:
    """What a leaf takes on a machine."""
    machine = target.machine
    lanes = _lanes(leaf, target)
    registers = leaf.iterations / lanes
    arithmetic = registers * (
        max(1, leaf.operations) / machine.fma_per_cycle / (2 if _is_sum(leaf) else 1)
        + leaf.costly * _COSTLY_CYCLES
    )
    loads = sum(_times(a, leaf, lanes) for a in leaf.accesses if not a.local)
    loads /= machine.loads_per_cycle
    chains = _chains(leaf)
    chain = leaf.iterations * machine.fma_latency / chains if _is_sum(leaf) else 0.0
    traffic = (
        _traffic(leaf, target.l1_bytes),
        _traffic(leaf, target.l2_bytes),
        _traffic(leaf, target.l3_bytes),
    )
    memory = max(
        traffic[0] / machine.l2_bytes_per_cycle,
        traffic[1] / (2 * machine.memory_bytes_per_cycle),
        traffic[2] / machine.memory_bytes_per_cycle,
    )
    loops = _SCALAR_LOOP_CYCLES * prod(
        x.extent for x in leaf.loops if x.kind in ("serial", "parallel")
    )
    parts = (arithmetic, loads, chain, memory, loops)
    cycles = max(parts) + _OVERLAP * (sum(parts) - max(parts))
    width = leaf.extent("parallel")
    threads = min(target.threads, width)
    share = ceil(width / threads) / width if threads > 1 else 1.0
    waking = machine.wake_cycles if threads > 1 else 0.0
    touched = float(sum(a.elements(leaf.extents, 0) * _bytes(a) for a in leaf.accesses))
    seconds = (cycles * share + waking) / machine.hertz
    return Costs(parts, traffic, touched, chains, cycles, seconds)


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
    return min(found, 256)


def _times(access: Access, leaf: Leaf, lanes: float) -> float:
    """How often an access is an instruction: not where it stays in a register."""
    count, waits = leaf.iterations / lanes, True
    for loop, step in zip(reversed(leaf.loops), reversed(access.steps), strict=True):
        if loop.kind == "vectorized":
            stride = access.stride(leaf.loops.index(loop))
            if stride > 1:
                count *= lanes  # gathered one by one
            continue
        if not waits or any(step):
            waits = waits and loop.kind == "unrolled"
            continue
        if loop.kind == "unrolled" or access.stores:
            count /= loop.extent
    return count


def _traffic(leaf: Leaf, cache: int) -> float:
    """Bytes that come into a cache: what lies in it is not fetched again."""
    extents = leaf.extents
    first = 0
    for first in range(len(extents) + 1):
        if sum(_spread(a, extents, first) for a in leaf.accesses) <= cache:
            break
    return sum(
        _spread(access, extents, first)
        * prod(
            extent
            for k, (extent, step) in enumerate(zip(extents[:first], access.steps, strict=False))
            if any(step) or k < first - 1  # what the loop just outside does not move stays
        )
        for access in leaf.accesses
    )


def _spread(access: Access, extents: tuple[int, ...], first: int) -> float:
    """Bytes of the lines that are touched while the loops from `first` on run once."""
    count = access.elements(extents, first)
    if count <= 1:
        return float(_LINE)
    near = any(
        0 < access.stride(k) * _bytes(access) < _LINE
        for k in range(first, len(extents))
        if extents[k] > 1
    )
    return float(count * (_bytes(access) if near else _LINE))


def _bytes(access: Access) -> int:
    return max(1, access.buffer.dtype.bits // 8)
