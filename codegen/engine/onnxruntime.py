"""ONNX Runtime as an engine: the subgraph as an ONNX model, run on the caller's own memory."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.engines.onnxruntime import LOADER, OnnxRuntimeModel
from unity.transform.graph.resolve import OpSite

from .onnx_export import export_model, why_not


@dataclass(frozen=True, slots=True)
class OnnxRuntimeEngine:
    """Takes what `onnx_export` can write down."""

    name: str = LOADER.name

    def missing(self) -> str | None:
        """Whether the package is there."""
        return LOADER.missing()

    def supports(self, site: OpSite) -> str | None:
        """Whether ONNX can say it, in types that ONNX Runtime has kernels for."""
        return why_not(site)

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> OnnxRuntimeModel:
        """A session of the exported model."""
        return OnnxRuntimeModel(export_model(subgraph).SerializeToString(), threads)

    def load(self, data: bytes, target: Target, threads: int) -> OnnxRuntimeModel:
        """A session of a saved model."""
        return LOADER.load(data, target, threads)
