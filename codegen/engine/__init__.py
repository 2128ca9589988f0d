"""External engines that parts of a model may be handed to (BYOC)."""

from unity.transform.graph.resolve import Compiled, Engine, OpSite, register_engine

from .interpreter import InterpreterEngine
from .onnxruntime import OnnxRuntimeEngine
from .openvino import OpenVinoEngine

for _engine in (OnnxRuntimeEngine(), OpenVinoEngine(), InterpreterEngine()):
    register_engine(_engine)

__all__ = [
    "Compiled",
    "Engine",
    "InterpreterEngine",
    "OnnxRuntimeEngine",
    "OpSite",
    "OpenVinoEngine",
    "register_engine",
]
