"""OpenVINO: a subgraph as an ONNX model, run on the caller's own memory."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unity.ir.dtype import Array
from unity.machine.target import Target

if TYPE_CHECKING:
    import openvino


@dataclass(slots=True)
class OpenVinoModel:
    """A compiled model; float32 stays float32 (its default on this kind of machine is bf16)."""

    model: bytes
    threads: int
    _request: openvino.InferRequest = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Compile the model."""
        import openvino

        core = openvino.Core()
        config = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": str(self.threads),
            "NUM_STREAMS": "1",
            "PERFORMANCE_HINT": "LATENCY",
        }
        found = core.read_model(self.model, b"")
        self._request = core.compile_model(found, "CPU", config).create_infer_request()

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run on the arrays' memory."""
        import openvino

        with self._lock:  # a request has one set of tensors
            for i, x in enumerate(inputs):
                self._request.set_input_tensor(i, openvino.Tensor(x, shared_memory=True))
            for i, y in enumerate(outputs):
                self._request.set_output_tensor(i, openvino.Tensor(y, shared_memory=True))
            self._request.infer()

    def save(self) -> bytes:
        """The ONNX model."""
        return self.model


@dataclass(frozen=True, slots=True)
class OpenVinoLoader:
    """Compiles ONNX models."""

    name: str = "openvino"

    def missing(self) -> str | None:
        """Whether the package is there."""
        if importlib.util.find_spec("openvino") is None:
            return "the package openvino is not installed: pip install openvino"
        return None

    def load(self, data: bytes, target: Target, threads: int) -> OpenVinoModel:
        """Compile a saved model."""
        return OpenVinoModel(data, threads)


LOADER = OpenVinoLoader()
