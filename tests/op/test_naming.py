"""What others call our operators: each name that the documentation gives exists there."""

from __future__ import annotations

from functools import reduce

import onnx.defs
import pytest

from unity.errors import UnityError
from unity.op.naming import METHODS, OTHERS, instead_of_method, names_of
from unity.op.table import OPS
from unity.script import parse


def test_only_operators_are_named() -> None:
    assert OPS.keys() >= OTHERS


@pytest.mark.parametrize("name", METHODS)
def test_what_is_told_of_a_method_is_a_program(name: str) -> None:
    told = METHODS[name].format(x="x", R="R")
    text = """
@script.function
def main(
    x: f32[Tensor, {0}], y: f32[Tensor, {0}], mask: boolean[Tensor, {0}], indices: i64[Tensor, {0}],
    updates: f32[Tensor, {0}],
):
    return {1}
"""
    read = []
    for shape in ("1, 4", "4, 4", "2, 4, 4"):
        try:
            parse(text.format(shape, told))
            read.append(shape)
        except UnityError:
            pass
    assert read, told


def test_methods_of_tensors() -> None:
    assert instead_of_method("relu", "x", "R") == "write it as in R.nn.relu(x)"
    assert instead_of_method("add_", "x", "ops") == "write it as in x = x + y: values don't change"
    assert instead_of_method("backward", "x", "R") == "training is not implemented"
    assert instead_of_method("nosuch", "x", "R") is None


@pytest.mark.torch
def test_methods_are_those_of_torch_or_numpy() -> None:
    import numpy as np
    import torch

    known = {*dir(torch.Tensor), *dir(np.ndarray)}
    assert set(METHODS) <= known


def test_names_of_onnx_are_its_operators() -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    told = {n for n in (names_of(op).onnx for op in OPS) if n is not None}
    assert len(told) > 100
    newest = {"BitCast", "CumProd", "Swish", "RMSNormalization", "Attention"}
    assert told - known <= newest  # which older versions of onnx lack


@pytest.mark.torch
def test_names_of_torch_are_its_functions() -> None:
    import torch

    for op in OPS:
        name = names_of(op).torch
        if name is not None:
            assert callable(reduce(getattr, name.split("."), torch)), op


def test_names_of_relax_are_its_operators() -> None:
    op = pytest.importorskip("tvm.relax.op")
    for name in OPS:
        relax = names_of(name).relax
        assert relax is None or callable(reduce(getattr, relax.split("."), op)), name
