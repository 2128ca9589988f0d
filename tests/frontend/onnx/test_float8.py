"""Casts to 8-bit floats: what is too large becomes the largest number, or infinity or NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import check, model

KINDS = {17: "e4m3fn", 18: "e4m3fnuz", 19: "e5m2", 20: "e5m2fnuz"}
BEYOND = (np.inf, -np.inf, np.nan)
NUMBERS = (0, -0.0, 1, 0.3, 1e-9, 240, 248, 448, 449, 464, 465, 480, 57344, 61440, -500, -65000)


def casts(saturate: int, source: str) -> str:
    """Each of the types as a result, by Cast and by CastLike."""
    results = ", ".join(f"float8{k}[n] a{c}, float8{k}[n] b{c}" for c, k in KINDS.items())
    steps = " ".join(
        f"a{c} = Cast<to={c}, saturate={saturate}>(x) b{c} = CastLike<saturate={saturate}>(x, w{c})"
        for c in KINDS
    )
    return f"g ({source}[n] x) => ({results}) {{ {steps} }}"


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", ["float", "float16", "double", "bfloat16", "int32"])
def test_what_is_out_of_range_saturates_if_so_wanted(source: str, saturate: int) -> None:
    weights: dict[str, Array] = {
        f"w{c}": np.zeros(1, getattr(ml_dtypes, f"float8_{k}")) for c, k in KINDS.items()
    }
    proto = model(casts(saturate, source), 19, weights)
    numbers = np.array(NUMBERS if source == "int32" else (*NUMBERS, *BEYOND))
    kinds = {"float": np.float32, "double": np.float64, "bfloat16": ml_dtypes.bfloat16}
    x = numbers.astype(kinds.get(source, source))
    module = from_onnx(proto)
    check(module)
    got = unity.compile(module)(x) if source == "float" else interpret(module, "main", [x])
    assert isinstance(got, tuple)
    for name, found, expected in zip(
        proto.graph.output, got, ReferenceEvaluator(proto).run(None, {"x": x}), strict=True
    ):
        assert isinstance(found, np.ndarray)
        assert isinstance(expected, np.ndarray)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(
            found.astype(np.float32), expected.astype(np.float32), err_msg=name.name
        )


FEW_BITS = {23: "float4e2m1", 25: "uint2", 26: "int2"}


@pytest.mark.parametrize("source", ["float", "float16", "int8"])
def test_numbers_of_two_and_four_bits(source: str) -> None:
    results = ", ".join(f"{k}[n] a{c}, {source}[n] b{c}" for c, k in FEW_BITS.items())
    steps = " ".join(f"a{c} = Cast<to={c}>(x) b{c} = CastLike(a{c}, x)" for c in FEW_BITS)
    proto = model(f"g ({source}[n] x) => ({results}) {{ {steps} }}", 25)
    x = np.asarray([-2, -1, 0, 1], np.float32)
    if source != "int8":
        x = np.concatenate([x, np.asarray([0.25, 0.75, 1.25, -5, 2.5, 100, -7, 5.1], np.float32)])
    x = x.astype({"float": np.float32}.get(source, source))
    module = from_onnx(proto)
    check(module)
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})
    for got in (interpret(module, "main", [x]), unity.compile(module)(x)):
        assert isinstance(got, tuple)
        for info, found, expected in zip(proto.graph.output, got, wanted, strict=True):
            assert isinstance(found, np.ndarray)
            assert isinstance(expected, np.ndarray)
            few = slice(0, 4) if "float4" not in FEW_BITS[int(info.name[1:])] else slice(None)
            np.testing.assert_array_equal(
                found.astype(np.float32)[few], expected.astype(np.float32)[few], info.name
            )
