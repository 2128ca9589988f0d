"""`unity.from_sklearn`: what it says without skl2onnx, and with it what scikit-learn predicts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import unity
from unity.errors import UnityError

ROWS = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)


@pytest.mark.skipif(find_spec("skl2onnx") is not None, reason="skl2onnx is installed")
def test_what_is_missing_is_named() -> None:
    with pytest.raises(UnityError, match="needs the package skl2onnx") as error:
        unity.from_sklearn(object(), ROWS)
    assert "unity-mlc[sklearn]" in str(error.value)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2], ["no", "yes"]])
def test_a_pipeline_of_a_forest(labels: list[Any]) -> None:
    pytest.importorskip("skl2onnx")
    ensemble = pytest.importorskip("sklearn.ensemble")
    pipeline = pytest.importorskip("sklearn.pipeline")
    scaling = pytest.importorskip("sklearn.preprocessing")
    wanted = np.asarray(labels)[np.digitize(ROWS.sum(1), [-1, 1][: len(labels) - 1])]
    model = pipeline.make_pipeline(
        scaling.StandardScaler(), ensemble.RandomForestClassifier(10, random_state=0)
    ).fit(ROWS, wanted)
    label, scores = unity.compile(unity.from_sklearn(model, ROWS))(ROWS)
    assert label.tolist() == model.predict(ROWS).tolist()
    np.testing.assert_allclose(scores, model.predict_proba(ROWS), atol=1e-5)


def test_what_skl2onnx_refuses_is_said() -> None:
    pytest.importorskip("skl2onnx")
    with pytest.raises(UnityError, match="skl2onnx can't convert the object"):
        unity.from_sklearn(object(), ROWS)


def test_an_isolation_forest() -> None:
    """skl2onnx converts one to older operators only."""
    pytest.importorskip("skl2onnx")
    ensemble = pytest.importorskip("sklearn.ensemble")
    model = ensemble.IsolationForest(n_estimators=10, random_state=0).fit(ROWS)
    label, scores = unity.compile(unity.from_sklearn(model, ROWS))(ROWS)
    assert label.ravel().tolist() == model.predict(ROWS).tolist()
    np.testing.assert_allclose(scores.ravel(), model.decision_function(ROWS), atol=1e-5)
