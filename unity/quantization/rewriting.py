"""A model with pairs of QuantizeLinear and DequantizeLinear around what products read.

After each tensor that is quantized there is one pair, and all who read the tensor read what comes
out of it, but for nodes that are excluded and the model's outputs. Weights are int8 with a
DequantizeLinear, biases int32 by the scale that the sums have.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from unity.ir.dtype import Array

from .model import EditedModel
from .parameters import BIAS_STEPS, Parameters, of_weight, rounded
from .products import Product


@dataclass(slots=True)
class Pairs:
    """Quantizes products and what they read; carries what was made so far.

    Attributes:
        model: Changed in place.
        products: The nodes to be quantized, by name.
        roots: For each tensor to be quantized, the one whose parameters it has.
        parameters: Of these.
        per_channel: Whether each output of a product has its own scale of weights.
        untouched: Names of nodes that read reals.
        reals: For each tensor that is quantized, what its pair gives.
        stored: For each root, the names of its scale and zero point.
        weights: What gives weights again, by their name, axis and scales.
    """

    model: EditedModel
    products: Mapping[str, Product]
    roots: Mapping[str, str]
    parameters: Mapping[str, Parameters]
    per_channel: bool
    untouched: Collection[str]
    reals: dict[str, str] = field(default_factory=dict[str, str])
    stored: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    weights: dict[tuple[str, int, bytes], str] = field(
        default_factory=dict[tuple[str, int, bytes], str]
    )

    def insert(self) -> None:
        """Do all of it."""
        model, nodes = self.model, list[onnx.NodeProto]()
        for graph_input in model.graph.input:
            nodes += self.pair(graph_input.name)
        for node in model.graph.node:
            product = self.products.get(node.name)
            before = list(node.input)
            if node.name not in self.untouched:
                for k, name in enumerate(before):
                    node.input[k] = self.reals.get(name, name)
            if product is not None:
                nodes += self.known_operands(node, product, before)
            nodes.append(node)
            for name in node.output:
                nodes += self.pair(name)
        model.put(nodes)

    def pair(self, tensor: str) -> Iterator[onnx.NodeProto]:
        """The two nodes behind a tensor, if it is quantized."""
        root = self.roots.get(tensor)
        if root is None:
            return
        if root not in self.stored:
            found = self.parameters[root]
            self.stored[root] = (
                self.model.add(f"{root}_scale", found.scale),
                self.model.add(f"{root}_zero_point", found.zero),
            )
        whole = self.model.fresh(f"{tensor}_quantized")
        self.reals[tensor] = self.model.fresh(f"{tensor}_dequantized")
        by = self.stored[root]
        yield self.node("QuantizeLinear", [tensor, *by], whole)
        yield self.node("DequantizeLinear", [whole, *by], self.reals[tensor])

    def node(
        self, kind: str, inputs: list[str], output: str, axis: int | None = None
    ) -> onnx.NodeProto:
        """A node of its own name."""
        name = self.model.fresh(f"{output}_{kind}")
        found = helper.make_node(kind, inputs, [output], name=name)
        if axis is not None:
            found.attribute.append(helper.make_attribute("axis", axis))
        return found

    def known_operands(
        self, node: onnx.NodeProto, product: Product, before: list[str]
    ) -> Iterator[onnx.NodeProto]:
        """The nodes in front of a product that give its weights and its bias."""
        at = product.weight
        if at is None:
            return
        weight = self.model.constants[before[at]]
        (data,) = product.data
        scale = float(self.parameters[self.roots[before[data]]].scale)
        bias = None if product.bias is None else self.model.constants[before[product.bias]]
        least = np.zeros(())
        if bias is not None:
            most = np.abs(bias.astype(np.float64)).reshape(product.groups, -1).max(0)
            least = (most if self.per_channel else most.max(initial=0)) / (scale * BIAS_STEPS)
        found = of_weight(weight, product.axis if self.per_channel else None, least)
        key = before[at], product.axis, found.scale.tobytes()
        if key not in self.weights:
            whole = rounded(weight, found, product.axis)
            self.weights[key] = yield from self.dequantized(before[at], whole, found, product.axis)
        node.input[at] = self.weights[key]
        if bias is not None and product.bias is not None:
            steps = np.tile(scale * found.scale.astype(np.float64), product.groups)
            steps = np.broadcast_to(steps, bias.shape).astype(np.float32)
            whole = np.rint(bias.astype(np.float64) / steps).astype(np.int32)
            if not self.per_channel:
                steps = np.asarray(steps[0])
            by = Parameters(steps, np.zeros(steps.shape, np.int32))
            name = before[product.bias]
            node.input[product.bias] = yield from self.dequantized(name, whole, by, 0)

    def dequantized(
        self, name: str, whole: Array, by: Parameters, axis: int
    ) -> Generator[onnx.NodeProto, None, str]:
        """A node that gives reals of integers that are known; returns what it gives."""
        operands = [
            self.model.add(f"{name}_quantized", whole),
            self.model.add(f"{name}_scale", by.scale),
            self.model.add(f"{name}_zero_point", by.zero),
        ]
        output = self.model.fresh(f"{name}_dequantized")
        along = axis if by.scale.ndim else None
        yield self.node("DequantizeLinear", operands, output, along)
        return output
