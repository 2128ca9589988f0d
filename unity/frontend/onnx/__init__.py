"""ONNX models into modules: `from_onnx`.

`load` reads and checks a file, `importer` walks the graph, and one file for each family of
operators (`arithmetic`, `shaping`, ...) says what its nodes become; `table` lists them all.
"""

from .importer import from_onnx

__all__ = ["from_onnx"]
