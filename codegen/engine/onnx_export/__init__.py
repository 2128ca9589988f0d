"""Graph functions as ONNX models: what engines that read ONNX are handed."""

from .export import OPSET, export_model, why_not

__all__ = ["OPSET", "export_model", "why_not"]
