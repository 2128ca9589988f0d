"""Tutorial 12: models written as modules, with named parameters, and what becomes of them.

Run it: ``python tutorials/12_nn.py``.
"""

from __future__ import annotations

import numpy as np

import unity
from unity import nn
from unity.script import Tensor, dim, f32

# %% A module sets parameters and other modules as attributes; `forward` is written in operators.
# Sizes of values are those of the types that it is exported for: numbers, or symbols.


class Mixer(nn.Module):
    """Tokens that look at each other, then each by itself."""

    def __init__(self, features: int, heads: int) -> None:
        self.norms = [nn.LayerNorm(features), nn.LayerNorm(features)]
        self.attention = nn.Attention(features, heads, causal=False)
        self.wider = nn.Linear(features, 4 * features)
        self.narrower = nn.Linear(4 * features, features)

    def forward(self, x: nn.Value) -> nn.Value:
        """Of (batch, tokens, features)."""
        x = x + self.attention(self.norms[0](x))
        return x + self.narrower(nn.ops.nn.gelu(self.wider(self.norms[1](x))))


class Classifier(nn.Module):
    """Scores of classes for a sequence: two mixers and the mean of what they give."""

    def __init__(self) -> None:
        self.mixers = nn.Sequential(Mixer(32, 4), Mixer(32, 4))
        self.scores = nn.Linear(32, 5, bias=False)

    def forward(self, x: nn.Value) -> nn.Value:
        """Of (batch, tokens, features): the first token says what the sequence is."""
        return self.scores(self.mixers(x)[:, 0])


model = Classifier()
for name, parameter in list(model.named_parameters())[:3]:
    print(name, parameter.type)

# %% Numbers come by name, as torch's ``state_dict`` has them, or are made up to try a model.
model.initialize(seed=0)
state = model.state()
model.load(state)

# %% Exported for a type of inputs it is a module like any other: to be printed, compiled, shipped.
tokens = dim("tokens", min=1)
module = model.export({"x": f32[Tensor, 1, tokens, 32]})
executable = unity.compile(module)
x = np.random.default_rng(1).standard_normal((1, 7, 32), np.float32)
print(executable(x).shape, executable.signature)

# %% Parameters may stay inputs, behind the others, and be bound later: `nn.bind`.
lifted = model.export({"x": f32[Tensor, 1, tokens, 32]}, bind=False)
params = lifted.graph_functions()["main"].params
print(len(params), "inputs:", ", ".join(p.name for p in params[:4]), "...")
again = unity.compile(nn.bind(lifted, state))
assert np.array_equal(again(x), executable(x))

# %% Mistakes are told where they are made: an operator's operands when `forward` calls it.
try:
    model.export({"x": f32[Tensor, 1, tokens, 33]})
except unity.UnityError as error:
    print(error)
