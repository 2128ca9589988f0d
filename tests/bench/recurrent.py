"""Recurrent benchmark models: two layers of LSTM or GRU over a sequence, and a linear layer."""

from __future__ import annotations

import math

import onnx

from .graph import Graph

GATES = {"LSTM": 4, "GRU": 3}


def layer(g: Graph, kind: str, x: str, name: str, width: int, hidden: int) -> str:
    """[T, B, width] -> [T, B, hidden]."""
    rows, spread = GATES[kind] * hidden, 1 / math.sqrt(hidden)
    weights = [
        g.uniform(f"{name}.{part}", shape, -spread, spread)
        for part, shape in (
            ("input", (1, rows, width)),
            ("recurrent", (1, rows, hidden)),
            ("bias", (1, 2 * rows)),
        )
    ]
    attrs = {"linear_before_reset": 1} if kind == "GRU" else {}  # as torch defines it
    y = g.op(kind, x, *weights, name=name, hidden_size=hidden, **attrs)
    return g.op("Squeeze", y, g.ints(1), name=f"{name}.squeeze")


def recurrent(
    kind: str,
    steps: int | str = 64,
    width: int = 128,
    hidden: int = 256,
    layers: int = 2,
    classes: int = 32,
) -> onnx.ModelProto:
    """The classes of a sequence ``x`` [steps, 1, width], told from the last step's output."""
    g = Graph(kind.lower())
    y = g.input("x", [steps, 1, width])
    for i in range(layers):
        y = layer(g, kind, y, f"layer{i}", width if i == 0 else hidden, hidden)
    last = g.op("Gather", y, g.const(-1, "last"), axis=0)
    weight = g.normal("classes.weight", (hidden, classes), 0.05)
    logits = g.op("Gemm", last, weight, g.normal("classes.bias", (classes,), 0.02))
    g.output(logits, "logits", [1, classes])
    return g.model()
