"""Features of a kernel that is laid out: what a cost model is told of it.

As Ansor's: of the two leaves with the most work each the loops by kind, what is reused in
registers, what is touched below each level of loops, how it lies in lanes; and sums over all
leaves. Counts are logarithms, so that kernels of other sizes are neighbours; ratios (work for each
byte that passes a level of memory) carry over from shape to shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

import numpy as np
import numpy.typing as npt

from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from .estimate import Costs, costs_of
from .leaves import Leaf, leaves

_OF_A_LEAF = (
    "iterations", "operations", "costly", "lanes", "unrolled", "parallel", "serial", "depth",
    "innermost extent", "loads", "loads from memory", "broadcasts", "in order", "strided",
    "stores to registers", "sums beside", "guards", "guards of lanes", "registers",
    "l1 work a byte", "l2 work a byte", "l3 work a byte",
    "l1 bytes", "l2 bytes", "touched", "cycles: operations", "cycles: loads", "cycles: chain",
    "cycles: memory", "cycles: loops", "cycles: all",
)  # fmt: skip
_OF_ALL = ("leaves", "parallel regions", "cycles", "seconds")
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
    parts = leaves(func, sizes)
    found = list(zip(parts, costs_of(parts, target), strict=True))
    found.sort(key=lambda pair: -pair[1].cycles)
    row: list[float] = []
    for k in range(2):
        row += _of_leaf(*found[k]) if k < len(found) else [0.0] * len(_OF_A_LEAF)
    cycles = sum(costs.cycles for _, costs in found)
    seconds = sum(costs.seconds for _, costs in found)
    regions = sum(any(x.kind == "parallel" for x in leaf.loops) for leaf, _ in found)
    row += [_log(len(found)), _log(regions), _log(cycles), _log(seconds * 1e9)]
    return np.asarray(row, np.float32)


def _of_leaf(leaf: Leaf, costs: Costs) -> list[float]:
    loads = [a for a in leaf.accesses if not a.stores]
    memory = [a for a in leaf.accesses if not a.local]
    lane = len(leaf.loops) - 1
    strides = [a.stride(lane) for a in memory] if leaf.loops else []
    serial = leaf.extent("serial")
    return [
        _log(leaf.iterations),
        leaf.operations,
        leaf.costly,
        _log(leaf.extent("vectorized")),
        _log(leaf.extent("unrolled")),
        _log(leaf.extent("parallel")),
        _log(serial),
        len(leaf.loops),
        _log(leaf.loops[-1].extent if leaf.loops else 1),
        len(loads),
        len(memory),
        strides.count(0),
        strides.count(1),
        sum(s > 1 for s in strides),
        sum(a.local for a in leaf.accesses if a.stores),
        _log(costs.chains),
        leaf.guards,
        leaf.lane_guards,
        _log(costs.registers),
        *(_log(leaf.iterations / max(1.0, b)) for b in costs.traffic),
        _log(costs.traffic[0]),
        _log(costs.traffic[1]),
        _log(costs.touched),
        *(_log(c) for c in costs.parts),
        _log(costs.cycles),
    ]


def _log(value: float) -> float:
    return log2(1 + max(0.0, value))
