"""What others call our operators: each name that the documentation gives exists there."""

from __future__ import annotations

from functools import reduce

import onnx.defs
import pytest

from unity.op.naming import OTHERS, names_of
from unity.op.table import OPS


def test_only_operators_are_named() -> None:
    assert OPS.keys() >= OTHERS


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
