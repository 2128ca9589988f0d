"""TfIdfVectorizer, of numbers and of words, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx

POOL = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
"""Four words, then three pairs."""


def vectorizer(*, words: bool, rank: int = 2, **more: Any) -> onnx.ModelProto:
    options: dict[str, Any] = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
        "pool_strings" if words else "pool_int64s": [f"w{k}" for k in POOL] if words else POOL,
    }  # fmt: skip
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **{**options, **more})
    kind = TensorProto.STRING if words else TensorProto.INT64
    shape = ["rows", "words"][-rank:]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], 7])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {"max_skip_count": 3, "min_gram_length": 2},
        {"mode": "IDF", "max_skip_count": 1, "weights": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]},
        {"mode": "TFIDF", "max_skip_count": 5, "weights": [0.5, 2.0, 3.0, 4.0, 5.0, 6.0, 0.1]},
    ],
)
def test_rows_of_unknown_length(more: dict[str, Any], words: bool) -> None:
    of = vectorizer(words=words, **more)
    session, executable = ort.InferenceSession(of.SerializeToString()), unity.compile(of)
    rng = np.random.default_rng(0)
    for length in (9, 2, 1):
        x = rng.integers(1, 9, (3, length))
        given = np.array([[f"w{k}" for k in row] for row in x], object) if words else x
        (want,) = session.run(None, {"x": given})
        np.testing.assert_array_equal(np.asarray(executable(given)), want)


def test_one_row() -> None:
    of = vectorizer(words=False, rank=1)
    x = np.array([5, 6, 2, 7, 8])
    (want,) = ort.InferenceSession(of.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(np.asarray(unity.compile(of)(x)), want)


def test_a_pool_of_another_kind_is_refused() -> None:
    with pytest.raises(UnityError, match="not both strings or both numbers"):
        from_onnx(vectorizer(words=True, pool_strings=None, pool_int64s=POOL))


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("columns", [[2, 0, 1], [0, 1, 1]])
def test_weights_are_those_of_runs(mode: str, columns: list[int]) -> None:
    """The i-th is that of the i-th run of the pool, whatever column it is counted in."""
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=1, max_gram_length=1,
        max_skip_count=0, ngram_counts=[0], ngram_indexes=columns, pool_int64s=[1, 3, 7],
        weights=[10.0, 20.0, 20.0],
    )  # fmt: skip
    given = [helper.make_tensor_value_info("x", TensorProto.INT64, [2, 6])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    model = helper.make_model(
        helper.make_graph([node], "g", given, made),
        opset_imports=[helper.make_opsetid("", 9)],
        ir_version=8,
    )
    x = np.array([[1, 1, 3, 3, 3, 7], [3, 3, 2, 2, 2, 7]])
    session = ort.InferenceSession(model.SerializeToString())
    (want,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(unity.compile(model).run({"x": x})["y"], want)
