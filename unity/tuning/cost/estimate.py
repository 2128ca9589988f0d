"""What a kernel that is laid out should take, by counting: the prior of the learned model.

Of each store: arithmetic by lanes, loads that registers don't save, sums that wait for each other,
what comes through memory (`memory`), steps of loops. The longest of what runs side by side counts,
and some of the rest. Crude, and right about what is far apart: a model learns the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, prod

from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from .automatic import with_lanes
from .leaves import Access, Leaf, leaves
from .memory import Memory, Moved

_COSTLY_CYCLES = 8.0
"""Of a call of a function, for each register of lanes: a polynomial of some fourteen steps."""
_SCALAR_LOOP_CYCLES = 0.5
"""Of a step of a loop that is not unrolled; the compiler unrolls short ones."""
_FORWARDED_CYCLES, _SCATTERED_CYCLES = 5, 90
"""What a store takes until it is loaded again: of a register, of lanes that lie apart."""
_WINDOW = 400
"""Instructions that are under way at once: some 250 to 500 in cores of these years."""
_OPERANDS = 4
"""Registers that hold what is multiplied."""
_OVERLAP = 0.25
"""The share of what runs beside the longest part that is not hidden."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a leaf takes.

    Attributes:
        leaf: The leaf, with the lanes that the compiler gives it.
        parts: Cycles of arithmetic, of loads, of sums that wait, of memory, of waits for it, of
            loops' steps.
        moved: What it moves through memory.
        touched: Bytes touched in all.
        lanes: How many iterations one instruction does.
        chains: Sums that go on beside each other, lanes included.
        cycles: Of all threads together.
        seconds: From begin to end.
    """

    leaf: Leaf
    parts: tuple[float, float, float, float, float, float]
    moved: Moved
    touched: float
    lanes: float
    chains: int
    cycles: float
    seconds: float

    @property
    def registers(self) -> float:
        """What its sums lie in, where they are meant to."""
        return self.chains / self.lanes


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
    made = [with_lanes(leaf, target) for leaf in found]
    memory = Memory(made, target)
    return [_costs(leaf, memory.moved(k), target) for k, leaf in enumerate(made)]


def _costs(leaf: Leaf, moved: Moved, target: Target) -> Costs:
    machine = target.machine
    lanes = _lanes(leaf, target)
    registers = leaf.iterations / lanes
    wide, single = leaf.instructions
    fused = registers if _is_sum(leaf) and leaf.operations > 1 else 0.0  # multiplied and added
    instructions = max(registers, wide / lanes + single - fused)
    arithmetic = instructions / machine.fma_per_cycle + registers * leaf.costly * _COSTLY_CYCLES
    loads = sum(_times(a, leaf, lanes) for a in leaf.accesses if not a.local)
    loads += _spilled(leaf, lanes, target.vector_registers)
    loads /= machine.loads_per_cycle
    chains = _chains(leaf)
    chain = 0.0
    if _is_sum(leaf):
        chain = _waits(leaf) * _latency(leaf, target) / chains / _overlapping(leaf, lanes)
    loops = _SCALAR_LOOP_CYCLES * prod(
        x.extent for x in leaf.loops if x.kind in ("serial", "parallel")
    )
    parts = (arithmetic, loads, chain, moved.cycles, moved.waits, loops)
    cycles = max(parts) + _OVERLAP * (sum(parts) - max(parts))
    width = leaf.extent("parallel")
    threads = min(target.threads, width)
    share = ceil(width / threads) / width if threads > 1 else 1.0
    waking = machine.wake_cycles if threads > 1 else 0.0
    touched = float(sum(a.elements(leaf.extents)[0] * a.bytes for a in leaf.accesses))
    seconds = (cycles * share + waking) / machine.hertz
    return Costs(leaf, parts, moved, touched, lanes, chains, cycles, seconds)


def _lanes(leaf: Leaf, target: Target) -> float:
    """How many iterations one instruction does."""
    width = next((x.extent for x in reversed(leaf.loops) if x.kind == "vectorized"), 1)
    size = max((a.bytes for a in leaf.accesses), default=4)
    most = max(1, target.vector_bits // (8 * size))
    return width / ceil(width / most)


def _is_sum(leaf: Leaf) -> bool:
    """Whether it adds to what it stores: some loop around moves it nowhere."""
    store = leaf.accesses[-1]
    again = any(a.buffer is store.buffer for a in leaf.accesses[:-1])
    return again and any(_repeats(leaf))


def _repeats(leaf: Leaf) -> list[bool]:
    """Of each loop, whether it comes back to what is stored, in the same memory."""
    store = leaf.accesses[-1]
    return [
        k >= store.outer and x.extent > 1 and not any(step)
        for k, (x, step) in enumerate(zip(leaf.loops, store.steps, strict=True))
    ]


def _overlapping(leaf: Leaf, lanes: float) -> float:
    """How many whole sums are under way at once: the next begin before one is complete."""
    first = _repeats(leaf).index(True)
    each = prod(leaf.extents[first:]) / lanes * (leaf.operations + len(leaf.accesses) - 1)
    return max(1.0, min(prod(leaf.extents[:first]), _WINDOW / max(1.0, each)))


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
    return target.machine.fma_latency + waits / _kept(leaf)


def _kept(leaf: Leaf) -> int:
    """Steps in which a sum stays in a register though it lies in memory: the innermost ones."""
    found = 1
    for loop, step in zip(reversed(leaf.loops), reversed(leaf.accesses[-1].steps), strict=True):
        if loop.kind == "vectorized" or loop.extent == 1:
            continue
        if any(step):
            break
        found *= loop.extent
    return found


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
