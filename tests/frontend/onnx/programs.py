"""ONNX models as text, for tests: one graph in the syntax of ``onnx.parser``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper, parser

from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.graph import Call, Function, Op
from unity.ir.module import IRModule
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.script import constants_of, parse, print_module


def model(
    graph: str, opset: int = 18, weights: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    """The model of a graph's text; `weights` become initializers."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}'
    found = parser.parse_model(text)
    for name, array in (weights or {}).items():
        found.graph.initializer.append(numpy_helper.from_array(array, name))
    return found


def imported(graph: str, opset: int = 18, weights: Mapping[str, Array] | None = None) -> IRModule:
    """The module of a graph's text: verified, its types checked, and equal to its parsed print."""
    module = from_onnx(model(graph, opset, weights))
    check(module)
    return module


def check(module: IRModule) -> None:
    """What holds of every imported module."""
    verify(module)
    check_types(module)
    again = parse(print_module(module), constants_of(module))
    assert first_difference(module, again) is None


def main_of(module: IRModule) -> Function:
    """The graph function."""
    found = module["main"]
    assert isinstance(found, Function)
    return found


def ops_of(module: IRModule) -> list[str]:
    """The operators called, in order."""
    values = [b.value for b in walk_bindings(main_of(module))]
    return [v.callee.name for v in values if isinstance(v, Call) and isinstance(v.callee, Op)]


def result_shape(module: IRModule, index: int = 0) -> str:
    """The shape of a result, as text."""
    found: Type = main_of(module).result
    if isinstance(found, TupleType):
        found = found.fields[index]
    assert isinstance(found, TensorType)
    assert isinstance(found.shape, tuple)
    return ", ".join(str(d) for d in found.shape)


def run(module: IRModule, *arrays: Array | Sequence[float]) -> Array:
    """The one result of the interpreter."""
    found = interpret(module, "main", [np.asarray(a) for a in arrays])
    assert isinstance(found, np.ndarray)
    return found


def assert_close(got: Array, expected: Array) -> None:
    """Of one dtype and shape, and within the rounding of float32."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6
    )
