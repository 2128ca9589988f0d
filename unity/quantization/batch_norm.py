"""Batch normalization folded into the convolution before it, so that its scales are quantized too.

`transform/graph/simplify/fold_batch_norm.py` does so when a model is compiled; here it is done in
the model, because weights that are quantized can't take a scale any more.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
from onnx import helper

from unity.ir.dtype import Array

from .model import EditedModel

_AXES = {"Conv": 0, "ConvTranspose": 1}
"""Of weights, the axis of outputs."""


def fold_batch_norm(model: EditedModel) -> None:
    """Fold what follows a convolution and is its only reader; results change within rounding."""
    reads = Counter(model.read())
    nodes: list[onnx.NodeProto] = []
    makers: dict[str, onnx.NodeProto] = {}
    for node in model.graph.node:
        conv = makers.get(node.input[0]) if node.input else None
        if node.op_type == "BatchNormalization" and conv is not None:
            alone = reads[node.input[0]] == 1 and len([o for o in node.output if o]) == 1
            if alone and _fold(model, conv, node):
                makers[node.output[0]] = conv
                continue
        nodes.append(node)
        makers |= dict.fromkeys(node.output, node)
    model.put(nodes)


def _fold(model: EditedModel, conv: onnx.NodeProto, norm: onnx.NodeProto) -> bool:
    """Give a convolution the weights and bias that include a normalization; False if it can't."""
    attributes = {a.name: helper.get_attribute_value(a) for a in norm.attribute}
    parts = [model.constants.get(v) for v in norm.input[1:5]]
    weight = model.constants.get(conv.input[1]) if conv.op_type in _AXES else None
    has_bias = len(conv.input) > 2 and conv.input[2] != ""
    bias = model.constants.get(conv.input[2]) if has_bias else None
    if weight is None or (has_bias and bias is None) or attributes.get("training_mode", 0):
        return False
    if _groups(conv) != 1 and conv.op_type == "ConvTranspose":
        return False
    known = [p.astype(np.float64) for p in parts if p is not None]
    if len(known) < 4 or weight.dtype != np.float32:
        return False
    gamma, beta, mean, variance = known
    scale = gamma / np.sqrt(variance + float(attributes.get("epsilon", 1e-5)))
    along = [1] * weight.ndim
    along[_AXES[conv.op_type]] = -1
    before = np.zeros_like(mean) if bias is None else bias.astype(np.float64)
    new: list[tuple[str, Array]] = [
        (conv.input[1], weight.astype(np.float64) * scale.reshape(along)),
        (conv.input[2] if has_bias else f"{conv.name}_bias", (before - mean) * scale + beta),
    ]
    names = [model.add(f"{name}_folded", data.astype(np.float32)) for name, data in new]
    del conv.input[1:]
    conv.input.extend(names)
    conv.output[0] = norm.output[0]
    return True


def _groups(conv: onnx.NodeProto) -> int:
    return next((a.i for a in conv.attribute if a.name == "group"), 1)
