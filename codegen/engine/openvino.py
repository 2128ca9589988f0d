"""OpenVINO as an engine: the subgraph as an ONNX model, run on the caller's own memory."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.engines.openvino import LOADER, OpenVinoModel
from unity.transform.graph.resolve import OpSite

from .onnx_export import export_model, why_not


@dataclass(frozen=True, slots=True)
class OpenVinoEngine:
    """Takes what `onnx_export` can write down."""

    name: str = LOADER.name

    def missing(self) -> str | None:
        """Whether the package is there."""
        return LOADER.missing()

    def supports(self, site: OpSite) -> str | None:
        """Whether ONNX can say it."""
        return why_not(site)

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> OpenVinoModel:
        """Compile the exported model."""
        return OpenVinoModel(export_model(subgraph).SerializeToString(), threads)

    def load(self, data: bytes, target: Target, threads: int) -> OpenVinoModel:
        """Compile a saved model."""
        return LOADER.load(data, target, threads)
