"""Each road forced by an override computes the same: the benchmark's models, smaller.

The full sizes run in ``python -m tests.bench.roads``, which writes how far apart the roads are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest

import unity
from tests.bench import cnn, recurrent, transformer
from tests.bench.models import decoder_step, frames, images, tokens
from tests.bench.peers import relative_error
from tests.bench.work import Feeds
from unity.transform.graph.resolve import ENGINES

ROADS = ("library:openblas", "engine:onnxruntime", "engine:openvino", "static")
FORMS = {"resnet18": ("tir:direct", "tir:winograd"), "mlp": ("tir:unpacked",)}


def small_image() -> Feeds:
    return {"image": np.ascontiguousarray(images(1)["image"][:, :, :64, :64])}


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], Callable[[], Feeds]]] = {
    "mlp": (cnn.mlp, lambda: {"x": np.random.default_rng(0).random((1, 784), np.float32)}),
    "resnet18": (partial(cnn.resnet, 18, size=64, stages=1), small_image),
    "bert": (
        partial(transformer.bert, 1, 64, 4, 128, 500, length="S"),
        partial(tokens, 9, 500),
    ),
    "gpt2": (
        partial(transformer.gpt2, 1, 64, 4, 128, 500, 256),
        partial(decoder_step, 5, 1, 4, 16, 500),
    ),
    "lstm": (partial(recurrent.recurrent, "LSTM", 4, 128, 32), partial(frames, 4)),
    "gru": (partial(recurrent.recurrent, "GRU", 4, 128, 32), partial(frames, 4)),
}


@pytest.mark.long("compiles a model for each road")
@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", list(MODELS))
def test_forced_roads_give_equal_numbers(name: str) -> None:
    build, given = MODELS[name]
    model, feeds = build(), given()
    ours = unity.compile(model, resolve={"*": "tir"})
    assert all(choice.startswith("tir") for choice in ours.explain().counts())
    want = ours.run(feeds)
    for road in (*ROADS, *FORMS.get(name, ())):
        engine = ENGINES.get(road.removeprefix("engine:"))
        if engine is not None and engine.missing() is not None:
            continue
        other = unity.compile(model, resolve={"*": road})
        got = other.run(feeds)
        errors = [relative_error(got[k], want[k]) for k in want]
        assert max(errors) < 1e-4, (road, errors)
        taken = [c for c in other.explain().counts() if c.startswith(road)]
        if road == "static":  # by estimate: whatever it takes
            assert other.explain().policy == "static"
        else:
            assert taken, road
