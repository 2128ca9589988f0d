"""TfIdfVectorizer: how often words, pairs of words and longer runs stand in each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.ir.dims import always_ge, as_dim, dim_max
from unity.ir.dtype import FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr

Runs: TypeAlias = "npt.NDArray[np.int64]"


def _tf_idf(node: Node) -> Value:
    """Counts of runs in rows, or whether they stand there, times weights."""
    x = node.tensor(0)
    shape = node.shape_of(x)
    if len(shape) not in (1, 2):
        raise UnityError(f"an input of rank {len(shape)}; expected (words) or (rows, words)")
    mode = node.text_of("mode", "")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise UnityError(f"mode {mode!r}; expected TF, IDF or TFIDF")
    least, most = node.int_of("min_gram_length", 1), node.int_of("max_gram_length", 1)
    skips = node.int_of("max_skip_count", 0)
    columns = node.ints_of("ngram_indexes") or ()
    weights = node.floats_of("weights")
    if weights and len(weights) != len(columns):
        raise UnityError(f"{len(weights)} weights for {len(columns)} ngram_indexes")
    if min(columns, default=0) < 0:
        raise UnityError(f"ngram_indexes {tuple(columns)}; expected columns from 0 on")
    width = max(columns, default=-1) + 1
    words = node.op("reshape", node.cast(x, INT64), (-1, shape[-1]))
    rows = node.shape_of(words)[0]
    total: Expr = node.op("zeros", (rows, width), dtype=FLOAT32)
    for length, (pool, runs) in enumerate(_pools(node, columns), 1):
        if not least <= length <= most or not len(pool):
            continue
        # A word alone skips none.
        found = _counts(node, words, pool, range(skips + 1 if length > 1 else 1))
        place = np.zeros((len(pool), width), np.float32)
        at = [columns[k] for k in runs]
        place[np.arange(len(pool)), at] = (
            [weights[k] for k in runs] if weights and mode == "TFIDF" else 1
        )
        total = node.op("add", total, node.op("matmul", found, Constant(place)))
    if mode == "IDF":
        total = node.cast(node.op("greater", total, node.number(0, total)), FLOAT32)
        if weights:
            of_columns = np.zeros(width, np.float32)
            of_columns[list(columns)] = weights
            if (of_columns[list(columns)] != np.asarray(weights, np.float32)).any():
                raise UnityError("runs that are counted in one column have different weights")
            total = node.op("multiply", total, Constant(of_columns))
    return node.op("reshape", total, (*shape[:-1], width))


def _pools(node: Node, columns: Sequence[int]) -> list[tuple[Runs, list[int]]]:
    """For each length from 1 on: the runs of so many words, and which of all runs they are."""
    texts = node.texts_of("pool_strings")
    numbers = node.ints_of("pool_int64s")
    if (texts is None) == (numbers is None):
        raise UnityError("needs pool_strings or pool_int64s, one of them")
    if (texts is not None) != node.has_strings(0):
        raise UnityError("its pool and its input are not both strings or both numbers")
    pool = [node.vocabulary.code(t) for t in texts] if texts is not None else list(numbers or ())
    starts = node.ints_of("ngram_counts") or ()
    found: list[tuple[Runs, list[int]]] = []
    done = 0
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise UnityError(f"ngram_counts {starts} do not part a pool of {len(pool)}")
        count = (end - start) // length
        if done + count > len(columns):
            raise UnityError(f"{len(columns)} ngram_indexes for more runs")
        runs = [tuple(pool[start + k * length : start + (k + 1) * length]) for k in range(count)]
        # Of equal runs the last one counts.
        last = {run: done + k for k, run in enumerate(runs)}
        table = np.array(list(last), np.int64).reshape(len(last), length)
        found.append((table, list(last.values())))
        done += count
    return found


def _counts(node: Node, words: Expr, pool: Runs, skips: Sequence[int]) -> Expr:
    """How often each run stands in each row, (rows, runs), with words skipped between its own."""
    rows, extent = node.shape_of(words)
    count, length = pool.shape
    total: Expr = node.op("zeros", (rows, count), dtype=INT32)
    for skip in skips:
        reach = (length - 1) * (skip + 1)
        starts = as_dim(extent - reach)
        if isinstance(starts, int) and starts <= 0:
            break
        if not always_ge(starts, 0):
            starts = dim_max(starts, 0)
        held: Expr | None = None
        for k in range(length):
            first = k * (skip + 1)
            end = as_dim(starts + first)
            part = node.op(
                "strided_slice", words, axes=(1,), begin=(first,), end=(end,), strides=None
            )
            part = node.op("reshape", node.assert_shape(part, (rows, starts)), (rows, starts, 1))
            same = node.op("equal", part, Constant(pool[:, k]))
            held = same if held is None else node.op("logical_and", held, same)
        assert held is not None
        total = node.op("add", total, node.op("sum", node.cast(held, INT32), axis=(1,)))
    return node.cast(total, FLOAT32)


CONVERTERS: dict[str, Converter] = {"TfIdfVectorizer": _tf_idf}
