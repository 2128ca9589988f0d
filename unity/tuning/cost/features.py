"""Features of a kernel that is laid out: what a cost model is told of it.

Of the two leaves with the most work each: what its time goes into by the estimate, how it lies in
lanes and registers, how it goes through memory; and sums over all leaves. Times are shares of the
whole, bytes of what is touched: so what is learned of one kernel is true of others, whatever their
sizes. What is large or small is a logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, prod

import numpy as np
import numpy.typing as npt

from unity.ir.arrays.aligned import LINE
from unity.ir.stmt import PrimFunc
from unity.machine.stack import stack_bytes
from unity.machine.target import Target

from .estimate import Costs, costs_of
from .leaves import leaves

_PARTS = ("operations", "loads", "chain", "memory", "waits", "loops")
_OF_A_LEAF = (
    "share", *(f"share: {part}" for part in _PARTS),
    "instructions behind each other", "unrolled", "lanes", "registers", "sums beside",
    "guards", "guards of lanes", "operations", "costly",
    "jumps", "misses", "l1 traffic", "steps of a loop", "steps", "strided",
)  # fmt: skip
_OF_ALL = (
    *(f"share: {part}" for part in _PARTS), "not hidden", "temporaries", "leaves",
    "parallel regions", "seconds",
)  # fmt: skip
FEATURES = tuple(f"{name} ({k})" for k in ("first", "second") for name in _OF_A_LEAF) + _OF_ALL
"""What the numbers of `features` are."""
Features = npt.NDArray[np.float32]


def features(func: PrimFunc, target: Target, sizes: Mapping[str, int]) -> Features:
    """The features of a kernel.

    Args:
        func: The kernel, laid out.
        target: The machine.
        sizes: What unknown sizes are, by name.

    Returns:
        As many numbers as `FEATURES` has names.
    """
    found = costs_of(leaves(func, sizes), target)
    cycles = sum(costs.cycles for costs in found) or 1.0
    row: list[float] = []
    most = sorted(found, key=lambda costs: -costs.cycles)
    for k in range(2):
        row += _of_leaf(most[k], cycles) if k < len(most) else [0.0] * len(_OF_A_LEAF)
    parts = [sum(each) for each in zip(*(costs.parts for costs in found), strict=True)]
    longest = sum(max(costs.parts) for costs in found)
    regions = sum(any(x.kind == "parallel" for x in costs.leaf.loops) for costs in found)
    row += [part / cycles for part in parts] or [0.0] * len(_PARTS)
    row += [longest / cycles, _log(_temporaries(func, found)), len(found), regions]
    row.append(_log(sum(costs.seconds for costs in found) * 1e9))
    return np.asarray(row, np.float32)


def _of_leaf(costs: Costs, cycles: float) -> list[float]:
    leaf, moved = costs.leaf, costs.moved
    unrolled, lanes = leaf.extent("unrolled"), leaf.extent("vectorized")
    steps = [x.extent for x in leaf.loops if x.kind in ("serial", "parallel") and x.extent > 1]
    last = len(leaf.loops) - 1
    return [
        costs.cycles / cycles,
        *(part / costs.cycles for part in costs.parts),
        _log(unrolled * max(1.0, lanes / costs.lanes) * (leaf.operations + len(leaf.accesses))),
        _log(unrolled),
        _log(lanes),
        _log(costs.registers),
        _log(costs.chains),
        leaf.guards,
        leaf.lane_guards,
        leaf.operations,
        leaf.costly,
        moved.jumps * LINE / max(1.0, costs.touched),
        moved.misses / leaf.iterations,
        moved.traffic[0] / max(1.0, costs.touched),
        _log(steps[-1] if steps else 1),
        _log(prod(steps)),
        sum(a.stride(last) > 1 for a in leaf.accesses) if leaf.loops else 0,
    ]


def _temporaries(func: PrimFunc, found: Sequence[Costs]) -> int:
    """Bytes of buffers that a call asks the system for: their pages may be new each time."""
    sizes = {
        a.buffer: prod(a.shape) * a.bytes
        for costs in found
        for a in costs.leaf.accesses
        if a.buffer not in func.buffers
    }
    return sum(size for b, size in sizes.items() if size > stack_bytes(b.scope))


def _log(value: float) -> float:
    return log2(1 + max(0.0, value))
