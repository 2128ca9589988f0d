"""TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, Array
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value
from .descent import Question, descent_of, levels_of
from .forest import Forest, Ints, base_values, classic_forest, table_forest
from .rows import rows_of, working
from .scores import (
    TRANSFORMS,
    beside,
    class_labels,
    complement,
    labelled,
    of_targets,
    post_transform,
    transformed,
)
from .tree_tables import Join, tables_of

_JOINS: dict[str, Join] = {"AVERAGE": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
"""In the order of the numbers that TreeEnsemble gives them."""


def joined(node: Node, forest: Forest, how: str) -> Expr:
    """What the trees give to the targets, ``[rows, targets]``: their sum, average, least, greatest.

    A target that no leaf of a row gives to is 0.
    """
    source = node.dtype_of(node.tensor(0))
    descent = descent_of(forest, nans=source.is_float)
    levels = levels_of(forest, descent)
    x = rows_of(node, 0, descent.width)
    columns = _columns(node, x, descent.width, descent.copied.tolist(), descent.questions)
    join = _JOINS[how]
    tables = tables_of(forest, descent, levels, join)
    nodes, values = Constant(tables.nodes), Constant(tables.values)
    if tables.roots is None:
        found = node.op("tree_ensemble", columns, nodes, values, join=join, checked=True)
    else:
        found = node.op(
            "linked_tree_ensemble",
            columns,
            nodes,
            Constant(tables.roots),
            values,
            depth=tables.depth,
            join=join,
            checked=True,
        )
    rows, *_ = node.shape_of(found)
    shape: tuple[Dim, ...] = (rows, forest.target_count)
    found = node.op("reshape", found, shape)
    if how == "AVERAGE":
        return node.op("divide", found, node.number(len(forest.roots), found))
    if join == "sum" or np.all(np.isfinite(tables.values)):
        return found
    return node.op("where", node.op("isinf", found), node.number(0, found), found)


def _columns(
    node: Node, x: Expr, width: int, copied: Sequence[int], questions: Sequence[Question]
) -> Expr:
    """Columns of x, copies of some without NaN, and answers to questions, as a `Descent` says."""
    if not copied and not questions:
        return x
    parts = [node.op("strided_slice", x, axes=(1,), begin=(0,), end=(width,))]
    if copied:
        some = _taken(node, x, copied)
        low = node.number(-np.inf, x)
        parts.append(node.op("where", node.op("isnan", some), low, some))
    for mode, group in groupby(questions, key=lambda q: q[1]):
        parts.append(_answers(node, x, mode, list(group)))
    return node.op("concat", tuple(parts), axis=1)


def _taken(node: Node, x: Expr, columns: Sequence[int]) -> Expr:
    return node.op("take", x, Constant(np.asarray(columns, np.int64)), axis=1)


_COMPARISONS = {
    "LEQ": "less_equal", "LT": "less", "GTE": "greater_equal", "GT": "greater", "EQ": "equal",
    "NEQ": "not_equal", "MEMBER": "equal",
}  # fmt: skip


def _answers(node: Node, x: Expr, mode: str, questions: Sequence[Question]) -> Expr:
    """1 where a question's answer is yes, else 0; the questions are of one mode."""
    some = _taken(node, x, [column for column, *_ in questions])
    kind = node.dtype_of(x).numpy
    longest = max(len(values) for _, _, values, _ in questions)
    table = np.full((len(questions), max(longest, 1)), np.nan, kind)
    for k, (_, _, values, _) in enumerate(questions):
        table[k, : len(values)] = values
    if mode == "MEMBER":
        wide = node.op("expand_dims", some, axis=2)
        found = node.op("any", node.op("equal", wide, Constant(table)), axis=2)
    else:
        found = node.op(_COMPARISONS[mode], some, Constant(table[:, 0]))
    missing = np.asarray([m for *_, m in questions])
    if missing.any():
        nan = node.op("logical_and", node.op("isnan", some), Constant(missing))
        found = node.op("logical_or", found, nan)
    return node.op("astype", found, dtype=node.dtype_of(x))


