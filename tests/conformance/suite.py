"""ONNX's own backend tests, imported and run: its node tests, and models that it stores.

The onnx package generates one small model for each behaviour of each operator, with inputs and
outputs, and brings models with it, many of old operator sets. Each is imported, verified, and run
by the interpreter. `python -m tests.conformance` writes the result to ``onnx_backend.json``;
`test_onnx_backend` holds what passed there as a floor.

Inputs are given when the model runs, none is fixed before. Where onnxruntime computes otherwise
than these tests want, and Unity as onnxruntime does, the case counts as ``other``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import onnx

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.verify import verify
from unity.op.check import check_types
from unity.runtime.host_forms import forms_of

Status: TypeAlias = Literal["passed", "other", "unsupported", "failed"]
Run: TypeAlias = Callable[[IRModule, Sequence[Array]], Sequence[Array]]
_WHOLE_EXTENTS = (
    "aligned corners of a scaled extent: those of whole elements, as onnxruntime, torch"
)
OTHER = {
    "test_resize_downsample_scales_cubic_align_corners": _WHOLE_EXTENTS,
    "test_resize_downsample_scales_linear_align_corners": _WHOLE_EXTENTS,
}
"""Cases whose results differ by choice."""
RESULTS = Path(__file__).with_name("onnx_backend.json")
STORED = ("simple", "pytorch-converted", "pytorch-operator")
"""The kinds of models that the onnx package brings with it, small ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model and what it must give."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[object, ...]
    outputs: tuple[object, ...]
    rtol: float
    atol: float


def node_cases() -> dict[str, Case]:
    """All of ONNX's node tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases()
    cases: dict[str, Case] = {}
    for case in found:
        if case.model is None or not case.data_sets:
            continue
        inputs, outputs = (tuple(map(_as_array, side)) for side in case.data_sets[0])
        cases[case.name] = Case(
            case.name, case.model, inputs, outputs, case.rtol, max(case.atol, 1e-6)
        )
    return cases


def stored_cases() -> dict[str, Case]:
    """The models that the onnx package stores, by their kind and name."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    cases: dict[str, Case] = {}
    for kind in STORED:
        for place in sorted((folder / kind).iterdir()):
            if not (place / "model.onnx").exists():
                continue
            model = onnx.load(place / "model.onnx")
            data = place / "test_data_set_0"
            inputs = tuple(_read(i, data, "input", k) for k, i in enumerate(model.graph.input))
            inputs = inputs[: len(list(data.glob("input_*.pb")))]
            outputs = tuple(_read(o, data, "output", k) for k, o in enumerate(model.graph.output))
            name = f"{kind}/{place.name}"
            cases[name] = Case(name, model, inputs, outputs, 1e-3, 1e-5)
    return cases


def every_case() -> dict[str, Case]:
    """All cases by name."""
    return {**node_cases(), **stored_cases()}


def _read(info: onnx.ValueInfoProto, folder: Path, what: str, index: int) -> object:
    """A stored value: an array, or nothing that we have if it is a sequence or is not there."""
    path = folder / f"{what}_{index}.pb"
    if not path.exists() or not info.type.HasField("tensor_type"):
        return None
    return onnx.numpy_helper.to_array(onnx.load_tensor(path))


def _as_array(value: object) -> object:
    """Tensors of dtypes that numpy lacks come as messages."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def by_interpreter(module: IRModule, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run ``main`` by the interpreter."""
    main = module.functions["main"]
    forms = forms_of(main.attrs if isinstance(main, Function) else {})
    given, words = forms.given(inputs, [f"input{k}" for k in range(len(inputs))])
    found = interpret(module, "main", [g for g in given if isinstance(g, np.ndarray)])
    outputs = forms.taken(found if isinstance(found, tuple) else (found,), words)
    return [o for o in outputs if isinstance(o, np.ndarray)]


def by_compiler(module: IRModule, inputs: Sequence[Array]) -> Sequence[Array]:
    """Compile ``main`` and run it."""
    found = unity.compile(module)(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    return [np.asarray(o) for o in outputs]


def status_of(case: Case, run: Run = by_interpreter) -> tuple[Status, str]:
    """How a case goes, and why if it does not pass."""
    arrays = [a for a in (*case.inputs, *case.outputs) if isinstance(a, np.ndarray | np.generic)]
    if len(arrays) < len(case.inputs) + len(case.outputs):
        return "unsupported", "values that are no tensors"
    try:
        status, why = _run(case, [np.asarray(a) for a in case.inputs], run)
    except UnsupportedError as error:
        return "unsupported", error.gaps[0] if error.gaps else error.message
    if status == "failed" and case.name in OTHER:
        return "other", OTHER[case.name]
    return status, why


def _run(case: Case, inputs: Sequence[Array], run: Run) -> tuple[Status, str]:
    try:
        module = from_onnx(case.model)
        verify(module)
        check_types(module)
        got = run(module, inputs)
    except UnsupportedError:
        raise
    except UnityError as error:
        return "failed", error.message
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    for mine, theirs in zip(got, case.outputs, strict=True):
        problem = _difference(case, mine, np.asarray(theirs))
        if problem:
            return "failed", problem
    return "passed", ""


def _difference(case: Case, got: Array, expected: Array) -> str:
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"got {got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}"
    if got.dtype == object:
        return "" if got.tolist() == expected.tolist() else "differs"
    a, b = got.astype(np.float64), expected.astype(np.float64)
    # Two units in the last place of the narrow dtypes, which round after every step.
    narrow = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(got.dtype.name, 0.0)
    rtol, atol = max(case.rtol, narrow), max(case.atol, narrow)
    if not np.allclose(a, b, rtol, atol, equal_nan=True):
        return f"differs by {np.nanmax(np.abs(a - b))}"
    return ""
