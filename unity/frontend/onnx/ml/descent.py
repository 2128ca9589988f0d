"""A forest whose nodes ask all the same: whether a column is at most a threshold.

The kernels ask nothing else, and NaN goes to the right. Other questions become that one: ``x < v``
of the number before v, ``x > v`` with its children exchanged. Where NaN is to go to the left, a
node looks at a copy of its column in which NaN is -inf; what is no comparison of order (EQ, NEQ,
MEMBER) is asked before, for all rows, as a column of zeros and ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array

from .forest import LEAF, MODES, Flags, Forest, Ints

Question: TypeAlias = "tuple[int, str, tuple[float, ...], bool]"
"""(column, a mode, values, whether it holds of NaN): a column that is made of another."""
LEQ, LT, GTE, GT = (MODES.index(m) for m in ("LEQ", "LT", "GTE", "GT"))


@dataclass(frozen=True, slots=True)
class Descent:
    """What is asked, by the nodes of a forest.

    Attributes:
        columns: Of inner nodes: below `width` a column of x, then of the copies without NaN
            (`copied`), then of the questions.
        thresholds: What they compare with.
        left, right: The nodes that come next.
        width: Columns of x that are looked at, at least.
        copied: The columns of x that are copied.
        questions: What is asked before.
    """

    columns: Ints
    thresholds: Array
    left: Ints
    right: Ints
    width: int
    copied: Ints
    questions: tuple[Question, ...]


def descent_of(forest: Forest, nans: bool) -> Descent:
    """The same forest with one question; `nans` says whether x may hold NaN."""
    modes, inner = forest.modes, forest.modes != LEAF
    ordered = inner & (modes <= GT)
    strict = ordered & ((modes == LT) | (modes == GTE))
    turned = ordered & ((modes == GTE) | (modes == GT))
    thresholds = forest.thresholds.copy()
    with np.errstate(over="ignore"):
        below = np.nextafter(thresholds, np.asarray(-np.inf, thresholds.dtype))
    never = strict & np.equal(thresholds, -np.inf)  # nothing is less than -inf
    thresholds[strict] = below[strict]
    thresholds[never] = np.nan
    left = np.where(turned, forest.no, forest.yes)
    right = np.where(turned, forest.yes, forest.no)
    nan_left = ordered & (forest.missing != turned) & nans
    asked = (inner & ~ordered) | ((nan_left | turned) & np.isnan(thresholds) & ~(never & ~nan_left))
    nan_left &= ~asked
    width = int(forest.features[inner].max(initial=-1)) + 1
    columns = forest.features.copy()
    copied = np.unique(columns[nan_left])
    columns[nan_left] = width + np.searchsorted(copied, columns[nan_left])
    asking = {node: _question(forest, node) for node in np.flatnonzero(asked).tolist()}
    questions = sorted(set(asking.values()), key=_order)
    places = {question: width + len(copied) + k for k, question in enumerate(questions)}
    for node, question in asking.items():
        columns[node] = places[question]
    thresholds[asked] = 0.5
    left[asked], right[asked] = forest.no[asked], forest.yes[asked]
    return Descent(columns, thresholds, left, right, width, copied, tuple(questions))


def _question(forest: Forest, node: int) -> Question:
    mode = MODES[int(forest.modes[node])]
    values = forest.members.get(node, (float(forest.thresholds[node]),))
    return int(forest.features[node]), mode, values, bool(forest.missing[node])


def _order(question: Question) -> tuple[int, int, tuple[str, ...], bool]:
    """Those of one mode together; NaN has a place, too."""
    column, mode, values, missing = question
    return MODES.index(mode), column, tuple(map(repr, values)), missing


@dataclass(frozen=True, slots=True)
class Levels:
    """The nodes of all trees, level by level, as rows come to them.

    Attributes:
        each: Of each level: nodes of the forest, the trees that they are in, their numbers in a
            complete tree (1 for the root, 2 i and 2 i + 1 below i, as far as an int64 goes), and
            whether they are leaves.
    """

    each: tuple[tuple[Ints, Ints, Ints, Flags], ...]

    @property
    def depth(self) -> int:
        """Steps from a root to the lowest leaf; 1 at least."""
        return max(len(self.each) - 1, 1)

    @property
    def count(self) -> int:
        """Nodes and leaves."""
        return sum(len(nodes) for nodes, *_ in self.each)


def levels_of(forest: Forest, descent: Descent) -> Levels:
    """The levels of a forest.

    Raises:
        UnityError: A node comes below itself, or in two places.
    """
    nodes, trees = forest.roots, np.arange(len(forest.roots))
    numbers = np.ones(len(nodes), np.int64)
    found: list[tuple[Ints, Ints, Ints, Flags]] = []
    seen = np.zeros(len(forest.modes), np.bool_)
    while len(nodes):
        leaf = forest.modes[nodes] == LEAF
        below = nodes[~leaf]
        if np.any(seen[below]) or len(np.unique(below)) < len(below):
            raise UnityError("a node is below itself, or below two others: this is no tree")
        seen[below] = True
        found.append((nodes, trees, numbers, leaf))
        pairs = np.stack([descent.left[below], descent.right[below]], -1).reshape(-1)
        numbers = (numbers[~leaf, None] * 2 + np.arange(2)).reshape(-1)  # wraps below level 62
        nodes, trees = pairs, np.repeat(trees[~leaf], 2)
    return Levels(tuple(found))
