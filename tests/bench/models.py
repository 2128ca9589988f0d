"""The benchmark models by name: how to build each one, and seeded inputs for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from . import cnn, recurrent, transformer
from .work import Feeds, Work


def images(batch: int) -> Feeds:
    """A batch of noise the size of ImageNet's images."""
    rng = np.random.default_rng(1)
    return {"image": rng.standard_normal((batch, 3, 224, 224), np.float32)}


def tokens(length: int, vocab: int = 30522) -> Feeds:
    """A sentence of random words, none masked."""
    ids = np.random.default_rng(1).integers(0, vocab, (1, length))
    return {"input_ids": ids, "attention_mask": np.ones((1, length), np.int64)}


def frames(length: int) -> Feeds:
    """A sequence of 128 features."""
    rng = np.random.default_rng(1)
    return {"x": rng.standard_normal((length, 1, 128), np.float32)}


def decoder_step(
    past: int, layers: int = 12, heads: int = 12, size: int = 64, vocab: int = 50257, new: int = 1
) -> Feeds:
    """One new token after `past` cached ones, or `new` of them."""
    rng = np.random.default_rng(1)
    feeds: Feeds = {"input_ids": rng.integers(0, vocab, (1, new))}
    for i in range(layers):
        for which in "kv":
            cache = rng.standard_normal((1, heads, past, size), np.float32)
            feeds[f"past_{which}{i}"] = cache * np.float32(0.5)
    return feeds


LENGTHS = (1, 2, 7, 16, 33, 64, 100, 128, 200, 256, 384, 512)
"""Lengths a dynamic model is tried at: below, at and above the tiles' sizes, even and odd."""


def two_layers() -> onnx.ModelProto:
    """A GPT-2 that is quickly compiled for one length after the other: few layers, few words."""
    return transformer.gpt2(layers=2, vocab=1000)


def two_layer_step(past: int, new: int = 1) -> Feeds:
    """Inputs of it."""
    return decoder_step(past, layers=2, vocab=1000, new=new)


MODELS: Mapping[str, Work] = {
    "mlp": Work(cnn.mlp, lambda n: {"x": np.ones((n, 784), np.float32)}),
    "resnet18": Work(lambda: cnn.resnet(18), images),
    "resnet50": Work(lambda: cnn.resnet(50), images),
    "mobilenetv2": Work(cnn.mobilenetv2, images),
    "bert_base": Work(transformer.bert, tokens, (128,)),
    "bert_base_dynamic": Work(
        lambda: transformer.bert(length="S"),
        tokens,
        LENGTHS,
    ),
    "gpt2_decode": Work(transformer.gpt2, decoder_step, (16, 64, 128, 300, 512, 1000)),
    "gpt2_session": Work(transformer.gpt2, decoder_step, (16, 300, 1000), session=True),
    "bert_2_layers": Work(lambda: transformer.bert(layers=2, length="S"), tokens, LENGTHS),
    "gpt2_2_layers": Work(two_layers, two_layer_step, (*LENGTHS, 1000)),
    "gpt2_2_layers_session": Work(two_layers, two_layer_step, (*LENGTHS, 1000), session=True),
    "gpt2_2_layers_prompt": Work(two_layers, lambda n: two_layer_step(0, n), LENGTHS),
    "lstm": Work(lambda: recurrent.recurrent("LSTM"), frames, (64,)),
    "gru": Work(lambda: recurrent.recurrent("GRU"), frames, (64,)),
}
