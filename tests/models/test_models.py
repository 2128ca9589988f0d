"""The models of the benchmark, smaller: outputs against onnxruntime, lengths without recompiling.

The full sizes run in ``python -m tests.bench``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import unity
from tests.bench import cnn, recurrent, transformer
from tests.bench.models import decoder_step, tokens
from unity.script import constants_of, parse, print_module

Array = npt.NDArray[np.generic]
SMALL_GPT = {"layers": 2, "width": 64, "heads": 4, "ffn": 128, "vocab": 500, "context": 256}


def assert_close(got: Array, want: Array) -> None:
    """Within 1e-4 of the largest value."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    a, b = got.astype(np.float64), want.astype(np.float64)
    scale = max(float(np.abs(b).max(initial=0)), 1e-30)
    assert float(np.abs(a - b).max(initial=0)) / scale < 1e-4


def expected(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def compare(model: onnx.ModelProto, executable: unity.Executable, feeds: dict[str, Array]) -> None:
    got = executable.run(feeds)
    want = expected(model, feeds)
    assert list(got) == list(want)
    for name in want:
        assert_close(np.asarray(got[name]), want[name])


def image(batch: int, size: int) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {"image": rng.standard_normal((batch, 3, size, size), np.float32)}


@pytest.mark.long("compiles a network of every pattern that a ResNet has")
@pytest.mark.rotated(2)
@pytest.mark.parametrize("depth", [18, 50])
def test_resnet(depth: int) -> None:
    """Its first two stages, which have every pattern of it."""
    model = cnn.resnet(depth, batch="N", size=64, stages=2)
    executable = unity.compile(model)
    for batch in (1, 3):
        compare(model, executable, image(batch, 64))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [18, 50])
def test_the_whole_resnet(depth: int) -> None:
    model = cnn.resnet(depth, size=64)
    compare(model, unity.compile(model), image(1, 64))


@pytest.mark.rotated(1)
@pytest.mark.parametrize("stages", [3, pytest.param(7, marks=pytest.mark.slow)])
def test_mobilenet(stages: int) -> None:
    model = cnn.mobilenetv2(size=64, stages=stages)
    compare(model, unity.compile(model), image(1, 64))


@pytest.mark.long("compiles an encoder twice, of known and unknown length")
@pytest.mark.rotated(1)
def test_bert() -> None:
    model = transformer.bert(1, 64, 4, 128, 500, batch="B", length="S")
    executable = unity.compile(model)
    for length in (1, 7, 32):
        feeds = tokens(length, 500)
        feeds["attention_mask"][:, length // 2 :] = 0
        compare(model, executable, feeds)


@cache
def decoder() -> tuple[onnx.ModelProto, unity.Executable]:
    model = transformer.gpt2(**SMALL_GPT)
    return model, unity.compile(model)


@pytest.mark.long("compiles a decoder and runs it twenty times")
@pytest.mark.rotated(1)
def test_one_decoder_serves_twenty_lengths() -> None:
    model, executable = decoder()
    for past in range(0, 200, 10):
        compare(model, executable, decoder_step(past, 2, 4, 16, 500))


@pytest.mark.long("compiles a decoder of unknown lengths")
@pytest.mark.rotated(1)
def test_several_new_tokens_at_once() -> None:
    model, executable = decoder()
    feeds = decoder_step(9, 2, 4, 16, 500)
    feeds["input_ids"] = np.arange(5)[None]
    compare(model, executable, feeds)


@pytest.mark.rotated(1)
def test_a_wrong_shape_names_the_symbol() -> None:
    _, executable = decoder()
    feeds = decoder_step(9, 2, 4, 16, 500)
    feeds["past_v1"] = feeds["past_v1"][:, :, :4]
    with pytest.raises(unity.UnityError, match=r"past_v1.*axis 2.*\bP\b.*4.*9"):
        executable.run(feeds)


@pytest.mark.parametrize(
    "model",
    [
        cnn.resnet(18, "N", 64, stages=2),
        transformer.gpt2(**SMALL_GPT),
        transformer.bert(1, 64, 4, 128, 500),
    ],
    ids=["resnet18", "gpt2", "bert"],
)
def test_imported_models_print_and_parse(model: onnx.ModelProto) -> None:
    module = unity.load(model)
    text = print_module(module)
    assert unity.structural_equal(parse(text, constants_of(module)), module)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_over_lengths(kind: str) -> None:
    model = recurrent.recurrent(kind, steps="T", width=20, hidden=32, classes=5)
    executable = unity.compile(model)
    assert executable.native() == {"main": "native"}
    rng = np.random.default_rng(2)
    for steps in (7, 1, 30):
        compare(model, executable, {"x": rng.standard_normal((steps, 1, 20), np.float32)})
