"""The tables that the kernels of trees read, made of a forest: complete trees, or linked nodes.

Complete trees take twice the memory with each level, whatever trees there are, so they are taken
where that is not much more than the nodes themselves. Trees that each give to one target stand in
groups by it; others give a row to all targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unity.ir.dtype import Array
from unity.op.ml.tree import complete_records, linked_records

from .descent import Descent, Levels
from .forest import Forest, Ints

Join = Literal["sum", "min", "max"]
NEUTRAL: dict[Join, float] = {"sum": 0.0, "min": np.inf, "max": -np.inf}
"""What leaves give to targets that they say nothing of."""
MOST_LEVELS = 16
"""Below that, complete trees are not thought of."""
WASTE = 2
"""Bytes that complete trees may take for one of linked nodes: their steps read less."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Trees in groups of equal numbers; where trees lack, there are some that give nothing.

    Attributes:
        count: How many groups; each gives to one target, or the only one to all.
        size: How many trees each has.
        places: Where each tree stands, counted through all groups.
        outputs: Targets that each group gives to.
    """

    count: int
    size: int
    places: Ints
    outputs: int


@dataclass(frozen=True, slots=True)
class Tables:
    """What `tree_ensemble` takes, or with roots `linked_tree_ensemble`."""

    nodes: Array
    values: Array
    roots: Array | None
    depth: int


def tables_of(forest: Forest, descent: Descent, levels: Levels, join: Join) -> Tables:
    """The tables of a forest."""
    groups = _groups(forest, levels)
    rows, values = _values(forest, groups, join)
    item = values.itemsize
    depth = levels.depth
    linked = 4 * item * levels.count + values.nbytes
    complete = groups.count * groups.size * (2 + groups.outputs) * item << min(depth, MOST_LEVELS)
    if depth < MOST_LEVELS and complete <= WASTE * linked:
        return _complete(descent, levels, groups, rows, values)
    return _linked(descent, levels, groups, rows, values)


def _groups(forest: Forest, levels: Levels) -> Groups:
    """By targets where each tree has one, and groups are of about one size; else a single group."""
    trees, count = len(forest.roots), forest.target_count
    single = Groups(1, trees, np.arange(trees), count)
    if count == 1:
        return single
    tree_of = np.full(len(forest.modes), -1)
    for nodes, trees_of, _, _ in levels.each:
        tree_of[nodes] = trees_of
    of = tree_of[forest.leaves]
    given, targets = of[of >= 0], forest.targets[of >= 0]
    target = np.zeros(trees, np.int64)
    target[given] = targets
    if np.any(target[given] != targets):
        return single
    sizes = np.bincount(target, minlength=count)
    size = int(sizes.max())
    if count * size > 2 * trees:
        return single
    order = np.argsort(target, kind="stable")
    places = np.empty(trees, np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    places[order] = target[order] * size + np.arange(trees) - first[target[order]]
    return Groups(count, size, places, 1)


def _values(forest: Forest, groups: Groups, join: Join) -> tuple[Ints, Array]:
    """For each node its row of the values that leaves give, and these; the first gives nothing."""
    leaves = np.unique(forest.leaves)
    rows = np.zeros(len(forest.modes), np.int64)
    rows[leaves] = np.arange(1, len(leaves) + 1)
    shape = (len(leaves) + 1, groups.outputs)
    values = np.full(shape, NEUTRAL[join], forest.weights.dtype)
    targets = forest.targets if groups.outputs > 1 else np.zeros_like(forest.targets)
    combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}[join]
    combine.at(values, (rows[forest.leaves], targets), forest.weights)
    return rows, values


def _complete(
    descent: Descent, levels: Levels, groups: Groups, rows: Ints, values: Array
) -> Tables:
    depth = levels.depth
    trees, slots = groups.count * groups.size, 1 << depth
    features = np.zeros((trees, slots), np.int64)
    thresholds = np.zeros((trees, slots), descent.thresholds.dtype)
    found = np.zeros((trees, slots), np.int64)
    for level, (nodes, of, numbers, leaf) in enumerate(levels.each):
        at = groups.places[of]
        inner = nodes[~leaf]
        features[at[~leaf], numbers[~leaf]] = descent.columns[inner]
        thresholds[at[~leaf], numbers[~leaf]] = descent.thresholds[inner]
        below = found.reshape(trees, 1 << level, slots >> level)
        below[at[leaf], numbers[leaf] - (1 << level)] = rows[nodes[leaf], None]
    shape = (groups.count, groups.size, slots)
    records = complete_records(features, thresholds).reshape(*shape, 2)
    return Tables(records, values[found].reshape(*shape, groups.outputs), None, depth)


def _linked(descent: Descent, levels: Levels, groups: Groups, rows: Ints, values: Array) -> Tables:
    """Nodes level by level, both children of one side by side; last a leaf without values."""
    total = levels.count + 1
    features, left = np.zeros(total, np.int64), np.arange(total) - 1
    thresholds = np.full(total, np.nan, descent.thresholds.dtype)
    row = np.zeros(total, np.int64)
    begin = 0
    for nodes, _, _, leaf in levels.each:
        at, end = np.arange(begin, begin + len(nodes)), begin + len(nodes)
        inner = at[~leaf]
        features[inner] = descent.columns[nodes[~leaf]]
        thresholds[inner] = descent.thresholds[nodes[~leaf]]
        left[inner] = end + 2 * np.arange(len(inner))
        row[at[leaf]] = rows[nodes[leaf]]
        begin = end
    roots = np.full(groups.count * groups.size, total - 1, np.int32)
    roots[groups.places] = np.arange(len(groups.places))
    records = linked_records(features, thresholds, left, row)
    return Tables(records, values, roots.reshape(groups.count, groups.size), levels.depth)
