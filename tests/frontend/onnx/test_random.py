"""Random numbers: documented, the same in each run, distributed as they should be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
import pytest

from tests.conformance.suite import by_interpreter
from unity.frontend.onnx import from_onnx

Array = npt.NDArray[np.float32]
HEAD = '<ir_version: 9, opset_import: ["" : 20]>'


def drawn(text: str, *given: npt.NDArray[np.generic]) -> Array:
    model = onnx.parser.parse_model(f"{HEAD} {text}")
    (found,) = by_interpreter(from_onnx(model), given)
    return np.asarray(found)


def uniform(seed: str, name: str = "node") -> Array:
    attributes = f"<shape: ints = [100, 100], low: float = -1.0{seed}>"
    return drawn(f"g () => (float[100, 100] y) {{ [{name}] y = RandomUniform {attributes} () }}")


def test_the_generator_is_the_one_that_is_documented() -> None:
    def pcg(x: int) -> int:
        state = (x * 747796405 + 2891336453) & 0xFFFFFFFF
        word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & 0xFFFFFFFF
        return (word >> 22) ^ word

    seed = int(np.float32(3.0).view(np.uint32))
    begin = pcg(pcg(seed))
    want = [-1 + 2 * (pcg((begin + k) & 0xFFFFFFFF) >> 8) / 2**24 for k in range(5)]
    np.testing.assert_allclose(uniform(", seed: float = 3.0").ravel()[:5], want, rtol=1e-6)


def test_seeds_and_names_give_other_numbers_and_runs_the_same() -> None:
    found = [uniform(s) for s in (", seed: float = 1.0", ", seed: float = 2.0", "")]
    found.append(uniform("", "other"))
    assert len({x.tobytes() for x in found}) == len(found)
    np.testing.assert_array_equal(found[0], uniform(", seed: float = 1.0"))


def test_uniform_numbers_fill_their_range_evenly() -> None:
    x = uniform("")
    assert x.min() >= -1
    assert x.max() < 1
    counts, _ = np.histogram(x, 16, (-1, 1))
    assert ((counts - 625) ** 2 / 625).sum() < 40  # chi square, 15 degrees: 1 in 2,000 beyond
    assert abs(np.corrcoef(x.ravel()[1:], x.ravel()[:-1])[0, 1]) < 0.04


def test_normal_numbers() -> None:
    x = drawn(
        "g (float[100, 100] x) => (float[100, 100] y) "
        "{ y = RandomNormalLike <mean: float = 2.0, scale: float = 3.0> (x) }",
        np.zeros((100, 100), np.float32),
    )
    assert abs(x.mean() - 2) < 0.1
    assert abs(x.std() - 3) < 0.1
    assert abs(((x - 2) ** 4).mean() / 81 - 3) < 0.3  # a normal distribution's fourth moment


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli(p: float) -> None:
    text = "g (float[10000] x) => (float[10000] y) { y = Bernoulli (x) }"
    x = drawn(text, np.full(10000, p, np.float32))
    assert set(np.unique(x)) <= {0.0, 1.0}
    assert abs(x.mean() - p) < 0.02


def test_what_is_certain_in_half_precision_always_happens() -> None:
    text = "g (float16[40000] x) => (float16[40000] y) { y = Bernoulli (x) }"
    assert drawn(text, np.ones(40000, np.float16)).all()


def test_classes() -> None:
    node = "Multinomial <sample_size: int = 20000> (x)"
    text = f"g (float[2, 3] x) => (int32[2, 20000] y) {{ y = {node} }}"
    shares = np.array([[0.2, 0.5, 0.3], [0.9, 0.0, 0.1]], np.float32)
    with np.errstate(divide="ignore"):
        found = drawn(text, np.log(shares))
    counted = np.stack([np.bincount(row, minlength=3) for row in found]) / 20000
    np.testing.assert_allclose(counted, shares, atol=0.015)


@pytest.mark.parametrize("training", [False, True])
def test_dropout(training: bool) -> None:
    text = "g (float[10000] x, float r, bool t) => (float[10000] y) { y = Dropout (x, r, t) }"
    x = drawn(text, np.ones(10000, np.float32), np.array(0.25, np.float32), np.array(training))
    assert np.isclose(np.unique(x), [0, 4 / 3] if training else [1]).all()
    assert abs(x.mean() - 1) < 0.02
