"""ONNX's own backend tests, imported and run: its node tests, and models that it stores.

The onnx package generates one small model for each behaviour of each operator, with inputs and
outputs, and brings models with it, many of old operator sets. Each is imported, verified, and run
by the interpreter; whole networks are compiled. `python -m tests.conformance` writes the result to
``onnx_backend.json``; `test_onnx_backend` holds what passed there as a floor.

Inputs are given when the model runs, none is fixed before. Where onnxruntime computes otherwise
than these tests want, and Unity as onnxruntime does, or random numbers are wanted, the case counts
as ``other``.
"""

from __future__ import annotations

import math
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
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.runtime.host_forms import forms_of

Status: TypeAlias = Literal["passed", "other", "unsupported", "failed"]
Run: TypeAlias = Callable[[IRModule, Sequence[object]], Sequence[object]]
_WHOLE_EXTENTS = (
    "aligned corners of a scaled extent: those of whole elements, as onnxruntime, torch"
)
_RANDOM = "random numbers, which only one generator gives"
OTHER = {
    **dict.fromkeys(
        (
            "test_bernoulli",
            "test_bernoulli_double",
            "test_bernoulli_double_expanded",
            "test_bernoulli_expanded",
            "test_bernoulli_seed",
            "test_bernoulli_seed_expanded",
            "test_training_dropout",
            "test_training_dropout_default",
            "test_training_dropout_default_mask",
            "test_training_dropout_mask",
        ),
        _RANDOM,
    ),
    "test_resize_downsample_scales_cubic_align_corners": _WHOLE_EXTENTS,
    "test_resize_downsample_scales_linear_align_corners": _WHOLE_EXTENTS,
}
"""Cases whose results differ by choice."""
RESULTS = Path(__file__).with_name("onnx_backend.json")
STORED = ("simple", "pytorch-converted", "pytorch-operator")
"""The kinds of models that the onnx package brings with it, small ones."""
LIGHT = "light"
"""The kind of those that are whole networks, their weights constants of one number."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model and what it must give.

    Attributes:
        name: Which; of stored models after their kind.
        model: The model.
        inputs: What it is given: arrays, lists of them, or None.
        outputs: What it must give.
        rtol: How far results may be away, relative to each element.
        atol: And besides.
        compiled: Whether it is compiled in any case, being large.
    """

    name: str
    model: onnx.ModelProto
    inputs: tuple[object, ...]
    outputs: tuple[object, ...]
    rtol: float
    atol: float
    compiled: bool = False


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


def light_cases() -> dict[str, Case]:
    """Whole networks, given what ONNX's own runner gives them: numbers from 0 to 1 in a row."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / LIGHT
    cases: dict[str, Case] = {}
    for place in sorted(folder.glob("*.onnx")):
        model = onnx.load(place)
        weights = {tensor.name for tensor in model.graph.initializer}
        inputs: list[object] = []
        for info in model.graph.input:
            if info.name not in weights:
                shape = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
                count = math.prod(shape)
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        output = onnx.load_tensor(place.with_name(f"{place.stem}_output_0.pb"))
        outputs = (onnx.numpy_helper.to_array(output),)
        name = f"{LIGHT}/{place.stem.removeprefix('light_')}"
        cases[name] = Case(name, model, tuple(inputs), outputs, 2e-3, 1e-7, compiled=True)
    return cases


def every_case() -> dict[str, Case]:
    """All cases by name."""
    return {**node_cases(), **stored_cases(), **light_cases()}


def kind_of(name: str) -> str:
    """The kind of a case, by its name: of operators as ONNX writes them out, ``expanded``."""
    kind, slash, _ = name.rpartition("/")
    if slash:
        return kind
    return "expanded" if "_expanded" in name else "node"


def _read(info: onnx.ValueInfoProto, folder: Path, what: str, index: int) -> object:
    """A stored value: an array, or a list of them."""
    path = folder / f"{what}_{index}.pb"
    if not path.exists():
        return None
    if info.type.HasField("sequence_type"):
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(path.read_bytes())
        return onnx.numpy_helper.to_list(sequence)
    return onnx.numpy_helper.to_array(onnx.load_tensor(path))


def _as_array(value: object) -> object:
    """Tensors of dtypes that numpy lacks come as messages."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [_as_array(one) for one in value]
    return np.asarray(value) if isinstance(value, np.generic) else value


def by_interpreter(module: IRModule, inputs: Sequence[object]) -> Sequence[object]:
    """Run ``main`` by the interpreter."""
    main = module.functions["main"]
    assert isinstance(main, Function)
    forms = forms_of(main.attrs)
    count = len(inputs) + len(forms.derived)
    given, words = forms.given(inputs, [f"input{k}" for k in range(count)])
    found = interpret(module, "main", given)
    names = main.attrs["output_names"]
    several = isinstance(names, tuple) and len(names) > 1
    return forms.taken(found if several and isinstance(found, tuple) else (found,), words)


def by_compiler(module: IRModule, inputs: Sequence[object]) -> Sequence[object]:
    """Compile ``main`` and run it."""
    found: object = unity.compile(module)(*inputs)
    return found if isinstance(found, tuple) else (found,)


def status_of(case: Case, run: Run | None = None) -> tuple[Status, str]:
    """How a case goes, interpreted if nothing else is said, and why if it does not pass."""
    if run is None:
        run = by_compiler if case.compiled else by_interpreter
    try:
        status, why = _run(case, run)
    except UnsupportedError as error:
        return "unsupported", error.gaps[0] if error.gaps else error.message
    if status == "failed" and case.name in OTHER:
        return "other", OTHER[case.name]
    return status, why


def _run(case: Case, run: Run) -> tuple[Status, str]:
    try:
        module = from_onnx(case.model)
        verify(module)
        check_types(module)
        got = run(module, case.inputs)
    except UnsupportedError:
        raise
    except UnityError as error:
        return "failed", error.message
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    for mine, theirs in zip(got, case.outputs, strict=True):
        problem = _difference(case, mine, theirs)
        if problem:
            return "failed", problem
    return "passed", ""


def _difference(case: Case, got: object, expected: object) -> str:
    if expected is None or isinstance(expected, list):
        if not isinstance(got, list) or not isinstance(expected, list):
            return "" if got is expected else f"got {type(got).__name__}, expected {expected}"
        if len(got) != len(expected):
            return f"got a sequence of {len(got)}, expected {len(expected)}"
        pairs = zip(got, expected, strict=True)
        return next(filter(None, (_difference(case, g, e) for g, e in pairs)), "")
    return _array_difference(case, np.asarray(got), np.asarray(expected))


def _array_difference(case: Case, got: Array, expected: Array) -> str:
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
