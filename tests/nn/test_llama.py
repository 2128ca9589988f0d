"""A Llama of unity.nn: what a pass over all words says, steps with caches say as well."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity

from .llama import FEATURES, HEADS, SHARED, SIZE, WORDS, Llama, caches, inputs

Floats = npt.NDArray[np.float32]
RNG = np.random.default_rng(0)
LAYERS = 1


def angles(begin: int, end: int) -> tuple[Floats, Floats]:
    """Cosines and sines of positions."""
    rates = 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    turned = np.concatenate([np.arange(begin, end)[:, None] * rates] * 2, axis=1)
    return np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)


def by_numpy(state: dict[str, Floats], tokens: npt.NDArray[np.int64]) -> Floats:
    """The same model, written down once more."""
    cos, sin = (a[:, None, :] for a in angles(0, len(tokens)))
    x = state["embed_tokens.weight"][tokens]

    def norm(v: Floats, name: str) -> Floats:
        scaled = v / np.sqrt((v * v).mean(-1, keepdims=True) + np.float32(1e-5))
        return np.asarray(scaled * state[f"{name}.weight"], np.float32)

    def turned(v: Floats) -> Floats:
        crossed = np.concatenate([-v[..., SIZE // 2 :], v[..., : SIZE // 2]], -1)
        return np.asarray(v * cos + crossed * sin, np.float32)

    for k in range(LAYERS):
        at = f"layers.{k}"
        y = norm(x, f"{at}.input_layernorm")
        q, key, v = (y @ state[f"{at}.self_attn.{p}_proj.weight"].T for p in "qkv")
        q = turned(q.reshape(-1, HEADS, SIZE))
        key = turned(key.reshape(-1, SHARED, SIZE)).repeat(HEADS // SHARED, 1)
        v = v.reshape(-1, SHARED, SIZE).repeat(HEADS // SHARED, 1)
        scores = np.einsum("ihd,jhd->hij", q, key) / np.sqrt(SIZE)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        made = np.einsum("hij,jhd->ihd", weights, v).reshape(len(tokens), -1)
        x = x + made @ state[f"{at}.self_attn.o_proj.weight"].T
        y = norm(x, f"{at}.post_attention_layernorm")
        gate = y @ state[f"{at}.mlp.gate_proj.weight"].T
        up = y @ state[f"{at}.mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ state[f"{at}.mlp.down_proj.weight"].T
    return np.asarray(norm(x, "norm") @ state["embed_tokens.weight"].T, np.float32)


@pytest.mark.long("compiles a decoder, and its step with caches")
def test_a_pass_and_steps_with_caches_agree() -> None:
    model = Llama(LAYERS)
    model.initialize(scale=0.3)
    state = {k: np.asarray(v, np.float32) for k, v in model.state().items()}
    assert state["layers.0.self_attn.k_proj.weight"].shape == (SHARED * SIZE, FEATURES)
    whole = unity.compile(model.export(inputs()))
    tokens = RNG.integers(0, WORDS, (1, 7))
    scores = whole(tokens, *angles(0, 7))
    np.testing.assert_allclose(scores[0], by_numpy(state, tokens[0]), rtol=1e-3, atol=1e-4)
    step = unity.compile(model.export({**inputs(), **caches(LAYERS)}, method="step"))
    kept = [np.zeros((1, 9, SHARED, SIZE), np.float32) for _ in range(2 * LAYERS)]
    for begin, end in ((0, 4), (4, 5), (5, 7)):
        sizes = (begin, 9 - end)
        found, kept = step(tokens[:, begin:end], *angles(begin, end), sizes, *kept)
        np.testing.assert_allclose(found[0], scores[0, begin:end], rtol=1e-3, atol=1e-4)
