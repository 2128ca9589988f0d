"""Fitted scikit-learn models to a module, by way of ONNX: skl2onnx writes what Unity imports."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import onnx

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.module import IRModule

from .onnx import from_onnx


@public
def from_sklearn(model: object, rows: Array) -> IRModule:
    """The module of a fitted estimator or pipeline, which takes any number of rows.

    Args:
        model: Fitted; what the package skl2onnx converts.
        rows: Some rows ``[n, columns]`` as the model will get them: their number of columns and
            dtype are those of the module's input (float32 is fastest).

    Returns:
        A module whose results are what the model predicts: of a classifier the labels ``[n]`` and
        the scores or probabilities ``[n, classes]``.

    Raises:
        UnityError: skl2onnx is not installed, or can't convert the model.
        UnsupportedError: The model needs what Unity lacks; lists every gap.
    """
    if find_spec("skl2onnx") is None:
        raise UnityError(
            "from_sklearn needs the package skl2onnx, which is not installed",
            hint="pip install 'unity-mlc[sklearn]'",
        )
    return from_onnx(_converted(model, rows[:1]))


_WAYS: tuple[dict[str, object], ...] = (
    {"options": {"zipmap": False}},  # arrays, not a dict a row
    {},  # of models that know no such option, for which it raises a NameError
    {"target_opset": {"": 18, "ai.onnx.ml": 3}},  # of isolation forests, a RuntimeError
)


def _converted(model: object, row: Array) -> onnx.ModelProto:
    to_onnx = import_module("skl2onnx").to_onnx
    refused: Exception | None = None
    for way in _WAYS:
        try:
            found = to_onnx(model, row, **way)
        except (NameError, RuntimeError) as error:
            refused = error
        except Exception as error:
            refused = error
            break
        else:
            assert isinstance(found, onnx.ModelProto)
            return found
    raise UnityError(
        f"skl2onnx can't convert the {type(model).__name__}: {type(refused).__name__}: {refused}"
    ) from refused
