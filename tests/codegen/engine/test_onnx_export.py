"""Every operator that the exporter writes means in ONNX Runtime what its reference means."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from unity.codegen.engine import OnnxRuntimeEngine
from unity.codegen.engine.onnx_export import export_model, why_not
from unity.codegen.engine.onnx_export.export import RULES
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dtype import BFLOAT16, Array, dtype
from unity.ir.graph import Call, Expr, Function, Op, ShapeValue, Tuple, Var
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.machine.target import Target
from unity.op.builder import GraphBuilder
from unity.op.registry import RefArg, Sample
from unity.op.table import OPS
from unity.transform.graph.resolve import Compiled, OpSite

pytest.importorskip("onnxruntime")
TARGET = Target("cpu", "", "generic", ())
NO_KERNEL_THERE = "NOT_IMPLEMENTED"


def program(name: str, sample: Sample) -> tuple[IRModule, list[Array], Call, Type]:
    """A function of one call, its inputs, the call and its result's type."""
    builder = GraphBuilder()
    inputs: list[Array] = []
    args: list[Expr] = []

    def param(array: Array) -> Var:
        inputs.append(array)
        return builder.param(f"x{len(inputs)}", TensorType(array.shape, dtype(array.dtype)))

    for arg in sample.args:
        if isinstance(arg, np.ndarray):
            args.append(param(arg))
        elif all(isinstance(a, np.ndarray) for a in arg) and arg:
            args.append(Tuple(tuple(param(a) for a in arg if isinstance(a, np.ndarray))))
        else:
            args.append(ShapeValue(tuple(int(n) for n in arg if isinstance(n, int))))
    attrs: dict[str, Any] = dict(sample.attrs)
    result = builder.op(name, *args, **attrs)
    function = builder.finish(result)
    call = calls_in(function)[0]
    return IRModule({"main": function}), inputs, call, result.type


def calls_in(function: Function) -> list[Call]:
    bindings = [b for block in function.body.blocks for b in block.bindings]
    return [b.value for b in bindings if isinstance(b.value, Call)]


def types_of(args: Sequence[RefArg], call: Call) -> tuple[Type, ...]:
    found: list[Type] = []
    for given, arg in zip(args, call.args, strict=True):
        match arg:
            case Var(_, type_):
                found.append(type_)
            case Tuple(fields):
                found.append(TupleType(tuple(f.type for f in fields if isinstance(f, Var))))
            case ShapeValue(dims):
                found.append(ShapeType(dims))
            case _:
                raise AssertionError(given)
    return tuple(found)


def session_of(module: IRModule) -> Compiled | None:
    """A session of a program; None if ONNX Runtime has no kernel for its dtypes."""
    try:
        return OnnxRuntimeEngine().compile(module, TARGET, 1)
    except Exception as error:
        if NO_KERNEL_THERE in str(error):
            return None
        raise


def runs(compiled: Compiled, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Whether it runs: indices that are outside are an error there, and clamped here."""
    try:
        compiled([np.ascontiguousarray(x) for x in inputs], outputs)
    except Exception as error:
        if "ndex" in str(error) or "indices" in str(error):
            return False
        raise
    return True


@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", sorted(RULES))
def test_an_exported_operator_means_its_reference(name: str) -> None:
    op, ran = OPS[name], 0
    assert op.samples is not None
    assert op.reference is not None
    for sample in op.samples(3):
        module, inputs, call, result = program(name, sample)
        if why_not(OpSite(call, types_of(sample.args, call), result)) is not None:
            continue
        compiled = session_of(module)
        if compiled is None:
            continue
        if any(x.dtype == BFLOAT16.numpy or not np.all(x == x) for x in inputs):
            continue  # what operators do with NaN, ONNX leaves open
        expected = op.reference(sample.args, sample.attrs)
        wanted = [np.asarray(e) for e in (expected if isinstance(expected, tuple) else (expected,))]
        got = [np.empty(w.shape, w.dtype) for w in wanted]
        if not runs(compiled, inputs, got):
            continue
        for mine, theirs in zip(got, wanted, strict=True):
            allowed = 3e-3 if theirs.dtype == np.float16 else max(op.tolerance, 1e-4)
            np.testing.assert_allclose(
                mine.astype(np.float64), theirs.astype(np.float64), rtol=allowed, atol=allowed
            )
        ran += 1
    assert ran, "no sample of the operator ran: the rule is untested"


def test_sizes_that_depend_on_symbols_are_computed_in_the_model() -> None:
    from unity.script import parse

    module = parse(
        dedent("""
    n = dim("n")
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n * 2, 2]:
        with R.dataflow():
            y = R.reshape(x, (n * 2, 2))
        return y
    """)
    )
    run = OnnxRuntimeEngine().compile(module, TARGET, 1)
    for n in (1, 3, 8):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        y = np.empty((n * 2, 2), np.float32)
        run([x], [y])
        np.testing.assert_array_equal(y, x.reshape(n * 2, 2))


def test_what_has_no_form_is_told() -> None:
    module, _, call, result = program(
        "floor_mod", Sample((np.ones(3, np.float32), np.ones(3, np.float32)), NO_ATTRS)
    )
    site = OpSite(call, tuple(a.type for a in call.args if isinstance(a, Var)), result)
    assert why_not(site) == "floor_mod has no form in ONNX here"
    with pytest.raises(Exception, match="floor_mod has no form in ONNX here"):
        export_model(module)


def test_asking_about_a_long_vector_takes_no_memory() -> None:
    """ONNX's shape inference would follow what each of its elements holds."""
    x = Var("x", TensorType((2**50,), dtype("i32")))
    cast = Call(Op("astype"), (x,), Attrs(dtype=dtype("i64")))
    assert why_not(OpSite(cast, (x.type,), TensorType((2**50,), dtype("i64")))) is None