def _regressor(node: Node) -> Value:
    kind = working(node.dtype_of(node.tensor(0)))
    forest = classic_forest(node, "target", kind, node.int_of("n_targets", 1))
    how = node.text_of("aggregate_function", "SUM")
    if how not in _JOINS:
        raise UnityError(f"aggregate_function {how!r}; expected one of {', '.join(_JOINS)}")
    found = joined(node, forest, how)
    base = base_values(node, kind)
    if base.size:
        found = node.op("add", found, Constant(_for_all(base, forest.target_count)))
    return node.cast(of_targets(node, found, forest.target_count, post_transform(node)), FLOAT32)


def _for_all(base: Array, count: int) -> Array:
    if base.size not in (1, count):
        raise UnityError(f"base_values has {base.size} elements for {count} targets")
    return base


def _table(node: Node) -> Value:
    kind = node.dtype_of(node.tensor(0))
    forest = table_forest(node, working(kind))
    numbers = node.int_of("aggregate_function", 1), node.int_of("post_transform", 0)
    for name, number, known in zip(
        ("aggregate_function", "post_transform"), numbers, (_JOINS, TRANSFORMS), strict=True
    ):
        if not 0 <= number < len(known):
            raise UnityError(f"{name} is {number}; expected 0 to {len(known) - 1}")
    found = joined(node, forest, list(_JOINS)[numbers[0]])
    return node.cast(of_targets(node, found, forest.target_count, TRANSFORMS[numbers[1]]), kind)


def _classifier(node: Node) -> list[Value]:
    kind = working(node.dtype_of(node.tensor(0)))
    labels = class_labels(node, "classlabels_int64s")
    count = len(labels[0] or labels[1] or ())
    forest = classic_forest(node, "class", kind, count)
    base, how = base_values(node, kind), post_transform(node)
    given = np.unique(forest.targets)
    scores = joined(node, forest, "SUM")
    if count == 2 and len(given) == 1:
        score = _one_score(node, scores, int(given[0]), base)
        positive = bool(np.all(np.greater_equal(forest.weights, 0)))
        index, scores = _two_classes(node, score, positive, how)
    else:
        if base.size:
            scores = node.op("add", scores, Constant(_for_all(base, count)))
        index = _greatest(node, scores, given, count)
        scores = transformed(node, scores, how)
    return [labelled(node, index, labels), node.cast(scores, FLOAT32)]


def _one_score(node: Node, scores: Expr, at: int, base: Array) -> Expr:
    """The only score that leaves give, ``[rows, 1]``."""
    if at == 1 or base.size > 1:
        what = "the second alone" if at == 1 else f"one, and {base.size} base_values"
        raise node.gap(f"two classes of which leaves give to {what}")
    score = node.op("strided_slice", scores, axes=(1,), begin=(at,), end=(at + 1,))
    return node.op("add", score, Constant(base)) if base.size else score


def _two_classes(node: Node, score: Expr, positive: bool, how: str) -> tuple[Expr, Expr]:
    """The index of the class ``[rows]`` and both scores, where leaves give to one class alone.

    Weights that are all positive are probabilities; others are distances from a border.
    """
    bound = node.number(0.5 if positive else 0, score)
    index = node.op("squeeze", node.op("greater", score, bound), axis=1)
    index = node.op("astype", index, dtype="int64")
    if how not in ("NONE", "LOGISTIC"):
        raise node.gap(f"post_transform {how} of one score for two classes")
    if positive and how == "NONE":
        return index, beside(node, complement(node, score), score)
    return index, transformed(node, beside(node, node.op("negative", score), score), how)


def _greatest(node: Node, scores: Expr, given: Ints, count: int) -> Expr:
    """The class of the greatest score, of those that some leaf gives to."""
    if 0 < len(given) < count:
        hidden = np.full(count, -np.inf, node.dtype_of(scores).numpy)
        hidden[given] = 0
        scores = node.op("add", scores, Constant(hidden))
    return node.op("argmax", scores, axis=1)


CONVERTERS: dict[str, Converter] = {
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "TreeEnsemble": _table,
}
