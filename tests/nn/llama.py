"""A decoder of language, as Llama is: small, of unity.nn alone."""

from __future__ import annotations

from unity import nn
from unity.ir.dims import Dim
from unity.script import R, Tensor, dim, f32, i64

HEADS, SHARED, SIZE, FEATURES, HIDDEN, WORDS = 4, 2, 8, 32, 48, 50


class Gated(nn.Module):
    """SwiGLU."""

    def __init__(self) -> None:
        self.gate_proj = nn.Linear(FEATURES, HIDDEN, bias=False)
        self.up_proj = nn.Linear(FEATURES, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, FEATURES, bias=False)

    def forward(self, x: nn.Value) -> nn.Value:
        return self.down_proj(nn.ops.nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention, then a gated layer, each behind a norm and beside what goes on."""

    def __init__(self) -> None:
        self.self_attn = nn.Attention(FEATURES, HEADS, SHARED, SIZE)
        self.mlp = Gated()
        self.input_layernorm = nn.RMSNorm(FEATURES)
        self.post_attention_layernorm = nn.RMSNorm(FEATURES)

    def forward(
        self, x: nn.Value, cos: nn.Value, sin: nn.Value, cache: nn.KVCache | None
    ) -> nn.Value:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Scores of the next word at each position."""

    def __init__(self, layers: int = 2) -> None:
        self.embed_tokens = nn.Embedding(WORDS, FEATURES)
        self.layers = [Layer() for _ in range(layers)]
        self.norm = nn.RMSNorm(FEATURES)

    def forward(self, tokens: nn.Value, cos: nn.Value, sin: nn.Value) -> nn.Value:
        return self.scores(tokens, cos, sin, [None] * len(self.layers))

    def scores(
        self, tokens: nn.Value, cos: nn.Value, sin: nn.Value, caches: list[nn.KVCache | None]
    ) -> nn.Value:
        x = self.embed_tokens(tokens)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cos, sin, cache)
        return self.norm(x) @ nn.ops.permute_dims(self.embed_tokens.weight, (1, 0))

    def step(
        self, tokens: nn.Value, cos: nn.Value, sin: nn.Value, sizes: nn.Value, **caches: nn.Value
    ) -> tuple[nn.Value, list[nn.Value]]:
        """Scores of new words, and the caches with them; `sizes` are those of `PAST`, `ROOM`."""
        given = [
            nn.KVCache(caches[f"keys{k}"], caches[f"values{k}"], PAST)
            for k in range(len(self.layers))
        ]
        scores = self.scores(tokens, cos, sin, [*given])
        return scores, [v for cache in given for v in (cache.keys, cache.values)]


PAST, NEW, ROOM = dim("past", min=0), dim("new", min=1), dim("room", min=0)


def inputs(positions: Dim = NEW) -> dict[str, object]:
    """Types of what a model is given."""
    angles = f32[Tensor, positions, SIZE]
    return {"tokens": i64[Tensor, 1, positions], "cos": angles, "sin": angles}


def caches(layers: int = 2) -> dict[str, object]:
    """Types of the caches of a step."""
    kind = f32[Tensor, 1, PAST + NEW + ROOM, SHARED, SIZE]
    found = {f"{what}{k}": kind for k in range(layers) for what in ("keys", "values")}
    return {"sizes": R.Shape(PAST, ROOM), **found}
