"""ONNX-ML (the domain ai.onnx.ml): classic models as tensor programs, a converter an operator."""
