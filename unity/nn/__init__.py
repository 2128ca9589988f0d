"""Models as modules: layers with named parameters, whose `forward` is written in operators.

A `Module` holds parameters and other modules, as in torch; `Module.export` runs its `forward` on
graph values and gives an `IRModule`, with the parameters as constants or as inputs.

>>> from unity import nn
>>> from unity.script import Tensor, dim, f32
>>> class Classifier(nn.Module):
...     def __init__(self) -> None:
...         self.hidden = nn.Linear(8, 16)
...         self.scores = nn.Linear(16, 3, bias=False)
...     def forward(self, x: nn.Value) -> nn.Value:
...         return self.scores(nn.ops.nn.relu(self.hidden(x)))
>>> model = Classifier()
>>> [name for name, _ in model.named_parameters()]
['hidden.weight', 'hidden.bias', 'scores.weight']
>>> module = model.export({"x": f32[Tensor, dim("n"), 8]}, bind=False)
>>> [p.name for p in module.graph_functions()["main"].params]
['x', 'hidden_weight', 'hidden_bias', 'scores_weight']
"""

from .attention import Attention, KVCache, rotated
from .bind import bind
from .layers import (
    BatchNorm,
    Conv,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    RMSNorm,
)
from .module import Module, Parameter, Sequential
from .value import Value, ops

__all__ = [
    "Attention",
    "BatchNorm",
    "Conv",
    "Embedding",
    "GroupNorm",
    "KVCache",
    "LayerNorm",
    "Linear",
    "Module",
    "Parameter",
    "RMSNorm",
    "Sequential",
    "Value",
    "bind",
    "ops",
    "rotated",
]
