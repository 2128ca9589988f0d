"""Unity: a machine-learning compiler in Python.

``import unity`` is quick: each name below is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from unity.collection import no_cycle_collection
from unity.ir.display import Printer, set_printer
from unity.version import VERSION

if TYPE_CHECKING:
    from unity import nn as nn
    from unity.building import GraphBuilder
    from unity.compiler import compile  # noqa: A004
    from unity.converters import register_converter
    from unity.errors import InternalError, UnityError, UnsupportedError
    from unity.frontend.sklearn import from_sklearn
    from unity.ir.dims import dim
    from unity.ir.equality import structural_equal
    from unity.ir.module import IRModule
    from unity.loading import load
    from unity.machine.target import Target
    from unity.quantization.quantizer import quantize
    from unity.registering import register_op
    from unity.rewriting import rewrite_rule
    from unity.runtime.executable import Executable
    from unity.runtime.hosts.registered import register_function
    from unity.runtime.session import Session
    from unity.transform.pipeline import pipeline as pipeline
    from unity.tuner import tune

__all__ = [
    "Executable",
    "GraphBuilder",
    "IRModule",
    "InternalError",
    "Session",
    "Target",
    "UnityError",
    "UnsupportedError",
    "__version__",
    "compile",
    "dim",
    "from_sklearn",
    "load",
    "nn",
    "pipeline",
    "quantize",
    "register_converter",
    "register_function",
    "register_op",
    "rewrite_rule",
    "structural_equal",
    "tune",
]
__version__ = VERSION
_HOMES = {
    "Executable": "unity.runtime.executable",
    "GraphBuilder": "unity.building",
    "IRModule": "unity.ir.module",
    "Session": "unity.runtime.session",
    "Target": "unity.machine.target",
    "UnityError": "unity.errors",
    "UnsupportedError": "unity.errors",
    "InternalError": "unity.errors",
    "compile": "unity.compiler",
    "dim": "unity.ir.dims",
    "from_sklearn": "unity.frontend.sklearn",
    "load": "unity.loading",
    "pipeline": "unity.transform",
    "quantize": "unity.quantization.quantizer",
    "register_converter": "unity.converters",
    "register_function": "unity.runtime.hosts.registered",
    "register_op": "unity.registering",
    "rewrite_rule": "unity.rewriting",
    "structural_equal": "unity.ir.equality",
    "tune": "unity.tuner",
}


def _load_printer() -> Printer:
    from unity.script.printer import PRINTER  # heavy: the language and the operators

    return PRINTER


set_printer(_load_printer)


def __getattr__(name: str) -> object:
    if name == "nn":
        return import_module("unity.nn")
    if name not in _HOMES:
        raise AttributeError(f"module 'unity' has no attribute {name!r}")
    with no_cycle_collection():
        value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
