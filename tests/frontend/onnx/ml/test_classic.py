"""Linear models, support vector machines and what prepares their rows, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import unity
from tests.frontend.onnx.ml.both import Array, agree, compiled, ours, theirs
from tests.frontend.onnx.ml.forests import model_of
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.runtime import load

Outputs: TypeAlias = list[tuple[str, int, Sequence[int | str]]]
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def scores(op: str, classes: int, attributes: dict[str, Any], columns: int = 4) -> onnx.ModelProto:
    outputs = [("label", INT64, ["n"]), ("y", FLOAT, ["n", "c"])]
    labels = {"classlabels_ints": [7, 3, 11, 0, 5][:classes], **attributes}
    return model_of(op, labels, columns, outputs, version=1)


def values(op: str, attributes: dict[str, Any], columns: int = 4, kind: int = FLOAT,
           result: int | None = None, version: int = 1) -> onnx.ModelProto:  # fmt: skip
    outputs: Outputs = [("y", kind if result is None else result, ["n", "m"])]
    return model_of(op, attributes, columns, outputs, kind, version)


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(how: str, classes: int) -> None:
    attributes = {"coefficients": floats(classes, 4).ravel().tolist(), "post_transform": how,
                  "intercepts": floats(classes, seed=1).tolist()}  # fmt: skip
    agree(scores("LinearClassifier", classes, attributes), floats(20, 4, seed=2))


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC"])
def test_linear_classifier_of_one_score(how: str) -> None:
    attributes = {"coefficients": floats(4).tolist(), "intercepts": [0.25], "post_transform": how}
    agree(scores("LinearClassifier", 2, attributes), floats(20, 4, seed=2))


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets: int) -> None:
    attributes = {"coefficients": floats(targets, 4).ravel().tolist(), "targets": targets,
                  "intercepts": floats(targets, seed=1).tolist()}  # fmt: skip
    agree(values("LinearRegressor", attributes), floats(20, 4, seed=2), run=compiled)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    attributes = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 3.0], "n_supports": 5,
                  "support_vectors": floats(20).tolist(), "rho": [0.25], "one_class": one_class,
                  "coefficients": floats(5, seed=1).tolist()}  # fmt: skip
    agree(values("SVMRegressor", attributes), floats(20, 4, seed=2))


@pytest.mark.parametrize("probable", [False, True])
@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 2, 4), (1, 2, 1, 3)])
def test_svm_classifier(kernel: str, sizes: tuple[int, ...], probable: bool) -> None:
    count, vectors = len(sizes), sum(sizes)
    pairs = count * (count - 1) // 2
    attributes = {"kernel_type": kernel, "kernel_params": [0.3, 0.0, 3.0],
                  "support_vectors": floats(vectors * 4).tolist(), "vectors_per_class": sizes,
                  "coefficients": floats(vectors * (count - 1), seed=1).tolist(),
                  "rho": floats(pairs, seed=3).tolist()}  # fmt: skip
    if probable:
        attributes |= {"prob_a": (floats(pairs, seed=4) - 2).tolist(),
                       "prob_b": floats(pairs, seed=5).tolist()}  # fmt: skip
    agree(scores("SVMClassifier", count, attributes), floats(20, 4, seed=2))


def test_rows_without_support_vectors() -> None:
    attributes = {"coefficients": floats(4).tolist(), "rho": [0.5], "n_supports": 0,
                  "kernel_params": [0.0, 0.0, 0.0], "support_vectors": [0.0]}  # fmt: skip
    agree(values("SVMRegressor", attributes), floats(20, 4, seed=2))


@pytest.mark.parametrize("kind", [FLOAT, TensorProto.DOUBLE, INT64])
def test_scaler(kind: int) -> None:
    attributes = {"offset": floats(4).tolist(), "scale": floats(4, seed=1).tolist()}
    x = (floats(20, 4, seed=2) * 9).astype(helper.tensor_dtype_to_np_dtype(kind))
    agree(values("Scaler", attributes, kind=kind, result=FLOAT), x)
    one = {"offset": [0.5], "scale": [3.0]}
    agree(values("Scaler", one, kind=kind, result=FLOAT), x)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = floats(20, 4)
    x[3] = 0
    if norm == "MAX":  # onnxruntime divides by the greatest, ONNX says by the greatest absolute
        x = np.abs(x)
    agree(values("Normalizer", {"norm": norm}), x)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("missing", [np.nan, 2.0])
def test_imputer(width: int, missing: float) -> None:
    x = floats(20, 4)
    x[::3, 1] = missing
    attributes = {"imputed_value_floats": [5.0, 6.0, 7.0, 8.0][:width]}
    agree(values("Imputer", {**attributes, "replaced_value_float": missing}), x)


def test_imputer_of_integers() -> None:
    x = np.arange(12).reshape(3, 4) % 5
    attributes = {"imputed_value_int64s": [10, 20, 30, 40], "replaced_value_int64": 3}
    agree(values("Imputer", attributes, kind=INT64), x)


def test_binarizer() -> None:
    agree(values("Binarizer", {"threshold": 0.25}), np.array([[0.25, 0.3, -1, np.inf]], np.float32))


def picked(columns: list[int], shape: Sequence[int | str]) -> onnx.ModelProto:
    node = helper.make_node("ArrayFeatureExtractor", ["x", "at"], ["y"], domain="ai.onnx.ml")
    at = helper.make_tensor("at", INT64, [len(columns)], columns)
    x = helper.make_tensor_value_info("x", FLOAT, shape)
    y = helper.make_tensor_value_info("y", FLOAT, None)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "picked", [x], [y], [at])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_array_feature_extractor() -> None:
    agree(picked([2, 0, 2], ["n", 4]), floats(5, 4))
    agree(picked([2, 0], [4]), floats(4))
    with pytest.raises(UnityError, match="picks the columns"):
        from_onnx(picked([4], ["n", 4]))


def test_feature_vectorizer() -> None:
    node = helper.make_node("FeatureVectorizer", ["a", "b"], ["y"], domain="ai.onnx.ml",
                            inputdimensions=[2, 3])  # fmt: skip
    inputs = [helper.make_tensor_value_info("a", FLOAT, ["n", 2]),
              helper.make_tensor_value_info("b", FLOAT, ["n", 3])]  # fmt: skip
    y = helper.make_tensor_value_info("y", FLOAT, ["n", 5])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "beside", inputs, [y])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    agree(model, floats(5, 2), floats(5, 3))


WORDS = np.array([["b", "a"], ["new", ""], ["a", "other"]], object)


@pytest.mark.parametrize("run", [ours, compiled])
def test_strings_to_numbers_and_back(run: Any) -> None:
    to_ints = {"keys_strings": ["a", "b", "c"], "values_int64s": [3, 1, 2], "default_int64": 9}
    agree(values("LabelEncoder", to_ints, 2, STRING, INT64, 2), WORDS, run=run)
    to_floats = {"keys_strings": ["a", "b"], "values_floats": [0.5, np.nan]}
    agree(values("LabelEncoder", to_floats, 2, STRING, FLOAT, 2), WORDS, run=run)
    to_words = {"keys_strings": ["a", "b"], "values_strings": ["x", "a"], "default_string": "none"}
    agree(values("LabelEncoder", to_words, 2, STRING, STRING, 2), WORDS, run=run)
    numbers = np.array([[3, 1], [4, 0]])
    back = {"keys_int64s": [3, 1], "values_strings": ["three", "one"]}
    agree(values("LabelEncoder", back, 2, INT64, STRING, 2), numbers, run=run)


def test_numbers_to_numbers() -> None:
    x = np.array([[1.5, np.nan], [0.0, 7.0]], np.float32)
    attributes = {"keys_floats": [1.5, np.nan, 7.0], "values_int64s": [1, 2, 3]}
    agree(values("LabelEncoder", attributes, 2, FLOAT, INT64, 2), x)
    agree(values("LabelEncoder", attributes, 2, FLOAT, INT64, 4), x)
    attributes = {"keys_floats": [1.5, 7.0], "values_floats": [-1.0, 2.0], "default_float": 0.25}
    agree(values("LabelEncoder", attributes, 2, FLOAT, FLOAT, 2), x)


def test_categories() -> None:
    attributes = {"cats_int64s": [3, 1, 2], "cats_strings": ["a", "b", "c"]}
    agree(values("CategoryMapper", attributes, 2, STRING, INT64), WORDS)
    agree(values("CategoryMapper", attributes, 2, INT64, STRING), np.array([[1, 3], [5, 2]]))


@pytest.mark.parametrize("kind", [STRING, INT64, FLOAT])
def test_one_hot(kind: int) -> None:
    outputs: Outputs = [("y", FLOAT, ["n", 2, 2])]
    x = WORDS
    attributes: dict[str, Any] = {"cats_strings": ["a", "b"]}
    if kind != STRING:
        attributes = {"cats_int64s": [2, 5]}
        x = np.array([[2, 5], [3, 2]], helper.tensor_dtype_to_np_dtype(kind))
    agree(model_of("OneHotEncoder", attributes, 2, outputs, kind, 1), x)


def with_maps(labels: dict[str, Any]) -> onnx.ModelProto:
    name, keys = next(iter(labels.items()))
    weights: Any = {"coefficients": floats(len(keys), 4).ravel().tolist(), "intercepts": [0.0] * 3}
    named: Any = {name.replace("int64s", "ints"): keys}
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml",
                         post_transform="SOFTMAX", **weights, **named),
        helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", **labels),
    ]  # fmt: skip
    is_text = isinstance(keys[0], str)
    value = helper.make_tensor_type_proto(FLOAT, [])
    of_maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(STRING if is_text else INT64, value)
    )
    outputs = [helper.make_tensor_value_info("label", STRING if is_text else INT64, ["n"]),
               helper.make_value_info("maps", of_maps)]  # fmt: skip
    graph = helper.make_graph(
        nodes, "maps", [helper.make_tensor_value_info("x", FLOAT, ["n", 4])], outputs
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("run", [ours, compiled])
@pytest.mark.parametrize(
    "labels",
    [{"classlabels_strings": ["cat", "dog", "cow"]}, {"classlabels_int64s": [5, 3, 9]}],
    ids=["strings", "ints"],
)
def test_maps_of_labels(labels: dict[str, Any], run: Any) -> None:
    agree(with_maps(labels), floats(6, 4, seed=3), run=run)


def test_a_saved_program_knows_its_strings(tmp_path: Any) -> None:
    executable = unity.compile(with_maps({"classlabels_strings": ["cat", "dog", "cow"]}))
    x = floats(6, 4, seed=3)
    executable.save(tmp_path / "m.unity")
    again = load(tmp_path / "m.unity")
    assert again(x)[0].tolist() == executable(x)[0].tolist()
    assert again(x)[1] == executable(x)[1]
    assert again.run({"x": x})["maps"] == executable(x)[1]
    with pytest.raises(UnsupportedError) as error:
        executable.export_library(tmp_path / "libm.so")
    assert "main takes or gives strings or maps" in str(error.value)


def test_a_map_comes_in() -> None:
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml",
                            string_vocabulary=["a", "b", "c"])  # fmt: skip
    kind = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))
    y = helper.make_tensor_value_info("y", FLOAT, [1, 3])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "map", [helper.make_value_info("x", kind)], [y])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    given = {"c": 2.5, "a": -1.0, "other": 9.0}
    for run in (ours, compiled):
        np.testing.assert_array_equal(run(model, given)[0], theirs(model, given)[0])
    with pytest.raises(UnityError, match="must be a dict with keys as"):
        compiled(model, np.zeros((1, 3), np.float32))


def moving(op: str, inputs: int = 1, kind: int = STRING, **attributes: Any) -> onnx.ModelProto:
    names = [f"x{k}" for k in range(inputs)]
    node = helper.make_node(op, names, ["y"], **attributes)
    infos = [helper.make_tensor_value_info(n, STRING, ["n", 2]) for n in names]
    graph = helper.make_graph([node], op, infos, [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_strings_are_moved_and_compared() -> None:
    other = np.array([["b", "c"], ["newer", ""], ["a", "other"]], object)
    agree(moving("Concat", 2, axis=1), WORDS, other)
    agree(moving("Transpose"), WORDS, run=compiled)
    agree(moving("Equal", 2, TensorProto.BOOL), WORDS, other)


def test_what_looks_into_strings_is_refused() -> None:
    with pytest.raises(UnsupportedError) as error:
        from_onnx(moving("Hardmax", 1, FLOAT))
    assert "an input of strings" in str(error.value)
    with pytest.raises(UnityError, match="input 'x0' must be strings"):
        compiled(moving("Identity"), np.zeros((3, 2)))
    attributes = {"keys_int64s": [1], "values_int64s": [2]}
    with pytest.raises(UnityError, match="keys of int64 for an input"):
        from_onnx(values("LabelEncoder", attributes, 2, STRING, INT64, 2))


def test_refused_by_name() -> None:
    attributes = {"prob_a": [1.0], "prob_b": [1.0], "vectors_per_class": [1, 1], "rho": [0.0],
                  "coefficients": [1.0, -1.0], "support_vectors": [0.0] * 8}  # fmt: skip
    with pytest.raises(UnsupportedError) as error:
        from_onnx(scores("SVMClassifier", 2, {**attributes, "post_transform": "SOFTMAX"}))
    assert "post_transform SOFTMAX of probabilities" in str(error.value)
    with pytest.raises(UnityError, match="prob_a and prob_b have 2 and 1 elements; expected 1"):
        from_onnx(scores("SVMClassifier", 2, {**attributes, "prob_a": [1.0, 2.0]}))
    with pytest.raises(UnityError, match="3 coefficients for 1 targets of 4 columns"):
        from_onnx(values("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0]}))
