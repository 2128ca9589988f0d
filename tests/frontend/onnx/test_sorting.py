"""TopK of rows whose length is unknown."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret

from .programs import check, model


def best(k: str) -> onnx.ModelProto:
    """The best few of all pixels and channels."""
    return model(f"""
    g (float[n, c, h] x) => (float[n, a] values, int64[n, a] indices)
    <int64[2] flat = {{0, -1}}, int64[1] few = {{5}}, int64[1] many = {{400}},
     int64[1] one = {{1}}, int64[1] two = {{2}}> {{
        rows = Reshape(x, flat)
        shape = Shape(rows)
        length = Gather(shape, one)
        {k}
        values, indices = TopK<axis=1>(rows, k)
    }}""")


def agree(of: onnx.ModelProto, *sizes: tuple[int, int]) -> None:
    """Interpreted and compiled, results are onnxruntime's."""
    executable, module = unity.compile(of), from_onnx(of)
    check(module)
    session = ort.InferenceSession(of.SerializeToString())
    for c, h in sizes:
        x = np.random.default_rng(c * h).permutation(2 * c * h).reshape(2, c, h).astype(np.float32)
        want = session.run(None, {"x": x})
        interpreted = interpret(module, "main", [x])
        assert isinstance(interpreted, tuple)
        for found in (interpreted, executable(x)):
            for got, right in zip(found, want, strict=True):
                np.testing.assert_array_equal(np.asarray(got), np.asarray(right))


def test_a_known_number_of_them() -> None:
    of = best("k = Identity(few)")
    agree(of, (1, 5), (3, 7), (2, 100))
    with pytest.raises(UnityError, match=r"\(TopK\).*axis_1_sorted is 4,.* at least 5"):
        unity.compile(of)(np.zeros((1, 2, 2), np.float32))


@pytest.mark.parametrize("most", ["few", "many"])
def test_no_more_than_there_are(most: str) -> None:
    agree(best(f"k = Min({most}, length)"), (1, 1), (1, 4), (1, 5), (3, 7), (5, 100))


def test_all_in_order() -> None:
    agree(best("k = Identity(length)"), (1, 1), (3, 7))


def test_a_number_that_may_be_too_large_is_refused() -> None:
    module = from_onnx(best("k = Mul(length, two)"))
    with pytest.raises(UnityError, match="TopK"):
        interpret(module, "main", [np.zeros((1, 2, 2), np.float32)])
