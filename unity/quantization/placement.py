"""Which tensors are quantized, and which of them by one scale.

What products read is. A tensor that a node only moved (a pool's maximum, a reshape) has the scale
of what it was moved from, which is quantized as well: integers move then.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from unity.frontend.onnx.reading.load import DEFAULT_DOMAINS

from .model import EditedModel
from .products import Product

MOVES = ("Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators whose results are elements of their first input, all of them or the largest."""


def place(model: EditedModel, products: Iterable[Product]) -> dict[str, str]:
    """For each tensor to be quantized, the one whose range it has: itself, or what it was from."""
    makers = {o: n for n in model.graph.node for o in n.output if o}
    nodes = {n.name: n for n in model.graph.node}
    found: dict[str, str] = {}
    for product in products:
        for at in product.data:
            tensor = nodes[product.name].input[at]
            path = [tensor]
            while (source := _moved_from(makers.get(tensor), model)) is not None:
                tensor = source
                path.append(tensor)
            found |= dict.fromkeys(path, tensor)
    return found


def _moved_from(node: onnx.NodeProto | None, model: EditedModel) -> str | None:
    """What a node's result was moved from, if it does nothing else."""
    if node is None or node.op_type not in MOVES or node.domain not in DEFAULT_DOMAINS:
        return None
    if len(node.output) > 1 or node.input[0] in model.constants:
        return None
    source: str = node.input[0]
    return source
