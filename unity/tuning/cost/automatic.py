"""Lanes that nobody asked for: LLVM makes them of innermost loops that go through memory in order.

A sum along such a loop becomes several of registers: its order is left open. So a loop as it was
written is not as slow as it looks.
"""

from __future__ import annotations

from dataclasses import replace

from unity.machine.target import Target

from .leaves import Access, Leaf, Loop

_TOGETHER = 4
"""Registers that a sum becomes."""


def with_lanes(leaf: Leaf, target: Target) -> Leaf:
    """A leaf with the lanes that LLVM makes of its innermost loop; the same if it makes none.

    Args:
        leaf: The leaf.
        target: The machine.
    """
    inner = next((k for k in reversed(range(len(leaf.loops))) if leaf.loops[k].extent > 1), None)
    if inner is None or leaf.costly or leaf.guards:
        return leaf
    loop, store = leaf.loops[inner], leaf.accesses[-1]
    size = max(a.bytes for a in leaf.accesses)
    lanes = target.vector_bits // (8 * size)
    if loop.kind != "serial" or loop.extent < lanes or lanes < 2 or not store.shape:
        return leaf
    if any(a.stride(inner) > 1 for a in leaf.accesses):
        return leaf
    sums = not any(store.steps[inner])
    if sums and not any(a.buffer is store.buffer for a in leaf.accesses[:-1]):
        return leaf
    beside = min(_TOGETHER, loop.extent // lanes)
    steps = -(-loop.extent // (beside * lanes))
    parts = (
        Loop(loop.var, steps, "serial"),
        Loop(loop.var, beside, "unrolled"),
        Loop(loop.var, lanes, "vectorized"),
    )

    def split(a: Access) -> Access:
        step = a.steps[inner]
        if sums and a.buffer is store.buffer:  # each lane has a sum of its own
            own = (*(0 for _ in step[1:]), 1)
            new = (step, tuple(lanes * s for s in own), own)
        else:
            new = (tuple(beside * lanes * s for s in step), tuple(lanes * s for s in step), step)
        return replace(a, steps=(*a.steps[:inner], *new, *a.steps[inner + 1 :]))

    loops = (*leaf.loops[:inner], *parts, *leaf.loops[inner + 1 :])
    return replace(
        leaf,
        loops=loops,
        accesses=tuple(map(split, leaf.accesses)),
        instructions=(sum(leaf.instructions), 0.0),
    )
