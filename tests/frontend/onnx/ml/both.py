"""A model run by Unity and by onnxruntime, and what both give compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import unity
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.graph import Function
from unity.runtime.host_forms import forms_of

onnxruntime = pytest.importorskip("onnxruntime")
Array: TypeAlias = npt.NDArray[Any]
Run: TypeAlias = Callable[..., list[Any]]


def theirs(model: onnx.ModelProto, *inputs: object) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def ours(model: onnx.ModelProto, *inputs: object) -> list[Any]:
    """By the interpreter."""
    module = from_onnx(model)
    main = module.functions["main"]
    assert isinstance(main, Function)
    forms = forms_of(main.attrs)
    given, words = forms.given(inputs, [p.name for p in main.params])
    found = interpret(module, "main", [g for g in given if isinstance(g, np.ndarray)])
    return forms.taken(found if isinstance(found, tuple) else (found,), words)


def compiled(model: onnx.ModelProto, *inputs: object) -> list[Any]:
    found = unity.compile(model, threads=1)(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def agree(model: onnx.ModelProto, *inputs: object, run: Run = ours) -> None:
    for mine, other in zip(run(model, *inputs), theirs(model, *inputs), strict=True):
        if isinstance(other, list):
            assert [sorted(m) for m in mine] == [sorted(o) for o in other]
            mine = [{key: m[key] for key in o} for m, o in zip(mine, other, strict=True)]
            mine, other = ([list(m.values()) for m in found] for found in (mine, other))
        mine, other = np.asarray(mine), np.asarray(other)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        if mine.dtype == object:
            assert mine.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(mine, other, 1e-5, 1e-6)
