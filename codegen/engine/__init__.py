"""External engines that parts of a model may be handed to (BYOC)."""

from typing import TYPE_CHECKING

from unity.lazy import exports
from unity.transform.graph.resolve import Compiled, Engine, OpSite, register_engine

from .onnxruntime import OnnxRuntimeEngine
from .openvino import OpenVinoEngine

if TYPE_CHECKING:
    from .interpreter import InterpreterEngine


def register_engines() -> None:
    """Make known what Unity brings by itself."""
    register_engine(OnnxRuntimeEngine())
    register_engine(OpenVinoEngine())


__all__ = [
    "Compiled",
    "Engine",
    "InterpreterEngine",
    "OnnxRuntimeEngine",
    "OpSite",
    "OpenVinoEngine",
    "register_engine",
    "register_engines",
]

__getattr__ = exports(__name__, {"InterpreterEngine": ".interpreter"})
