"""ONNX Runtime: a subgraph as an ONNX model, run on the caller's own memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.dtype import Array
from unity.machine.target import Target

if TYPE_CHECKING:
    import onnxruntime


@dataclass(slots=True)
class OnnxRuntimeModel:
    """A session; inputs and outputs are bound by address."""

    model: bytes
    threads: int
    _session: onnxruntime.InferenceSession = field(init=False)
    _inputs: list[str] = field(init=False)
    _outputs: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Load the model."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(self.model, options, providers=providers)
        self._inputs = [i.name for i in self._session.get_inputs()]
        self._outputs = [o.name for o in self._session.get_outputs()]

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run on the arrays' memory; what has none (no elements) or no axes can't be bound."""
        if not all(a.ndim and a.size for a in (*inputs, *outputs)):
            given = dict(zip(self._inputs, inputs, strict=True))
            results = self._session.run(self._outputs, given)
            for y, result in zip(outputs, results, strict=True):
                np.copyto(y, result)
            return
        binding = self._session.io_binding()
        for name, x in zip(self._inputs, inputs, strict=True):
            binding.bind_input(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
        for name, y in zip(self._outputs, outputs, strict=True):
            binding.bind_output(name, "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        self._session.run_with_iobinding(binding)

    def save(self) -> bytes:
        """The ONNX model."""
        return self.model


@dataclass(frozen=True, slots=True)
class OnnxRuntimeLoader:
    """Makes sessions of ONNX models."""

    name: str = "onnxruntime"

    def missing(self) -> str | None:
        """Whether the package is there."""
        if importlib.util.find_spec("onnxruntime") is None:
            return "the package onnxruntime is not installed: pip install onnxruntime"
        return None

    def load(self, data: bytes, target: Target, threads: int) -> OnnxRuntimeModel:
        """A session of a saved model."""
        return OnnxRuntimeModel(data, threads)


LOADER = OnnxRuntimeLoader()
