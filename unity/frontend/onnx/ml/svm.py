"""SVMRegressor and SVMClassifier: a kernel of rows with support vectors, and a product with it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.dtype import FLOAT32, Array
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value
from .rows import rows_of
from .scores import beside, class_labels, labelled, of_targets, post_transform, transformed

_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_LEAST = 1e-7
"""The probability of one of two classes, at least."""


def _floats(node: Node, name: str) -> npt.NDArray[np.float32]:
    return np.asarray(node.floats_of(name) or (), np.float32)


def _kernel(node: Node, x: Expr, vectors: Array) -> Expr:
    """The kernel of each row with each of some vectors ``[vectors, columns]``."""
    kind = node.text_of("kernel_type", "LINEAR")
    params = node.floats_of("kernel_params") or (0.0, 0.0, 0.0)
    if kind not in _KERNELS or len(params) != 3:
        raise UnityError(f"kernel_type {kind!r} with {len(params)} kernel_params")
    gamma, offset, degree = params
    of = vectors.astype(node.dtype_of(x).numpy)
    if kind == "RBF":
        # Not by products: |x|**2 + |v|**2 - 2 x v loses what rows and vectors have in common.
        apart = node.op("subtract", node.op("expand_dims", x, axis=1), Constant(of))
        distance = node.op("sum", node.op("square", apart), axis=2)
        return node.op("exp", node.op("multiply", distance, node.number(-gamma, x)))
    found = node.op("matmul", x, Constant(np.ascontiguousarray(of.T)))
    if kind == "LINEAR":
        return found
    found = node.op("multiply", found, node.number(gamma, x))
    found = node.op("add", found, node.number(offset, x))
    if kind == "SIGMOID":
        return node.op("tanh", found)
    return node.op("power", found, node.number(degree, x))


def _vectors(flat: Array, count: int, what: str) -> Array:
    if count < 1 or flat.size % count:
        raise UnityError(f"{what} has {flat.size} numbers for {count} vectors")
    return flat.reshape(count, -1)


def _times(node: Node, x: Expr, weights: Array) -> Expr:
    kind = node.dtype_of(x).numpy
    return node.op("matmul", x, Constant(np.ascontiguousarray(weights.astype(kind))))


def _regressor(node: Node) -> Value:
    count, how = node.int_of("n_supports", 0), post_transform(node)
    node.ignore("n_targets")
    coefficients, rho = _floats(node, "coefficients"), _floats(node, "rho")
    if rho.size != 1:
        raise UnityError(f"rho has {rho.size} elements; expected 1")
    if count > 0:
        vectors = _vectors(_floats(node, "support_vectors"), count, "support_vectors")
        found = _kernel(node, rows_of(node, 0, vectors.shape[1]), vectors)
        _require(coefficients, count)
    else:
        node.ignore("kernel_type", "kernel_params", "support_vectors")
        found = rows_of(node, 0, coefficients.size)
    found = _times(node, found, coefficients[:, None])
    found = node.op("add", found, node.number(float(rho[0]), found))
    if node.int_of("one_class", 0):
        above = node.op("greater", found, node.number(0, found))
        found = node.op("where", above, node.number(1, found), node.number(-1, found))
    return node.cast(of_targets(node, found, 1, how), FLOAT32)


def _require(coefficients: Array, count: int) -> None:
    if coefficients.size != count:
        raise UnityError(f"has {coefficients.size} coefficients; expected {count}")


def _classifier(node: Node) -> list[Value]:
    labels, how = class_labels(node, "classlabels_ints"), post_transform(node)
    count = len(labels[0] or labels[1] or ())
    sizes = node.ints_of("vectors_per_class") or ()
    if not sizes:
        raise node.gap("a classifier without support vectors")
    if len(sizes) != count or count < 2 or min(sizes) < 0:
        raise UnityError(f"vectors_per_class {list(sizes)} for {count} classes")
    flat = _floats(node, "coefficients")
    _require(flat, sum(sizes) * (count - 1))
    vectors = _vectors(_floats(node, "support_vectors"), sum(sizes), "support_vectors")
    weights, pairs = _pairs(flat.reshape(count - 1, -1), sizes)
    rho = _floats(node, "rho")
    if rho.size != len(pairs):
        raise UnityError(f"rho has {rho.size} elements; expected {len(pairs)}")
    kernel = _kernel(node, rows_of(node, 0, vectors.shape[1]), vectors)
    scores = _times(node, kernel, weights)
    scores = node.op("add", scores, Constant(rho.astype(node.dtype_of(scores).numpy)))
    index = _voted(node, scores, pairs, count)
    slopes, offsets = _floats(node, "prob_a"), _floats(node, "prob_b")
    if slopes.size or offsets.size:
        if slopes.size != len(pairs) or offsets.size != len(pairs):
            raise UnityError(
                f"prob_a and prob_b have {slopes.size} and {offsets.size} elements; "
                f"expected {len(pairs)}"
            )
        if how != "NONE":
            raise node.gap(f"post_transform {how} of probabilities")
        found = _probabilities(node, scores, (slopes, offsets), pairs, count)
        return [labelled(node, index, labels), node.cast(found, FLOAT32)]
    if count == 2:
        if how not in ("NONE", "LOGISTIC"):
            raise node.gap(f"post_transform {how} of one score for two classes")
        if np.all(np.greater_equal(flat, 0)):
            raise node.gap("a classifier of two classes none of whose coefficients is negative")
        scores = beside(node, node.op("negative", scores), scores)
    return [labelled(node, index, labels), node.cast(transformed(node, scores, how), FLOAT32)]


def _pairs(coefficients: Array, sizes: tuple[int, ...]) -> tuple[Array, list[tuple[int, int]]]:
    """For each pair of classes the weights of all vectors, [vectors, pairs]."""
    begins = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i + 1, len(sizes))]
    weights = np.zeros((begins[-1], len(pairs)), np.float32)
    for k, (i, j) in enumerate(pairs):
        first, second = slice(begins[i], begins[i + 1]), slice(begins[j], begins[j + 1])
        weights[first, k] = coefficients[j - 1, first]
        weights[second, k] = coefficients[i, second]
    return weights, pairs


def _probabilities(
    node: Node,
    scores: Expr,
    lines: tuple[Array, Array],
    pairs: list[tuple[int, int]],
    count: int,
) -> Expr:
    """The probability of each class, by those of pairs: a logistic function of each one's score."""
    slopes, offsets = (Constant(a.astype(node.dtype_of(scores).numpy)) for a in lines)
    moved = node.op("add", node.op("multiply", scores, slopes), offsets)
    first = node.op("sigmoid", node.op("negative", moved))
    first = node.op("clip", first, min=_LEAST, max=1 - _LEAST)
    second = node.op("subtract", node.number(1, first), first)
    both = node.op("concat", [first, second], axis=1)
    places = np.zeros((count, count), np.int64)
    for k, (i, j) in enumerate(pairs):
        places[i, j], places[j, i] = k, k + len(pairs)
    flat = node.op("take", both, Constant(places.reshape(-1)), axis=1)
    rows = node.shape_of(flat)[0]
    return node.op("pairwise_coupling", node.op("reshape", flat, (rows, count, count)))


def _voted(node: Node, scores: Expr, pairs: list[tuple[int, int]], count: int) -> Expr:
    """The class that wins most pairs: the first of a pair where its score is above 0."""
    wins = node.op("astype", node.op("greater", scores, node.number(0, scores)), dtype="float32")
    moves, second = np.zeros((len(pairs), count)), np.zeros(count, np.float32)
    for k, (i, j) in enumerate(pairs):
        moves[k, i] += 1
        moves[k, j] -= 1
        second[j] += 1
    votes = node.op("add", _times(node, wins, moves), Constant(second))
    return node.op("argmax", votes, axis=1)


CONVERTERS: dict[str, Converter] = {
    "SVMClassifier": _classifier,
    "SVMRegressor": _regressor,
}
