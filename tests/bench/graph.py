"""A small writer of ONNX graphs with seeded weights, for the benchmark models."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]
Shape = list[int | str]
OPSET = 17


class Graph:
    """Collects nodes and initializers; every method returns the name of a value."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.count = 0

    def input(self, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> str:
        """Declare a graph input."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value: str, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> None:
        """Declare a graph output."""
        self.nodes.append(helper.make_node("Identity", [value], [name], f"output_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def const(self, value: npt.ArrayLike, name: str | None = None) -> str:
        """An initializer."""
        array = np.asarray(value)
        if name is None:
            self.count += 1
            name = f"const_{self.count}"
        self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def ints(self, *values: int) -> str:
        """A one-dimensional int64 initializer, shared by value."""
        name = "ints_" + "_".join(str(v).replace("-", "m") for v in values)
        return self.const(np.array(values, np.int64), name)

    def normal(self, name: str, shape: tuple[int, ...], spread: float, center: float = 0) -> str:
        """A float32 initializer of normally distributed values."""
        values = self.rng.standard_normal(shape, np.float32) * np.float32(spread)
        return self.const(values + np.float32(center), name)

    def uniform(self, name: str, shape: tuple[int, ...], low: float, high: float) -> str:
        """A float32 initializer of uniformly distributed values."""
        return self.const(self.rng.uniform(low, high, shape).astype(np.float32), name)

    def op(self, kind: str, *inputs: str, name: str | None = None, **attrs: object) -> str:
        """A node with one output."""
        return self.ops(kind, *inputs, outputs=1, name=name, **attrs)[0]

    def ops(
        self, kind: str, *inputs: str, outputs: int, name: str | None = None, **attrs: Any
    ) -> list[str]:
        """A node with several outputs."""
        self.count += 1
        name = name or f"{kind.lower()}_{self.count}"
        names = [f"{name}_out{i}" if outputs > 1 else f"{name}_out" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name, **attrs))
        return names

    def model(self, opset: int = OPSET) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, list(self.initializers.values())
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
