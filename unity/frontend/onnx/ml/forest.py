"""A forest as models tell of it, read from the attributes of ONNX's tree ensembles.

`TreeEnsembleClassifier` and `TreeEnsembleRegressor` list all nodes, leaves among them, and their
weights apart; `TreeEnsemble` (version 5) lists inner nodes and leaves in two tables. Both become
one table of nodes, leaves last in what a node says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.dtype import Array, DType

from ..node import Node

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""What a node asks of its column, in the order of version 5's numbers."""
LEAF = len(MODES)
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees. All arrays but the last four and `members` have an element for each node.

    Attributes:
        roots: The nodes that trees begin at.
        modes: Indices into `MODES`, or `LEAF`.
        features: Columns that inner nodes look at.
        thresholds: What they compare with.
        yes, no: Nodes that rows go to for which it holds, or does not.
        missing: Whether it holds of NaN.
        members: By nodes of the mode MEMBER, the values that they look for.
        leaves, targets, weights: What leaves give to targets, an element for each gift.
        target_count: How many targets there are.
    """

    roots: Ints
    modes: Ints
    features: Ints
    thresholds: Array
    yes: Ints
    no: Ints
    missing: Flags
    members: dict[int, tuple[float, ...]]
    leaves: Ints
    targets: Ints
    weights: Array
    target_count: int


def classic_forest(node: Node, prefix: str, kind: DType, target_count: int) -> Forest:
    """The forest of a TreeEnsembleClassifier or TreeEnsembleRegressor.

    Args:
        node: The node.
        prefix: What attributes of weights are called: ``class`` or ``target``.
        kind: Of thresholds and weights.
        target_count: How many targets or classes there are.

    Raises:
        UnityError: Its tables don't fit together.
    """
    node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    trees, ids = _ints(node, "nodes_treeids"), _ints(node, "nodes_nodeids")
    count = len(trees)
    table = {
        name: _ints(node, f"nodes_{name}", count)
        for name in ("featureids", "truenodeids", "falsenodeids")
    }
    _require_length("nodes_nodeids", ids, count)
    modes = _modes(node.texts_of("nodes_modes") or ())
    _require_length("nodes_modes", modes, count)
    thresholds = _floats(node, "nodes_values", kind)
    _require_length("nodes_values", thresholds, count)
    missing = node.ints_of("nodes_missing_value_tracks_true")
    find = _Places(trees, ids)
    inner = modes != LEAF
    yes, no = (np.full(count, -1) for _ in range(2))
    for to, name in ((yes, "truenodeids"), (no, "falsenodeids")):
        to[inner] = find(trees[inner], table[name][inner], f"nodes_{name}")
    weights = _floats(node, f"{prefix}_weights", kind)
    at = find(
        _ints(node, f"{prefix}_treeids", len(weights)),
        _ints(node, f"{prefix}_nodeids", len(weights)),
        f"{prefix}_nodeids",
    )
    _, roots = np.unique(trees, return_index=True)  # the first node of each, as onnx's own does
    forest = Forest(
        roots.astype(np.int64),
        modes,
        table["featureids"],
        thresholds,
        yes,
        no,
        np.zeros(count, np.bool_) if missing is None else np.asarray(missing) != 0,
        {},
        at,
        _ints(node, f"{prefix}_ids", len(weights)),
        weights,
        target_count,
    )
    _require_length("nodes_missing_value_tracks_true", forest.missing, count)
    return _checked(forest)


class _Places:
    """Finds nodes by the numbers of their trees and their own in these."""

    def __init__(self, trees: Ints, ids: Ints) -> None:
        self.keys = np.stack([trees, ids])
        self.order = np.lexsort((ids, trees))
        self.sorted = self.keys[:, self.order]
        if np.any(np.all(self.sorted[:, 1:] == self.sorted[:, :-1], axis=0)):
            raise UnityError("nodes_nodeids: two nodes of a tree have one number")
        self.index = {key: i for i, key in enumerate(zip(*self.keys.tolist(), strict=True))}

    def __call__(self, trees: Ints, ids: Ints, what: str) -> Ints:
        index = self.index
        wanted = list(zip(trees.tolist(), ids.tolist(), strict=True))
        found = [index.get(key, -1) for key in wanted]
        if -1 in found:
            tree, number = wanted[found.index(-1)]
            raise UnityError(f"{what}: the tree {tree} has no node {number}")
        return np.asarray(found, np.int64).reshape(-1)


def _modes(texts: Sequence[str]) -> Ints:
    numbers = {f"BRANCH_{mode}": i for i, mode in enumerate(MODES[:-1])} | {"LEAF": LEAF}
    unknown = sorted(set(texts) - numbers.keys())
    if unknown:
        raise UnityError(f"nodes_modes: {unknown[0]!r}; expected one of {', '.join(numbers)}")
    return np.asarray([numbers[t] for t in texts], np.int64).reshape(-1)


def table_forest(node: Node, kind: DType) -> Forest:
    """The forest of a TreeEnsemble of version 5; `kind` is that of its input.

    Raises:
        UnityError: Its tables don't fit together.
    """
    node.ignore("nodes_hitrates")
    roots = _ints(node, "tree_roots")
    thresholds = _tensor(node, "nodes_splits", kind)
    inner = len(thresholds)
    modes = node.array_of("nodes_modes")
    weights = _tensor(node, "leaf_weights", kind)
    leaves = len(weights)
    if modes is None or modes.shape != (inner,) or not np.all(np.isin(modes, range(LEAF))):
        raise UnityError(f"nodes_modes must hold {inner} numbers of 0 to {LEAF - 1}")
    asked = modes.astype(np.int64)
    missing = node.ints_of("nodes_missing_value_tracks_true") or (0,) * inner
    _require_length("nodes_missing_value_tracks_true", np.asarray(missing), inner)
    children: list[Ints] = []
    for which in ("true", "false"):
        to = _ints(node, f"nodes_{which}nodeids", inner)
        is_leaf = _ints(node, f"nodes_{which}leafs", inner) != 0
        bound = np.where(is_leaf, leaves, inner)
        if np.any((to < 0) | (to >= bound)):
            raise UnityError(f"nodes_{which}nodeids: a child is none of {inner} nodes and leaves")
        children.append(np.where(is_leaf, to + inner, to))
    yes, no = children
    if np.any((roots < 0) | (roots >= inner)):
        raise UnityError(f"tree_roots: a root is none of {inner} nodes")
    # A tree of one leaf has a root both of whose children are that leaf.
    none = np.full(leaves, -1)
    forest = Forest(
        roots,
        np.concatenate([asked, np.full(leaves, LEAF)]),
        np.concatenate([_ints(node, "nodes_featureids", inner), np.zeros(leaves, np.int64)]),
        np.concatenate([thresholds, np.zeros(leaves, thresholds.dtype)]),
        np.concatenate([yes, none]),
        np.concatenate([no, none]),
        np.concatenate([np.asarray(missing) != 0, np.zeros(leaves, np.bool_)]),
        _members(node, asked, kind),
        np.arange(inner, inner + leaves),
        _ints(node, "leaf_targetids", leaves),
        weights,
        node.int_of("n_targets", 1),
    )
    return _checked(forest)


def _members(node: Node, modes: Ints, kind: DType) -> dict[int, tuple[float, ...]]:
    """The values of each MEMBER node: runs in their order, each ended by NaN."""
    asking = np.flatnonzero(modes == MODES.index("MEMBER"))
    found = node.array_of("membership_values")
    given = [] if found is None else found.astype(kind.numpy).astype(np.float64).tolist()
    runs: list[list[float]] = [[]]
    for value in given:
        if value != value:
            runs.append([])
        else:
            runs[-1].append(value)
    if runs[-1] or len(runs) - 1 != len(asking):
        raise UnityError(
            f"membership_values: {len(asking)} nodes of the mode MEMBER, but "
            f"{len(runs) - 1} runs of values that end with NaN"
        )
    return {int(i): tuple(run) for i, run in zip(asking, runs, strict=False)}


def _checked(forest: Forest) -> Forest:
    inner = forest.modes != LEAF
    if not len(forest.roots):
        raise UnityError("has no tree")
    if np.any(forest.features[inner] < 0):
        raise UnityError("nodes_featureids: a node looks at a column before the first")
    if forest.target_count < 1:
        raise UnityError(f"n_targets is {forest.target_count}; expected 1 or more")
    if np.any((forest.targets < 0) | (forest.targets >= forest.target_count)):
        raise UnityError(f"a leaf gives to a target that is none of {forest.target_count}")
    if np.any(inner[forest.leaves]):
        raise UnityError("a node that is no leaf has weights")
    return forest


def _require_length(name: str, found: Array, count: int) -> None:
    if len(found) != count:
        raise UnityError(f"{name} has {len(found)} elements where there are {count}")


def _ints(node: Node, name: str, count: int | None = None) -> Ints:
    found = np.asarray(node.ints_of(name) or (), np.int64)
    if count is not None:
        _require_length(name, found, count)
    return found


def _floats(node: Node, name: str, kind: DType) -> Array:
    """Numbers that stand in an attribute of floats, or as doubles in a tensor."""
    tensor = node.array_of(f"{name}_as_tensor")
    plain = node.floats_of(name)
    if tensor is not None and tensor.size:
        if plain:
            raise UnityError(f"has {name} and {name}_as_tensor")
        return tensor.reshape(-1).astype(kind.numpy)
    return np.asarray(plain or (), np.float32).astype(kind.numpy)


def _tensor(node: Node, name: str, kind: DType) -> Array:
    found = node.array_of(name)
    if found is None or found.ndim != 1:
        raise UnityError(f"{name} must be a tensor of one axis")
    return found.astype(kind.numpy)


def base_values(node: Node, kind: DType) -> Array:
    """What is added to the targets; empty where nothing is."""
    return _floats(node, "base_values", kind)
